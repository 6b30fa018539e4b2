"""Ranks: simulated ones in this process, and real ones."""

import contextlib
import functools
import itertools
import os
import shutil
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import weir

SEEDS = (0, 1, 7)


def on_ranks(ranks, program, **options):
    weir.Fabric.simulate(ranks, program, **options)


def test_arrays_of_python_objects_are_refused_by_a_fabric():
    objects, numbers = np.array([{}, None], object), np.zeros(2)
    with weir.Fabric("self") as fabric, fabric.window(numbers) as window:
        for attempt in (lambda: fabric.window(objects), lambda: fabric.conveyor(objects),
                        lambda: fabric.broadcast(objects), lambda: fabric.send(0, objects),
                        lambda: window.put(0, 0, objects), lambda: window.get(0, 0, objects)):
            with pytest.raises(TypeError, match="Python objects"):
                attempt()


@pytest.mark.parametrize("seed", SEEDS)
def test_reduce_broadcast_and_barrier_agree_on_all_ranks(seed):
    def program(fabric):
        rank, ranks = fabric.rank, fabric.ranks
        assert fabric.reduce(rank) == 3 and fabric.reduce(float(rank), "max") == ranks - 1
        np.testing.assert_array_equal(fabric.reduce(np.array([[rank, -rank]], "i4"), "min"),
                                      [[0, 1 - ranks]])
        data = np.full(5, rank, "f4")
        assert fabric.broadcast(data, root=1) is data and data.sum() == 5
        assert all(fabric.is_alive(each) for each in range(ranks))
        assert [fabric.link(each) for each in range(ranks + 1)] == [
            *("self" if each == rank else "inproc" for each in range(ranks)), None]
        fabric.barrier(60)
        assert repr(fabric) == f"<weir.Fabric: rank {rank} of {ranks}>"

    on_ranks(3, program, seed=seed)


OPS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "product": np.multiply,
       "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def random_numbers(dtype, shape, *seed):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_reductions_and_scans_of_random_numbers_equal_those_of_numpy(dtype, ranks):
    ops = [op for op in OPS if dtype[0] != "f" or op not in ("and", "or", "xor")]

    def program(fabric):
        group, rank = fabric.communicator, fabric.rank
        for number, (op, shape) in enumerate(itertools.product(ops, [(0,), (2, 3), (3, 1500)])):
            given = [random_numbers(dtype, shape, each, number) for each in range(ranks)]
            results = list(itertools.accumulate(given, OPS[op]))  # in the order of the ranks
            root, below = number % ranks, results[rank - 1] if rank else given[0]
            for found, expected in ((group.reduce(given[rank], op), results[-1]),
                                    (group.scan(given[rank], op), results[rank]),
                                    (group.scan(given[rank], op, exclusive=True), below)):
                np.testing.assert_array_equal(found, expected, strict=True)
            found = group.reduce(given[rank], op, root)
            if rank == root:
                np.testing.assert_array_equal(found, results[-1], strict=True)
            else:
                assert found is None

    on_ranks(ranks, program)


