"""Shares of Python functions do every item once; reductions of tasks equal sums."""

import numpy as np
import pytest
import weir


@pytest.fixture(params=["host:cores=2", "host:cores=1,sim:cores=1", "sim:cores=1,clock=virtual,gbps=6"])
def machine(request):
    with weir.Runtime(request.param) as made:
        yield made


@pytest.mark.parametrize("chunks", [None, "one", "fixed:7", "guided", "weighted-factoring", "static"])
def test_every_item_is_done_once(machine, chunks):
    counts = np.zeros(200)
    data = machine.wrap(counts)
    add = machine.kernel("add", lambda part: np.add(part, 1, out=part))

    def enqueue(chunk):
        part = data[chunk.first:chunk.first + chunk.count]
        chunk.stream.upload(part)
        chunk.stream.compute(add, [weir.readwrite(part)])
        return chunk.stream.download(part)

    with machine.share(200, enqueue, chunks=chunks) as share:
        share.wait()
        assert share.items == share.done == 200
        assert sum(part["items"] for part in share.parts()) == 200
        assert share.makespan_s > 0
    assert (counts == 1).all()


def test_an_error_of_the_function_is_raised_by_wait(machine):
    def enqueue(chunk):
        raise LookupError("no such item")

    share = machine.share(10, enqueue)
    with pytest.raises(LookupError, match="no such item"):
        share.wait()
    share.close()


def test_a_function_that_returns_no_event_raises_a_type_error(machine):
    share = machine.share(10, lambda chunk: None)
    with pytest.raises(TypeError, match="returns the event"):
        share.wait()
    share.close()


def test_the_stream_of_a_chunk_is_closed_after_the_share(machine):
    streams = []
    nothing = machine.kernel("nothing", lambda: None)

    def enqueue(chunk):
        streams.append(chunk.stream)
        return chunk.stream.compute(nothing, [])

    with machine.share(5, enqueue):
        pass
    with pytest.raises(weir.InvalidArgumentError, match="closed"):
        streams[0].compute(nothing, [])


def test_wrong_work_lists_and_chunk_policies_are_refused(machine):
    with pytest.raises(ValueError, match="work of 2 items"):
        machine.share(3, lambda chunk: None, work=[1, 2])
    with pytest.raises(weir.NotFoundError, match="sometimes"):
        machine.share(3, lambda chunk: None, chunks="sometimes")


def test_a_reduction_by_python_functions_gives_the_sum_of_numpy(machine):
    x = np.arange(2400.0).reshape(40, 60)
    total = np.full(60, 5.0)
    rows, sums = machine.wrap(x), machine.wrap(total)
    accumulate = machine.kernel("accumulate", lambda row, sum: np.add(sum, row, out=sum))
    combine = machine.kernel("combine", lambda sum, partial: np.add(sum, partial, out=sum))
    with machine.queue(models=False) as queue:
        for row in range(40):
            queue.submit(accumulate, [weir.read(rows[row]), weir.reduce(sums)], combine=combine)
    assert np.array_equal(total, 5 + x.sum(axis=0))


def test_a_reduction_with_an_init_kernel_gives_the_maximum(machine):
    x = np.random.default_rng(1).permutation(300).reshape(30, 10).astype("i8")
    most = np.zeros(1, "i8")
    rows, result = machine.wrap(x), machine.wrap(most)
    largest = machine.kernel("largest", lambda row, most: np.maximum(most, row.max(), out=most))
    combine = machine.kernel("combine", lambda most, part: np.maximum(most, part, out=most))

    @machine.kernel
    def smallest(part):
        part[:] = np.iinfo("i8").min

    with machine.queue(models=False) as queue:
        for row in range(30):
            queue.submit(largest, [weir.read(rows[row]), weir.reduce(result)], combine=combine,
                         init=smallest)
    assert most[0] == 299


def test_reductions_of_unequal_shapes_or_without_combine_are_refused(machine):
    data = machine.buffer(10)
    combine = machine.kernel("combine", lambda sum, partial: np.add(sum, partial, out=sum))
    nothing = machine.kernel("nothing", lambda *parts: None)
    with machine.queue(models=False) as queue:
        with pytest.raises(TypeError, match="one shape"):
            queue.submit(nothing, [weir.reduce(data[:2]), weir.reduce(data[2:5])], combine=combine)
        with pytest.raises(ValueError, match="weir.reduce"):
            queue.submit(nothing, [weir.read(data)], combine=combine)
        with pytest.raises(weir.InvalidArgumentError):
            queue.submit(nothing, [weir.reduce(data)])
