"""Pipelines of Python functions put and complete what a loop would."""

import contextlib
import threading
import time

import numpy as np
import pytest
import weir


@pytest.fixture
def machine():
    with weir.Runtime("host:cores=2") as made:
        yield made


def test_a_line_of_stages_processes_every_item_once(machine):
    found = []
    with machine.pipeline(name="squares") as pipeline:
        numbers = pipeline.tunnel("i8", name="numbers")
        squares = pipeline.tunnel("i8")
        pipeline.source(range(1000), numbers)

        @pipeline.stage(numbers, squares)
        def square(items):
            return items * items

        pipeline.stage(squares, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.run()
        assert pipeline.at_end
        assert [each["complete"] for each in pipeline.stages()] == [1000, 1000]
        assert pipeline.stages()[0]["name"] == "square"
    assert sorted(found) == [i * i for i in range(1000)]


def test_items_of_stages_take_their_time_in_virtual_time():
    with weir.Runtime("host:cores=4,clock=virtual") as machine, machine.pipeline() as pipeline:
        begin = machine.now()
        numbers, squares = pipeline.tunnel("i8"), pipeline.tunnel("i8")
        pipeline.source(range(100), numbers, item_seconds=1e-3)
        pipeline.stage(numbers, squares, lambda items: items * items, item_seconds=2e-3)
        pipeline.stage(squares, function=lambda items: None, workers=1)
        pipeline.run()
        # A source has one core; four share the items of the stage.
        assert machine.now() - begin == pytest.approx(100 * 1e-3 + 100 * 2e-3 / 4)
        with machine.pipeline() as other, pytest.raises(weir.Error, match="-1 ns"):
            other.source(range(1), other.tunnel("i8"), item_seconds=-1e-9)


def test_an_ordered_stage_keeps_the_order_of_items(machine):
    found = []
    with machine.pipeline(batch=7) as pipeline:
        first, second = pipeline.tunnel("i4"), pipeline.tunnel("i4")
        pipeline.source((np.arange(i, i + 10) for i in range(0, 3000, 10)), first)
        pipeline.stage(first, second, lambda items: items + 1, ordered=True)
        pipeline.stage(second, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.run()
    assert found == list(range(1, 3001))


def test_a_recursive_stage_with_two_outputs_reaches_all_leaves(machine):
    leaves = []
    with machine.pipeline() as pipeline:
        nodes, ends = pipeline.tunnel("i8", name="nodes"), pipeline.tunnel("i8", name="ends")
        pipeline.source([1], nodes)

        @pipeline.stage(nodes, (nodes, ends))
        def split(items):
            inner = items[items < 512]
            return np.concatenate([2 * inner, 2 * inner + 1]), items[items >= 512]

        pipeline.stage(ends, function=lambda items: leaves.extend(items.tolist()), workers=1)
        pipeline.run()
    assert sorted(leaves) == list(range(512, 1024))


def test_a_loop_without_an_exit_ends_with_an_out_of_memory_error(machine):
    with machine.pipeline(keep_bytes=1 << 16) as pipeline:
        nodes = pipeline.tunnel("i8")
        pipeline.source([1], nodes)
        pipeline.stage(nodes, nodes, lambda items: np.repeat(items, 2), name="double")
        with pytest.raises(weir.OutOfMemoryError, match="stage 'double'.*exit"):
            pipeline.run()


def test_an_item_whose_copies_do_not_fit_fails_and_puts_none_of_them(machine):
    """A worker keeps two items at most for a tunnel."""
    found = []
    with machine.pipeline(keep_going=True, batch=1, keep_bytes=1) as pipeline:
        items, copies = pipeline.tunnel("i8"), pipeline.tunnel("i8")
        pipeline.source([0, 1, 2, 3], items)
        pipeline.stage(items, copies, lambda items: np.repeat(items, 3 if items[0] == 1 else 1))
        pipeline.stage(copies, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.start()
        with pytest.raises(weir.OutOfMemoryError):
            pipeline.wait()
        assert pipeline.stages()[0]["failed"] == 1
    assert sorted(found) == [0, 2, 3]


def test_rows_and_records_pass_through_tunnels(machine):
    record = np.dtype([("frame", "i4"), ("weight", "f8")])
    found = {}
    with machine.pipeline() as pipeline:
        rows, records = pipeline.tunnel(("f8", 4)), pipeline.tunnel(record)
        pipeline.source([np.full(4, float(i)) for i in range(20)], rows)

        @pipeline.stage(rows, records)
        def weigh(items):
            assert items.shape[1:] == (4,) and not items.flags.writeable
            result = np.empty(len(items), record)
            result["frame"], result["weight"] = items[:, 0], items.sum(axis=1)
            return result

        @pipeline.stage(records, workers=1)
        def collect(items):
            found.update(zip(items["frame"].tolist(), items["weight"].tolist()))

        pipeline.run()
    assert found == {i: 4.0 * i for i in range(20)}


def test_a_source_may_give_records_as_tuples(machine):
    record = np.dtype([("frame", "i4"), ("weights", "f8", 2)])
    found = []
    with machine.pipeline() as pipeline:
        records = pipeline.tunnel(record)
        pipeline.source([(0, [0.5, 1.5]), [(1, [2.5, 3.5]), (2, [4.5, 5.5])]], records)
        pipeline.stage(records, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.run()
    assert sorted(frame for frame, _ in found) == [0, 1, 2]
    assert sum(sum(weights) for _, weights in found) == 18


def test_the_result_of_at_end_is_put_into_the_next_tunnel(machine):
    totals, count = [], [0]

    def count_items(items):
        count[0] += len(items)

    with machine.pipeline() as pipeline:
        items, total = pipeline.tunnel("i8"), pipeline.tunnel("i8")
        pipeline.source(range(100), items)
        pipeline.stage(items, total, count_items, at_end=lambda: count[0], workers=1)
        pipeline.stage(total, function=lambda items: totals.extend(items.tolist()), workers=1)
        pipeline.run()
    assert totals == [100]


def test_a_feed_delivers_all_items_of_the_program(machine):
    found = []
    with machine.pipeline() as pipeline:
        words = pipeline.tunnel("S8", capacity=4)
        pipeline.stage(words, function=lambda items: found.extend(items.tolist()), workers=1)
        with words.feed() as feed:
            pipeline.start()
            for i in range(200):
                feed.put(f"w{i}")
            feed.put(["x", "y"])
        pipeline.wait()
    assert sorted(found) == sorted([b"w%d" % i for i in range(200)] + [b"x", b"y"])


def test_epochs_end_in_order(machine):
    ended = []
    with machine.pipeline(epochs=2, on_epoch=ended.append) as pipeline:
        items = pipeline.tunnel("i8")
        pipeline.source((i if i % 10 else weir.END_OF_EPOCH for i in range(1, 51)), items)
        pipeline.stage(items, function=lambda items: None)
        pipeline.run()
        assert pipeline.epochs == len(ended)
    assert ended == list(range(len(ended))) and len(ended) >= 5


def fail_at(bad):
    def check(items):
        if np.isin(items, bad).any():
            raise ValueError(f"bad item among {items.tolist()}")
        return items

    return check


def test_a_failed_item_ends_the_pipeline(machine):
    pipeline = machine.pipeline(name="line")
    items = pipeline.tunnel("i8", name="items")
    pipeline.source(range(1000), items)
    pipeline.stage(items, function=lambda items: fail_at([33])(items) is None, name="check")
    with pytest.raises(weir.KernelError, match="check") as caught:
        pipeline.run()
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "bad item among [33]"
    pipeline.close()


def test_with_keep_going_only_the_bad_items_fail(machine):
    failures, found = [], []
    with machine.pipeline(keep_going=True, on_failure=lambda *what: failures.append(what)) as pipeline:
        items, good = pipeline.tunnel("i8"), pipeline.tunnel("i8")
        pipeline.source([np.arange(100)], items)
        pipeline.stage(items, good, fail_at([7, 8, 70]), name="check")
        pipeline.stage(good, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.start()
        with pytest.raises(weir.KernelError):
            pipeline.wait()
        assert pipeline.stages()[0]["failed"] == 3
    assert sorted(found) == [i for i in range(100) if i not in (7, 8, 70)]
    assert {str(error.__cause__) for _, error in failures} == {
        f"bad item among [{bad}]" for bad in (7, 8, 70)}
    assert {stage for stage, _ in failures} == {"check"}


def test_a_source_that_raises_ends_the_pipeline_with_its_error(machine):
    def numbers():
        yield 1
        raise OSError("the camera has been removed")

    pipeline = machine.pipeline()
    items = pipeline.tunnel("i8")
    pipeline.source(numbers(), items, name="camera")
    pipeline.stage(items, function=lambda items: None)
    with pytest.raises(weir.KernelError, match="camera") as caught:
        pipeline.run()
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("result, words", [
    (lambda items: (1, 2, 3), "tuple of 2"),
    (lambda items: (np.zeros((2, 2)), None), "items of shape"),
    (lambda items: ("word", None), "could not convert"),
])
def test_results_of_wrong_form_end_the_pipeline_with_the_reason(machine, result, words):
    pipeline = machine.pipeline()
    items, one, two = pipeline.tunnel("i8"), pipeline.tunnel("f8"), pipeline.tunnel("f8")
    pipeline.source([1], items)
    pipeline.stage(items, (one, two), result, name="wrong")
    pipeline.stage(one, function=lambda items: None)
    pipeline.stage(two, function=lambda items: None)
    with pytest.raises(weir.KernelError, match="wrong") as caught:
        pipeline.run()
    assert words in str(caught.value.__cause__)
    pipeline.close()


def test_wrong_arguments_unread_tunnels_and_closed_pipelines_are_refused(machine):
    pipeline = machine.pipeline()
    tunnel = pipeline.tunnel("i8", name="lost")
    with pytest.raises(TypeError, match="references"):
        pipeline.tunnel(object)
    with pytest.raises(ValueError, match="drop-newest"):
        pipeline.tunnel("i8", overflow="drop")
    other = pipeline.tunnel("i8")
    pipeline.source([1], tunnel)
    pipeline.stage(other, function=lambda items: None)
    with pytest.raises(weir.InvalidArgumentError, match="lost"):
        pipeline.start()
    with pytest.raises(TypeError, match="function"):
        pipeline.stage(tunnel, function=3)
    pipeline.close()
    with pytest.raises(weir.InvalidArgumentError, match="closed"):
        pipeline.tunnel("i8")
    with pytest.raises(weir.InvalidArgumentError, match="closed"):
        tunnel.feed()


def test_waiting_inside_a_stage_is_refused(machine):
    pipeline = machine.pipeline()
    items = pipeline.tunnel("i8")
    pipeline.source([1], items)
    pipeline.stage(items, function=lambda items: pipeline.wait(), name="inside")
    with pytest.raises(weir.KernelError) as caught:
        pipeline.run()
    assert isinstance(caught.value.__cause__, weir.BusyError)
    pipeline.close()


def test_calls_after_cancel_or_the_end_of_the_runtime_raise_an_error(machine):
    seen = threading.Event()
    pipeline = machine.pipeline()
    items = pipeline.tunnel("i8")
    feed = items.feed()
    pipeline.stage(items, function=lambda items: seen.set())
    pipeline.start()
    feed.put(1)
    assert seen.wait(60)
    with pytest.raises(weir.TimeoutError):
        pipeline.wait(0)
    pipeline.cancel()
    with pytest.raises(weir.CancelledError):
        pipeline.wait()
    with pytest.raises(weir.CancelledError):
        feed.put(2)
    machine.close()  # before the pipeline and its feed
    with pytest.raises(weir.InvalidArgumentError, match="closed"):
        feed.put(3)


@pytest.fixture
def crowded(machine):
    """A pipeline whose stage holds an item until go, and whose tunnel has no room; a feed of it."""
    pipeline, holding, go = machine.pipeline(), threading.Event(), threading.Event()
    items = pipeline.tunnel("i8", capacity=1)
    feed = items.feed()

    @pipeline.stage(items, workers=1)
    def block(items):
        holding.set()
        go.wait(30)

    pipeline.start()
    feed.put(0)
    assert holding.wait(30)
    with pytest.raises(weir.TimeoutError):
        while True:
            feed.put(1, timeout=0)
    yield pipeline, feed, go
    go.set()
    pipeline.close()


def on_a_thread(attempt):
    """Starts a thread for a call; returns it, and where what the call raises goes."""
    about, raised = threading.Event(), []

    def run():
        about.set()
        try:
            attempt()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert about.wait(30)
    return thread, raised


def test_closing_a_feed_ends_the_put_of_another_thread(crowded):
    pipeline, feed, go = crowded
    thread, raised = on_a_thread(lambda: feed.put([2, 3, 4]))
    feed.close()
    thread.join(30)
    assert not thread.is_alive() and "the feed has been closed" in str(raised[0])
    go.set()
    pipeline.wait()


def test_a_feed_used_by_two_threads_raises_a_busy_error(crowded):
    pipeline, feed, go = crowded

    def put():
        while True:
            try:
                return feed.put(2)
            except weir.BusyError:
                pass

    thread, raised = on_a_thread(put)
    deadline = time.monotonic() + 60
    with pytest.raises(weir.BusyError, match="open another"):
        while time.monotonic() < deadline:
            with contextlib.suppress(weir.TimeoutError):
                feed.put(3, timeout=0)
    with pytest.raises(weir.BusyError):
        feed.next_epoch()
    go.set()
    thread.join()
    assert not raised
    feed.close()
    pipeline.wait()


@pytest.mark.parametrize("closes", ["pipeline", "runtime"])
def test_threads_that_use_a_pipeline_get_an_error_when_it_is_closed(machine, crowded, closes):
    pipeline, feed, go = crowded
    calls = (lambda: feed.put([2, 3]), pipeline.wait, lambda: pipeline.wait(60))
    threads = [on_a_thread(each) for each in calls]
    closing = on_a_thread(pipeline.close if closes == "pipeline" else machine.close)
    go.set()
    for thread, raised in (*threads, closing):
        thread.join()
    assert not closing[1]
    for _, (error,) in threads:
        assert isinstance(error, weir.CancelledError) or "has been closed" in str(error)


def test_a_pipeline_ends_when_the_last_kept_item_is_complete(machine):
    """The pipeline ends with the last of them, whichever thread completes it."""
    kept = []
    with machine.pipeline(batch=8) as pipeline:
        items = pipeline.tunnel("i8", name="items")
        pipeline.source([np.arange(20)], items)

        @pipeline.stage(items, keeps=True)
        def block(items, keep):
            assert len(items) == 1
            if items[0] % 2 == 0:
                kept.append((int(items[0]), keep()))

        pipeline.start()
        while len(kept) < 10 or pipeline.state()["stages"][1]["complete"] < 10:
            with pytest.raises(weir.TimeoutError, match="not at its end"):
                pipeline.wait(0.001)
        state = pipeline.state()
        assert [stage["kept"] for stage in state["stages"]] == [0, 10]
        kept[0][1].complete()
        with pytest.raises(ValueError, match="complete already"):
            kept[0][1].complete()
        last = kept.pop()[1]
        kept.clear()  # destroyed items are complete
        with pytest.raises(weir.TimeoutError, match="of block"):
            pipeline.wait(0)
        other = threading.Thread(target=last.complete)
        other.start()
        pipeline.wait()
        other.join()
        assert pipeline.state()["stages"][1]["complete"] == 20


def test_a_kept_item_of_a_call_that_fails_is_not_kept(machine):
    kept, failures = [], []
    with machine.pipeline(keep_going=True,
                          on_failure=lambda *what: failures.append(what)) as pipeline:
        items = pipeline.tunnel("i8")
        pipeline.source([np.arange(6)], items)

        @pipeline.stage(items, keeps=True)
        def block(items, keep):
            kept.append(keep())
            if items[0] in (2, 3):
                raise ValueError(f"bad {items[0]}")
            if items[0] == 4:
                with pytest.raises(weir.InvalidArgumentError, match="does already"):
                    keep()

        pipeline.start()
        while len(kept) < 6:
            with pytest.raises(weir.TimeoutError):
                pipeline.wait(0.01)
        with pytest.raises(weir.TimeoutError):
            pipeline.wait(0)
        kept.clear()
        with pytest.raises(weir.KernelError, match="bad 2|bad 3"):
            pipeline.wait()
        assert pipeline.stages()[0]["failed"] == 2
    assert len(failures) == 2


@pytest.mark.parametrize("words", ["bad", "half a letter: \udcff"])
def test_a_kept_item_of_a_failed_call_cannot_complete_a_later_item(machine, words):
    """Handles are used again after a few hundred."""
    lost, kept = [], []
    came, failed = threading.Semaphore(0), threading.Event()
    with machine.pipeline(keep_going=True, on_failure=lambda *what: failed.set()) as pipeline:
        items = pipeline.tunnel("i8")
        feed = items.feed()

        @pipeline.stage(items, keeps=True)
        def block(items, keep):
            (lost if items[0] < 0 else kept).append(keep())
            if items[0] < 0:
                raise ValueError(words)
            came.release()

        pipeline.start()
        feed.put(-1)
        assert failed.wait(60)
        for _ in range(2):
            kept.clear()
            feed.put(np.arange(300))
            for _ in range(300):
                assert came.acquire(timeout=60)
        with pytest.raises(ValueError, match="failed"):
            lost[0].complete()
        lost.clear()
        assert pipeline.state()["stages"][0]["kept"] == 300
        feed.close()
        kept.clear()
        with pytest.raises(weir.KernelError, match=words[:4]):
            pipeline.wait()


def test_keeping_items_outside_a_stage_is_refused(machine):
    with pytest.raises(ValueError, match="while it is called"):
        weir._weir._keep_item(0, 0)
    with pytest.raises(ValueError, match="while it is called"):
        weir._weir._this_batch()


def test_the_keep_function_of_an_earlier_call_is_refused(machine):
    keeps, refused = [], []
    with machine.pipeline(batch=1) as pipeline:
        items = pipeline.tunnel("i8")
        pipeline.source([np.arange(2)], items)

        @pipeline.stage(items, keeps=True, workers=1)
        def block(items, keep):
            keeps.append(keep)
            if len(keeps) == 2:
                with pytest.raises(ValueError, match="earlier call"):
                    keeps[0]()
                refused.append(int(items[0]))

        pipeline.run()
        assert len(refused) == 1
        assert pipeline.stages()[0]["complete"] == 2


def test_the_state_reports_counts_and_times_of_stages_and_tunnels(machine):
    with machine.pipeline(name="counted") as pipeline:
        numbers, squares = pipeline.tunnel("i8", name="numbers", capacity=16), pipeline.tunnel("i8")
        pipeline.source(range(500), numbers, name="count")
        pipeline.stage(numbers, squares, lambda items: items * items, name="square")
        pipeline.stage(squares, function=lambda items: None, name="sum", workers=1)
        before = pipeline.state()
        assert before["workers"] == 0 and not before["at_end"]
        pipeline.run()
        state = pipeline.state(percentiles=[50, 100])
    assert (state["name"], state["at_end"]) == ("counted", True)
    source, square, last = state["stages"]
    assert [each["name"] for each in state["stages"]] == ["count", "square", "sum"]
    assert (source["input"], source["outputs"], source["put"]) == (None, [0], 500)
    assert (square["input"], square["outputs"], square["complete"]) == (0, [1], 500)
    assert (last["outputs"], last["workers"], last["on_device"]) == ([], 1, False)
    assert 0 < last["ages_s"][50] <= last["ages_s"][100] < 60
    assert square["busy_s"] > 0 and 0 < state["elapsed_s"] < 60
    assert [each["created"] for each in state["tunnels"]] == [500, 500]
    assert (state["tunnels"][0]["name"], state["tunnels"][0]["stage"]) == ("numbers", 1)
    assert state["tunnels"][0]["waiting"] == state["tunnels"][0]["under_way"] == 0