@pytest.mark.parametrize("seed", SEEDS)
def test_collective_copies_move_the_parts_of_all_ranks(seed):
    def program(fabric):
        group = fabric.communicator
        rank, size = group.rank, group.size
        assert (rank, size) == (fabric.rank, 3)
        everything = np.array([[[10 * each + 1, 10 * each + 2]] for each in range(size)], "f4")
        mine = everything[rank]
        np.testing.assert_array_equal(group.gather(mine), everything, strict=True)
        np.testing.assert_array_equal(group.gather(mine.T), everything.transpose(0, 2, 1), strict=True)
        assert group.gather(rank).tolist() == [0, 1, 2]
        found = group.gather(mine, root=1)
        assert found is None if rank != 1 else (found == everything).all()
        into = np.zeros((1, 2), "f4")
        assert group.scatter(everything if rank == 2 else None, into, root=2) is into
        assert (into == mine).all()
        pairs = np.array([[rank, to] for to in range(size)])
        assert group.all_to_all(pairs).tolist() == [[each, rank] for each in range(size)]
        received = group.all_to_all_v([np.full(rank + to, rank, "i2") for to in range(size)], 60)
        assert [each.tolist() for each in received] == [(each + rank) * [each] for each in range(size)]
        assert all(each.dtype == "i2" for each in received)
        data = np.full(5, rank, "u1")
        assert group.broadcast(data, root=1) is data and data.tolist() == 5 * [1]
        group.barrier(60)
        assert group.reduce(rank) == 3 and group.scan(0.5) == 0.5 * (rank + 1)
        assert group.reduce(np.array([1, 2], ">i4")).tolist() == [3, 6]

    on_ranks(3, program, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_split_makes_groups_by_color_in_the_order_of_key(seed):
    def program(fabric):
        everyone, rank = fabric.communicator, fabric.rank
        half = everyone.split(None if rank == 4 else rank % 2, key=-rank)
        assert everyone.reduce(1) == 5
        if rank == 4:
            assert half is None
            return
        members = [3, 1] if rank % 2 else [2, 0]
        with half:
            assert [half.fabric_rank(each) for each in range(half.size)] == members
            assert members[half.rank] == rank
            assert half.gather(rank).tolist() == members
            assert repr(half) == f"<weir.Communicator: rank {half.rank} of 2>"
        assert repr(half) == "<weir.Communicator, closed>"
        with pytest.raises(weir.InvalidArgumentError, match="communicator has been closed"):
            half.barrier()

    on_ranks(5, program, seed=seed)


def test_a_split_by_node_makes_a_group_that_has_this_rank():
    def program(fabric):
        node = fabric.communicator.split_by_node()
        assert node.fabric_rank(node.rank) == fabric.rank
        assert node.reduce(1) == node.size

    on_ranks(3, program)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_that_are_left_shrink_their_group_and_go_on(seed):
    def program(fabric):
        group = fabric.communicator
        if fabric.rank == 1:
            return
        with pytest.raises(weir.NetworkError, match="rank 1 has left"):
            group.barrier()
        with pytest.raises(weir.NetworkError, match="rank 1 has left"):
            group.reduce(1)
        rest = group.shrink()
        assert rest.gather(fabric.rank).tolist() == [0, 2]

    on_ranks(3, program, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_revoked_group_fails_on_all_ranks_and_can_be_shrunk(seed):
    def program(fabric):
        group = fabric.communicator
        if fabric.rank == 1:
            group.revoke()
        with pytest.raises(weir.NetworkError, match="revoked"):
            group.barrier()
        assert group.shrink().reduce(1) == 3

    on_ranks(3, program, seed=seed)


@pytest.mark.parametrize("domains", ["host:cores=1", "sim:cores=1,gbps=1000,latency_us=0"])
def test_streams_send_and_receive_in_order_with_kernels(domains):
    def program(fabric):
        group = fabric.communicator
        with weir.Runtime(domains, fabric=fabric) as runtime:
            stream = runtime.domain().place(1).stream()
            own, other = np.zeros((4, 6)), np.zeros((4, 3))
            buffers = [runtime.wrap(own), runtime.wrap(other)]

            @runtime.kernel
            def fill(call_own, by):
                call_own[:] = by

            stream.compute(fill, [weir.write(own)], [10.0 + fabric.rank])
            group.send(stream, own[:, :3], 1 - fabric.rank, tag=3)
            group.receive(stream, other, 1 - fabric.rank, tag=3)
            stream.compute(fill, [weir.write(own)], [0.0])
            stream.download(other)
            stream.synchronize()
            assert len(buffers) == 2 and (other == 11.0 - fabric.rank).all()
            with pytest.raises(weir.InvalidArgumentError, match="no rank 2"):
                group.send(stream, own, 2)
            fabric.barrier()

    on_ranks(2, program)


@pytest.mark.parametrize("domains", ["host:cores=1", "sim:cores=1,gbps=1000,latency_us=0"])
def test_streams_put_and_get_in_order_with_kernels(domains):
    def program(fabric):
        other = 1 - fabric.rank
        with fabric.window(64) as window, weir.Runtime(domains, fabric=fabric) as runtime:
            stream = runtime.domain().place(1).stream()
            own, back = np.zeros((2, 4)), np.zeros((2, 2))
            buffers = [runtime.wrap(own), runtime.wrap(back)]

            @runtime.kernel
            def fill(call_own, by):
                call_own[:] = by

            stream.compute(fill, [weir.write(own)], [10.0 + fabric.rank])
            window.enqueue_put(stream, own[:, :2], other, 32)
            stream.barrier()
            window.enqueue_get(stream, back, other, 32)
            stream.download(back)
            stream.synchronize()
            fabric.barrier()
            assert len(buffers) == 2 and (back == 10.0 + fabric.rank).all()
            assert window.array.view("f8")[4:].tolist() == 4 * [10.0 + other]
            with pytest.raises(weir.InvalidArgumentError, match="32 bytes at 40"):
                window.enqueue_put(stream, own[:, :2], other, 40)
            fabric.barrier()

    on_ranks(2, program)


@pytest.mark.parametrize("domains", ["host:cores=1", "sim:cores=1,gbps=1000,latency_us=0"])
def test_streams_run_collective_operations_in_order_with_kernels(domains):
    def program(fabric):
        group, ranks = fabric.communicator, fabric.ranks
        with weir.Runtime(domains, fabric=fabric) as runtime:
            stream = runtime.domain().place(1).stream()
            own, parts, received = np.zeros(3), np.zeros((ranks, 3), "f4"), np.zeros((ranks, 3), "f4")
            everything = np.zeros((ranks, 3))
            buffers = [runtime.wrap(each) for each in (own, parts, received, everything)]

            @runtime.kernel
            def fill(call_own, by):
                call_own[:] = by

            stream.compute(fill, [weir.write(own)], [10.0 + fabric.rank])
            group.enqueue_reduce(stream, own)
            group.enqueue_gather(stream, own, everything, root=1)
            if fabric.rank == 1:
                stream.compute(fill, [weir.write(everything[2])], [5.0])
            group.enqueue_scatter(stream, everything, own, root=1)
            stream.compute(fill, [weir.write(parts)], [1.0 * fabric.rank])
            group.enqueue_all_to_all(stream, parts, received)
            group.enqueue_broadcast(stream, parts, root=2)
            for each in (own, parts, received):
                stream.download(each)
            stream.synchronize()
            assert len(buffers) == 4
            assert (own == (5 if fabric.rank == 2 else 10 * ranks + 3)).all()
            assert (received == np.arange(ranks)[:, None]).all()
            assert (parts == 2).all()
            with pytest.raises(weir.InvalidArgumentError, match="region of all ranks has 24 bytes"):
                group.enqueue_gather(stream, own, own)
            with pytest.raises(TypeError, match="a reduction of complex128"):
                group.enqueue_reduce(stream, np.zeros(3, complex))
            fabric.barrier()

    on_ranks(3, program)


def test_a_timeout_of_one_rank_fails_the_operation_on_all():
    def program(fabric):
        group = fabric.communicator
        if fabric.rank == 0:
            with pytest.raises(weir.TimeoutError, match="called it in time"):
                group.barrier(0.05)
        fabric.barrier()
        with pytest.raises(weir.NetworkError, match="called it in time"):
            group.barrier()
        fabric.barrier()

    on_ranks(2, program)


@pytest.mark.parametrize("call", [
    lambda group: group.barrier() if group.rank == 2 else group.reduce(np.zeros(4)),
    lambda group: group.reduce(np.zeros(4, "f8" if group.rank else "f4")),
    lambda group: group.reduce(np.zeros(4), "max" if group.rank else "min"),
    lambda group: group.broadcast(np.zeros(4 + group.rank)),
], ids=["operations", "dtypes", "ops", "sizes"])
def test_calls_that_differ_between_ranks_raise_on_all_of_them(call):
    def program(fabric):
        group = fabric.communicator
        with pytest.raises(weir.InvalidArgumentError, match="all ranks must call the same"):
            call(group)
            group.barrier()
        fabric.barrier()

    on_ranks(3, program)


def test_wrong_arguments_of_collective_operations_are_refused_with_a_message():
    def program(fabric):
        group, objects, part = fabric.communicator, np.array([{}, None], object), np.zeros(2)
        for call, error, words in (
                (lambda: group.reduce(np.zeros(2, complex)), TypeError, "reduction of complex128"),
                (lambda: group.reduce([True]), TypeError, "bool: convert"),
                (lambda: group.scan(np.zeros(2, "f2")), TypeError, "float16"),
                (lambda: group.scan(["word"]), TypeError, "str"),
                (lambda: group.reduce(1, "mean"), ValueError, "'mean' is not 'sum'"),
                (lambda: group.reduce(0.5, "xor"), weir.InvalidArgumentError, "for integers"),
                (lambda: group.reduce(1, root=1), weir.InvalidArgumentError, "rank 1"),
                (lambda: group.gather(objects), TypeError, "Python objects"),
                (lambda: group.broadcast(objects), TypeError, "Python objects"),
                (lambda: group.broadcast(np.zeros((4, 4)).T), ValueError, "contiguous"),
                (lambda: group.scatter([[0, 0]], [0, 0]), TypeError, "into list"),
                (lambda: group.scatter(np.zeros((1, 3)), part), ValueError, r"give an array of float64 \(1, 2\)"),
                (lambda: group.scatter(np.zeros((1, 2), "f4"), part), ValueError, "scatter of float32"),
                (lambda: group.all_to_all(np.zeros((2, 1))), ValueError, r"shape \(2, 1\)"),
                (lambda: group.all_to_all(1), ValueError, "first axis"),
                (lambda: group.all_to_all_v([part, part]), ValueError, "one axis"),
                (lambda: group.all_to_all_v([[part]]), ValueError, r"float64 \(1, 2\)"),
                (lambda: group.split(-1), ValueError, "-1"),
                (lambda: group.fabric_rank(1), weir.InvalidArgumentError, "no rank 1"),
                (lambda: group.barrier(-1), ValueError, "-1"),
        ):
            with pytest.raises(error, match=words):
                call()
        assert group.reduce(7) == 7  # it still works

    on_ranks(1, program)


def test_groups_end_with_their_fabric():
    with weir.Fabric("self") as fabric:
        groups = [fabric.communicator, fabric.communicator.split(0)]
        assert [group.reduce(5) for group in groups] == [5, 5]
    for group in groups:
        with pytest.raises(weir.InvalidArgumentError, match="closed"):
            group.barrier()
        assert repr(group) == "<weir.Communicator, closed>"
        group.close()


def test_a_handler_that_calls_a_collective_operation_gets_a_busy_error():
    fabric, refused = weir.Fabric("self", progress="caller"), []

    def handler(rank, message):
        try:
            fabric.communicator.barrier()
        except weir.BusyError as error:
            refused.append(str(error))

    fabric.listen(handler)
    fabric.send(0, b"wait")
    fabric.progress(60)
    assert refused == ["a handler of messages must not wait for a barrier"]
    fabric.close()


def test_a_handler_that_closes_its_fabric_gets_a_busy_error():
    fabric, refused = weir.Fabric("self"), []

    def handler(rank, message):
        try:
            fabric.close()
        except weir.BusyError as error:
            refused.append(error)

    fabric.listen(handler)
    for _ in range(2):  # the second one would find no handler
        fabric.send(0, b"close")
    while len(refused) < 2:
        fabric.progress(60)
    fabric.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_put_get_and_update_the_memory_of_other_ranks(seed):
    def program(fabric):
        rank, right = fabric.rank, (fabric.rank + 1) % fabric.ranks
        with fabric.window(np.zeros(4, "i8")) as window:
            window.put(right, 8, np.arange(2) + 10 * rank)
            window.flush(right)
            old = window.fetch_add(0, 0, 1)
            assert 0 <= old < fabric.ranks
            fabric.barrier()
            left = (rank - 1) % fabric.ranks
            assert window.array[1:3].tolist() == [10 * left, 10 * left + 1]
            got = np.zeros(1, "i8")
            window.get(0, 0, got)
            window.flush(0)
            assert got[0] == fabric.ranks
            assert window.compare_swap(rank, 24, 0, 5) == 0 == window.compare_swap(rank, 24, 5, 0) - 5
            with pytest.raises(weir.InvalidArgumentError):
                window.put(right, 32, np.zeros(1))
            fabric.barrier()
        with pytest.raises(weir.InvalidArgumentError, match="window has been closed"):
            window.flush(0)

    on_ranks(3, program, seed=seed)


def test_messages_arrive_in_order_and_an_error_of_the_handler_is_raised():
    def program(fabric):
        got = []

        def handler(rank, message):
            got.append((rank, message))
            if message == b"bad":
                raise LookupError("bad message")

        fabric.listen(handler)
        if fabric.rank == 1:
            fabric.send(0, b"first")
            fabric.send(0, np.arange(2, dtype="u1"))
            fabric.send(0, b"bad")
        else:
            with pytest.raises(LookupError, match="bad message"):
                while True:  # until a wait of this rank has seen it
                    fabric.progress(60)
            assert got == [(1, b"first"), (1, b"\0\1"), (1, b"bad")]
        fabric.barrier()
        fabric.listen(None)

    on_ranks(2, program)


def test_a_handler_that_sets_another_one_lives_until_it_returns():
    fabric, got = weir.Fabric("self"), []

    def first(label, rank, message):
        fabric.listen(lambda rank, message: got.append(message))
        got.append(label if alive() is not None else "gone")

    handler = functools.partial(first, "still there")
    alive = weakref.ref(handler)
    fabric.listen(handler)
    del handler
    fabric.send(0, b"first")
    fabric.send(0, b"second")
    while len(got) < 2:
        fabric.progress(60)
    assert got == ["still there", b"second"] and alive() is None
    fabric.close()


def test_a_closed_fabric_that_a_runtime_keeps_calls_no_handler():
    fabric = weir.Fabric("self", progress="thread")
    runtime = weir.Runtime("host:cores=1", fabric=fabric)
    got, many = [], threading.Event()

    def handler(rank, message):
        got.append(message)
        if len(got) == 1:
            for _ in range(1000):
                fabric.send(0, b"late")
            many.set()

    fabric.listen(handler)
    fabric.send(0, b"first")
    assert many.wait(60)
    fabric.close()
    seen = len(got)
    runtime.close()
    assert len(got) == seen


def test_closing_what_another_thread_uses_raises_a_busy_error():
    """Nor is anything else of the fabric that holds it."""
    inside, go = threading.Event(), threading.Event()

    def handler(items, rank):
        inside.set()
        assert go.wait(60)

    fabric = weir.Fabric("self", progress="caller")
    window, conveyor = fabric.window(8), fabric.conveyor(handlers=[("i8", handler)], age=-1)
    producer = conveyor.producer()
    producer.send(0, 0, [5])
    user = threading.Thread(target=producer.flush)
    user.start()
    assert inside.wait(60)
    for each, name in ((producer, "producer"), (conveyor, "conveyor"), (fabric, "fabric")):
        with pytest.raises(weir.BusyError, match=f"call of the {name}"):
            each.close()
    go.set()
    user.join()
    producer.send(0, 0, [6])
    producer.flush()
    assert window.fetch_add(0, 0, 1) == 0
    fabric.close()
    for attempt in (producer.flush, conveyor.finish, lambda: window.flush(0), fabric.barrier):
        with pytest.raises(weir.InvalidArgumentError, match="closed"):
            attempt()


AT_EXIT = """
import contextlib
import threading
import weir

fabric, inside = weir.Fabric("self"), threading.Event()


def wait():
    inside.set()
    with contextlib.suppress(weir.Error):
        fabric.progress()


threading.Thread(target=wait, daemon=True).start()
inside.wait()
print("ends", flush=True)
"""


def test_python_ends_while_a_daemon_thread_waits_in_the_fabric():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


@pytest.mark.parametrize("seed", SEEDS)
def test_conveyors_deliver_all_additions_records_and_puts(seed):
    ranks, cells = 3, 50

    def program(fabric):
        pairs, random = [], np.random.default_rng(fabric.rank)
        record = np.dtype([("key", "i4"), ("value", "f4")])
        handlers = [(record, lambda items, rank: pairs.extend((rank, *each) for each in items.tolist()))]
        with fabric.conveyor(np.zeros(cells, "i8"), handlers, block_bytes=1024) as conveyor:
            with conveyor.producer() as producer:
                for _ in range(20):
                    cell = random.integers(cells, size=30)
                    producer.add(int(random.integers(ranks)), 8 * cell, 1)
                producer.send((fabric.rank + 1) % ranks, 0,
                              np.array([(each, each / 2) for each in range(40)], record))
            conveyor.finish(60)
            assert fabric.reduce(conveyor.array.sum()) == ranks * 600
            left = (fabric.rank - 1) % ranks
            assert pairs == [(left, each, each / 2) for each in range(40)]
            assert conveyor.info()["items"] == 640
            fabric.barrier()
            with conveyor.producer() as producer:
                producer.put(0, [8 * (10 + fabric.rank)], np.array([-1 - fabric.rank]))
            conveyor.finish()
            if fabric.rank == 0:
                assert conveyor.array[10:13].tolist() == [-1, -2, -3]

    on_ranks(ranks, program, seed=seed)


def fail_in_a_handler(fabric):
    """Lets a handler of rank 0 raise. Returns what expects that of the next call."""
    seen = threading.Event()

    def handler(rank, message):
        seen.set()
        raise LookupError("bad message")

    fabric.listen(handler)
    told = contextlib.nullcontext()
    if fabric.rank == 0:
        fabric.send(0, b"bad")
        assert seen.wait(60)
        told = pytest.raises(LookupError)
    fabric.listen(None)  # waits until the handler has returned
    return told


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reduction_completes_on_all_ranks_although_a_handler_raises(seed):
    def program(fabric):
        told = fail_in_a_handler(fabric)
        with told:
            fabric.reduce(1)
        assert fabric.reduce(1) == 2

    on_ranks(2, program, seed=seed, progress="thread")


def test_an_error_of_a_conveyor_handler_is_raised_by_finish():
    def program(fabric):
        def handler(items, rank):
            raise ZeroDivisionError(f"from {rank}")

        conveyor = fabric.conveyor(handlers=[("i8", handler)])
        with conveyor.producer() as producer:
            if fabric.rank == 0:
                producer.send(1, 0, [5])
        if fabric.rank == 1:
            with pytest.raises(ZeroDivisionError, match="from 0"):
                conveyor.finish()
        else:
            conveyor.finish()
        conveyor.close()
        with pytest.raises(weir.InvalidArgumentError, match="closed"):
            producer.flush()

    on_ranks(2, program)


def test_wrong_arguments_of_fabrics_and_conveyors_are_refused():
    def program(fabric):
        for call, error, words in (
                (lambda: fabric.reduce(["word"]), TypeError, "numbers"),
                (lambda: fabric.reduce(1, "mean"), ValueError, "'mean'"),
                (lambda: fabric.reduce(np.array([1, 2**63], "u8")), OverflowError, str(2**63)),
                (lambda: fabric.window([1, 2]), TypeError, "without gaps"),
                (lambda: fabric.window(np.zeros((4, 4))[:, 1]), TypeError, "without gaps"),
                (lambda: fabric.send(3, b""), weir.InvalidArgumentError, "3"),
                (lambda: fabric.broadcast(np.zeros((4, 4)).T), ValueError, "contiguous"),
        ):
            with pytest.raises(error, match=words):
                call()
        frozen = np.zeros(3)
        frozen.flags.writeable = False
        with pytest.raises((BufferError, ValueError)):
            fabric.broadcast(frozen)
        with fabric.conveyor(8) as conveyor, conveyor.producer() as producer:
            for call, error in ((lambda: producer.add(0, [0.5], [1]), TypeError),
                                (lambda: producer.add(0, [-8], [1]), OverflowError),
                                (lambda: producer.add(0, [0], np.array([2**63], "u8")), OverflowError),
                                (lambda: producer.put(0, [0, 8], np.zeros(3, "u1")), ValueError),
                                (lambda: producer.add(0, [8], [1]), weir.InvalidArgumentError)):
                with pytest.raises(error):
                    call()
        with fabric.conveyor(handlers=[(("f8", 3), print)]) as conveyor:
            with conveyor.producer() as producer, pytest.raises(ValueError, match="24"):
                producer.send(0, 0, np.zeros(4))

        assert fabric.reduce(np.array([7, 2**63 - 1], "u8"), "max").tolist() == [7, 2**63 - 1]

    on_ranks(1, program)


def test_nan_and_negative_times_are_refused_and_infinity_is_accepted():
    nan, inf = float("nan"), float("inf")
    with weir.Fabric("self", lost_after=inf) as fabric:
        for attempt in (lambda: weir.Fabric("self", lost_after=nan), lambda: fabric.conveyor(age=nan),
                        lambda: fabric.conveyor(timeout=nan), lambda: fabric.conveyor(timeout=-1),
                        lambda: fabric.barrier(nan), lambda: weir.launch(1, ["x"], lost_after=nan)):
            with pytest.raises(ValueError, match="nan|-1"):
                attempt()
        for times in (dict(timeout=inf), dict(age=inf), dict(age=-inf)):
            fabric.conveyor(8, **times).close()
        fabric.barrier(inf)


def test_data_of_a_put_is_held_until_the_same_thread_flushes():
    """Not until another one does, which the system calls the same."""
    def run(work):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    put, flushed = [], []
    with weir.Fabric("self") as fabric, fabric.window(1000) as window:
        def copy():
            data = np.ones(4)
            put.append((threading.get_ident(), weakref.ref(data)))
            window.put(0, 0, data)

        def flush():
            flushed.append(threading.get_ident())
            window.flush(0)

        run(copy)
        while len(flushed) < 100 and put[0][0] not in flushed:
            run(flush)
        if put[0][0] not in flushed:
            pytest.skip("no thread got the identity of one that had ended")
        assert put[0][1]() is not None
        run(lambda: (copy(), flush()))
        assert put[1][1]() is None


def test_simulated_ranks_that_wait_for_each_other_get_an_error():
    def program(fabric):
        fabric.progress() if fabric.rank == 0 else fabric.barrier()

    with pytest.raises(weir.Error, match="wait"):
        on_ranks(2, program)


def share_squares(fabric, **options):
    """Shares 200 items over the ranks; returns what each place did, and the squares."""
    results = np.zeros((200, 2), "i8")
    with weir.Runtime("host:cores=1") as runtime:
        data = runtime.wrap(results)

        @runtime.kernel
        def square(part, first):
            part[:, 0] = np.arange(first, first + len(part)) ** 2
            part[:, 1] = fabric.rank

        def enqueue(chunk):
            part = data[chunk.first:chunk.first + chunk.count]
            chunk.stream.compute(square, [weir.write(part)], [chunk.first])
            return chunk.stream.download(part)

        with runtime.share(200, enqueue, fabric=fabric, results=results, **options) as share:
            share.wait(60)
            return share.parts(), results


@pytest.mark.parametrize("scheduler", [None, "onesided", "master"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_share_over_ranks_computes_every_item_once(seed, scheduler):
    def program(fabric):
        parts, results = share_squares(fabric, scheduler=scheduler, chunks="fixed:7")
        if fabric.rank == 0:
            assert [part["rank"] for part in parts] == [0, 1, 2]
            assert sum(part["items"] for part in parts) == 200
            np.testing.assert_array_equal(results[:, 0], np.arange(200) ** 2)
            for part in parts:
                assert (results[:, 1] == part["rank"]).sum() == part["items"]
        else:
            assert [part["rank"] for part in parts] == [fabric.rank]

    on_ranks(3, program, seed=seed)


def test_a_share_that_fails_on_one_rank_fails_on_all():
    def program(fabric):
        with weir.Runtime("host:cores=1") as runtime:
            data = runtime.wrap(np.zeros(10, "i8"))

            def enqueue(chunk):
                if fabric.rank == 1:
                    raise LookupError("no such item")
                return chunk.stream.download(data[chunk.first:chunk.first + chunk.count])

            share = runtime.share(10, enqueue, chunks="static", fabric=fabric)
            with pytest.raises(LookupError if fabric.rank == 1 else weir.Error):
                share.wait(60)
            share.close()

    on_ranks(2, program)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_share_completes_although_a_message_handler_raises(seed):
    def program(fabric):
        told = fail_in_a_handler(fabric)
        share_squares(fabric)
        with told:
            fabric.barrier()

    on_ranks(2, program, seed=seed, progress="thread")


def test_wrong_result_arrays_and_schedulers_of_a_share_are_refused():
    def program(fabric):
        with weir.Runtime("host:cores=1") as runtime:
            for results, error in ((np.zeros(7, "u1"), ValueError), (np.zeros(0, "u1"), ValueError),
                                   (np.zeros((8, 8))[:, 1], TypeError),
                                   (16, TypeError), (np.zeros(8, object), TypeError)):
                with pytest.raises(error):
                    runtime.share(8, lambda chunk: None, fabric=fabric, results=results)
            with pytest.raises(weir.InvalidArgumentError, match="slave"):
                runtime.share(8, lambda chunk: None, fabric=fabric, scheduler="slave")
        fabric.close()
        with weir.Runtime("host:cores=1") as runtime, pytest.raises(weir.Error, match="closed"):
            runtime.share(8, lambda chunk: None, fabric=fabric)

    on_ranks(1, program)


def test_objects_kept_after_their_rank_has_ended_can_be_closed():
    """Windows, conveyors and handlers end with the rank that has them, even if still referenced."""
    kept = []

    def program(fabric):
        window, conveyor = fabric.window(np.zeros(1000, "i8")), fabric.conveyor(8)
        fabric.listen(lambda rank, message: None)
        kept.extend([fabric, window, conveyor, conveyor.producer()])
        fabric.barrier()
        if fabric.rank == 0:
            with contextlib.suppress(weir.Error):  # rank 1 may have left
                window.put(1, 0, np.ones(1000))  # and does not wait for it
                fabric.send(1, b"late")

    on_ranks(2, program, seed=3)
    for each in kept:
        each.close()
    assert len(kept) == 8


def test_a_rank_that_raises_ends_the_others():
    def program(fabric):
        if fabric.rank == 1:
            raise KeyError("lost")
        with pytest.raises(weir.NetworkError):
            fabric.reduce(1)

    with pytest.raises(KeyError, match="lost"):
        on_ranks(2, program)
    kept = []
    on_ranks(1, kept.append)
    with pytest.raises(weir.InvalidArgumentError, match="closed"):
        kept[0].barrier()
    assert "closed" in repr(kept[0])


REAL = """
import sys
import numpy as np
import weir

with weir.Fabric() as fabric:
    assert fabric.ranks == 3
    with fabric.window(np.zeros(1, "i8")) as window:
        window.fetch_add(0, 0, fabric.rank)
        fabric.barrier()
        assert fabric.rank != 0 or window.array[0] == 3
        fabric.barrier()
    assert fabric.communicator.reduce(np.arange(3)).tolist() == [0, 3, 6]
    results = np.zeros(60, "i8")
    with weir.Runtime("host:cores=1") as runtime:
        data, cube = runtime.wrap(results), runtime.kernel("cube", lambda part, first: np.copyto(
            part, np.arange(first, first + len(part)) ** 3))

        def enqueue(chunk):
            part = data[chunk.first:chunk.first + chunk.count]
            chunk.stream.compute(cube, [weir.write(part)], [chunk.first])
            return chunk.stream.download(part)

        with runtime.share(60, enqueue, fabric=fabric, results=results) as share:
            share.wait()
        assert fabric.rank != 0 or (results == np.arange(60) ** 3).all()
    with weir.Runtime("host:cores=1,rank:*/host:cores=1", fabric=fabric) as runtime:
        mine = runtime.kernel("mine", lambda part: part.fill(5))
        if runtime.serve():
            sys.exit()
        assert [each.backend for each in runtime.domains] == ["host", "rank", "rank"]
        x = np.zeros(6)
        data = runtime.wrap(x)
        place = runtime.domain(2).place()
        stream = place.stream()
        stream.compute("mem.set", [weir.write(data[2:4])], [1])
        stream.download(data[2:4])
        stream.synchronize()
        assert x.view("u1").sum() == 16
        try:
            stream.compute(mine, [weir.write(data)])
        except weir.UnsupportedError as error:
            assert "function of Python" in str(error)
        else:
            sys.exit("a function of Python went to another rank")
        place.close()
        with runtime.queue(models=False) as queue:  # it goes where it can
            for part in range(6):
                queue.submit(mine, [weir.write(data[part])])
            try:
                queue.submit(mine, [weir.write(data)], domains=runtime.domains[1:])
            except weir.UnsupportedError as error:
                assert "function of Python" in str(error)
            else:
                sys.exit("a task of Python went to another rank")
        assert x.tolist() == [5] * 6
        print("all is well", flush=True)
"""


def start_by_weir(path, ranks=3):
    code = f"import sys, weir; sys.exit(weir.launch({ranks}, [sys.executable, {str(path)!r}]))"
    return [sys.executable, "-c", code]


def start_by_mpi(command):
    def command_line(path):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
        if command.endswith("openmpi"):
            return [command, "--oversubscribe", "-n", "3", sys.executable, str(path)]
        return [command, "-n", "3", sys.executable, str(path)]
    return command_line


launchers = pytest.mark.parametrize("start", [
    start_by_weir, start_by_mpi("mpirun.openmpi"), start_by_mpi("mpirun.mpich")],
    ids=["weir", "openmpi", "mpich"])


def run_ranks(start, text, path):
    path.write_text(text)
    # Open MPI 5 complains about interfaces of this machine that do not reach each other.
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_btl="^tcp")
    return subprocess.run(start(path), capture_output=True, text=True, timeout=240, env=environment)


@launchers
def test_real_processes_share_windows_work_and_devices(start, tmp_path):
    done = run_ranks(start, REAL, tmp_path / "program.py")
    assert done.returncode == 0 and done.stdout.strip() == "all is well", done.stderr


UNCLOSED = """
import os
import re
import sys
import threading
import weir

fabric = weir.Fabric()
sum = fabric.reduce(fabric.rank + 1)
if fabric.rank == 0:
    os.write(1, f"sum {sum}\\n".encode())
"""
WAYS = {
    "return": ("", ["sum 6"]),
    "exit": ("sys.exit(0)", ["sum 6"]),
    "daemon": ("threading.Thread(target=fabric.progress, daemon=True).start()", ["sum 6"]),
    "early": ("""
if fabric.rank == 2:
    sys.exit(0)
try:
    fabric.reduce(1)
except weir.NetworkError as error:
    own = re.sub("rank [01] has given up: ", "", str(error))  # the first that notices tells the other
    os.write(1, f"told: {own}\\n".encode())  # at once, as another rank writes there, too
""", ["sum 6"] + 2 * ["told: sum of 1 int64 to all ranks failed: rank 2 has left the fabric"]),
}


@launchers
@pytest.mark.parametrize("way", WAYS)
def test_ranks_that_end_without_close_exit_with_success(start, way, tmp_path):
    code, lines = WAYS[way]
    done = run_ranks(start, UNCLOSED + code, tmp_path / "program.py")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, lines), done.stderr
    assert done.stderr == ""


INTERRUPTED = """
import os
import signal
import threading
import weir

with weir.Fabric() as fabric:
    if fabric.rank == 1:
        fabric.listen(lambda rank, message: None)
        fabric.progress()
    else:
        try:
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
            fabric.window(8)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        fabric.send(1, b"go")
"""


def test_an_interrupt_ends_the_making_of_a_window(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(INTERRUPTED)
    code = f"import sys, weir; sys.exit(weir.launch(2, [sys.executable, {str(path)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


INTERRUPTED_GROUP = """
import os
import signal
import threading
import weir


def say(text):  # in one piece: the ranks share an output
    os.write(1, f"{text}\\n".encode())


with weir.Fabric() as fabric:
    group = fabric.communicator
    if fabric.rank == 1:
        fabric.listen(lambda rank, message: None)
        fabric.progress()
        try:
            group.barrier()
        except weir.NetworkError:
            say("failed")
    else:
        try:
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
            group.OPERATION()
        except KeyboardInterrupt:
            say("interrupted")
        group.revoke()  # in case that the interrupt came before the operation
        fabric.send(1, b"go")
    say(f"{group.shrink().size} ranks")
"""


@pytest.mark.parametrize("operation", ["barrier", "shrink"])
def test_an_interrupt_ends_a_collective_operation_and_the_group_can_be_shrunk(operation, tmp_path):
    text = INTERRUPTED_GROUP.replace("OPERATION", operation)
    done = run_ranks(lambda path: start_by_weir(path, 2), text, tmp_path / "program.py")
    lines = ["2 ranks", "2 ranks", "failed", "interrupted"]
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, lines), done.stderr


def test_launch_returns_the_exit_status_of_the_ranks():
    assert weir.launch(2, [sys.executable, "-c", "import sys; sys.exit(7)"]) == 7
    with pytest.raises(weir.InvalidArgumentError):
        weir.launch(0, [sys.executable])


def test_a_fabric_of_one_rank_works_and_an_unknown_kind_is_refused():
    with weir.Fabric("self") as fabric:
        assert (fabric.rank, fabric.ranks) == (0, 1) and fabric.reduce(7) == 7
        with weir.Runtime("host:cores=1", fabric=fabric) as runtime:
            assert runtime.serve() is False
    with pytest.raises(weir.InvalidArgumentError):
        weir.Fabric("pigeon")


def test_a_python_thread_runs_while_ranks_wait():
    """A thread of Python runs while all ranks wait."""
    ran = threading.Event()

    def program(fabric):
        if fabric.rank == 0:
            assert ran.wait(60)
        fabric.barrier()

    helper = threading.Thread(target=ran.set)
    threading.Timer(0, helper.start).start()
    on_ranks(2, program)
    helper.join()
