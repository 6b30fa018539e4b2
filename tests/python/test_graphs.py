"""Graphs: calls of queues and streams that are recorded once and launched many times."""

import gc
import threading
import weakref

import numpy as np
import pytest
import weir

N, BLOCK = 96, 16
PRIME = 1_000_003


@pytest.fixture
def runtime():
    with weir.Runtime("host") as made:
        yield made


@pytest.fixture(params=[1, 2])
def queue(runtime, request):
    """On a place of one core, and of two."""
    place = runtime.domain().place(request.param, oversubscribe=True)
    with runtime.queue(places=[place], name="q", models=False) as made:
        yield made


@pytest.fixture
def adder(runtime, queue):
    """A buffer of zeros, and a function that submits the addition of a number to it."""
    data = runtime.buffer(8, name="sums")

    @runtime.kernel
    def add(part, number):
        part += number

    def submit(number, part=data):
        return queue.submit(add, [weir.readwrite(part)], [number])

    submit.data, submit.kernel = data, add
    return submit


def sweep(out, diagonal, rest, x, b):
    np.divide(b - rest @ x, diagonal, out=out)


def system(rng):
    matrix = rng.random((N, N)) + N * np.eye(N)
    return np.diag(matrix).copy(), matrix - np.diag(np.diag(matrix)), rng.random(N), matrix


def submit_sweep(submit, kernel, x, y, diagonal, rest, b):
    for i in range(0, N, BLOCK):
        rows = slice(i, i + BLOCK)
        submit(kernel, [weir.write(y[rows]), weir.read(diagonal[rows]), weir.read(rest[rows]),
                        weir.read(x), weir.read(b[rows])])


def jacobi(diagonal, rest, b, sweeps):
    x = np.zeros(N)
    for _ in range(sweeps):
        y = np.empty(N)
        sweep(y, diagonal, rest, x, b)
        x = y
    return x


def test_a_solver_that_swaps_buffers_at_each_launch_gives_the_result_of_numpy(runtime, queue):
    diagonal, rest, b, matrix = system(np.random.default_rng(1))
    x, y = np.zeros(N), np.zeros(N)
    kept = [runtime.wrap(each) for each in (diagonal, rest, b, x, y)]
    kernel = runtime.kernel("sweep", sweep)
    with queue.record(name="sweep", record_only=True) as graph:
        submit_sweep(queue.submit, kernel, x, y, diagonal, rest, b)
    assert not graph.recording and graph.name == "sweep"
    assert (graph.calls, graph.buffers, graph.dependences) == (N // BLOCK, 5, 0)
    for _ in range(20):
        graph.launch()                                # y of x
        graph.launch([(x, y), (y, x)])                # x of y
    queue.synchronize()
    assert graph.launches == 40 and 1 <= graph.cores <= 2
    assert np.array_equal(x, jacobi(diagonal, rest, b, 40))
    assert np.allclose(matrix @ x, b)
    assert kept and repr(graph) == "<weir.Graph 'sweep': 6 calls, 40 launches>"


@pytest.mark.parametrize("domain", ["host:cores=1", "sim:cores=2,gbps=50", "sim:cores=1,clock=virtual,gbps=6"])
def test_launches_of_a_recorded_stream_give_the_result_of_numpy(domain):
    diagonal, rest, b, _ = system(np.random.default_rng(2))
    with weir.Runtime(domain) as runtime:
        stream = runtime.domain().place().stream()
        x, y = runtime.buffer(N, name="x"), runtime.buffer(N, name="y")
        given = [runtime.wrap(each) for each in (diagonal, rest, b)]
        for each in (x, y, *given):
            stream.upload(each)
        kernel = runtime.kernel("sweep", sweep)
        with stream.record() as graph:
            submit_sweep(stream.compute, kernel, x, y, *given)
        for i in range(9):
            graph.launch({} if i % 2 else {x: y, y: x})
        stream.download(x)
        stream.download(y)
        stream.synchronize()
        assert np.array_equal(x.array, jacobi(diagonal, rest, b, 10))  # one sweep more: the recording
        assert np.array_equal(y.array, jacobi(diagonal, rest, b, 9))


def test_calls_run_while_they_are_recorded(queue, adder):
    with queue.record() as graph:
        assert graph.recording and graph.calls == 0
        event = adder(1)
        adder(2)
    event.wait()
    queue.synchronize()
    assert adder.data.array[0] == 3
    graph.launch().wait()
    assert adder.data.array[7] == 6
    assert (graph.calls, graph.buffers, graph.dependences, graph.parameters) == (2, 1, 1, 0)


def test_record_only_runs_nothing(queue, adder):
    seen = []
    with queue.record(record_only=True) as graph:
        event = adder(1)
        event.wait()
        event.on_complete(lambda status, message: seen.append(status))
        assert event.done and event.status == "ok"
    queue.synchronize()
    assert seen == ["ok"] and not adder.data.array.any()
    graph.launch().wait()
    assert (adder.data.array == 1).all()


def test_a_launch_gives_other_values_to_parameters(runtime, queue):
    """One kernel of each type of scalar, and a constant between the parameters."""
    seen = []
    data = runtime.buffer(1)
    note = runtime.kernel("note", lambda part, *scalars: seen.append(scalars))
    with queue.record() as graph:
        for _ in range(2):
            queue.submit(note, [weir.readwrite(data)],
                         [weir.parameter(0, 0.5), 7, weir.parameter(2, 3), weir.parameter(1, np.float32(0.25))])
    assert graph.parameters == 3
    recorded = [(0.5, 7, 3, 0.25)] * 2
    queue.synchronize()
    assert seen == recorded
    given = [([], (0.5, 7, 3, 0.25)), ([1, 2, -5], (1.0, 7, -5, 2.0)), ((-1.5, 0.75, True), (-1.5, 7, 1, 0.75))]
    for parameters, expected in given:
        seen.clear()
        graph.launch(parameters=parameters).wait()
        assert seen == [expected] * 2
        assert [type(each) for each in seen[0]] == [float, int, int, float]


def test_a_launch_gives_another_value_to_a_parameter_of_a_portable_kernel(runtime, queue):
    axpy = runtime.portable_kernel("""
        WEIR_KERNEL(axpy, 64, 1, 1, WEIR_GLOBAL double* WEIR_RESTRICT y,
                    WEIR_GLOBAL const double* WEIR_RESTRICT x, double a, weir_i64 n) {
          WEIR_ITEMS_LAST_BELOW(n) { y[WEIR_ITEM_X] += a * x[WEIR_ITEM_X]; }
        }""", "n", parallel=False)
    x, y = np.arange(300.0), np.zeros(300)
    kept = runtime.wrap(x), runtime.wrap(y)
    with queue.record(record_only=True) as graph:
        for i in range(0, 300, 100):
            queue.submit(axpy, [weir.readwrite(y[i:i + 100]), weir.read(x[i:i + 100])], [weir.parameter(0, 1.0), 100])
    for a in range(1, 6):
        graph.launch(parameters=[a])
    queue.synchronize()
    assert np.array_equal(y, 15 * x) and kept


def test_launches_and_tasks_run_in_the_order_of_submission(runtime, queue, adder):
    twice = runtime.kernel("twice", lambda part: np.multiply(part, 2, out=part))
    with queue.record(record_only=True) as graph:
        adder(1)
    expected = 0
    for _ in range(20):
        queue.submit(twice, [weir.readwrite(adder.data)])
        graph.launch()
        expected = 2 * expected + 1
    queue.synchronize()
    assert adder.data.array[0] == expected


def test_dependent_python_kernels_of_a_graph_give_the_sequential_result(runtime, queue):
    """Kernels that hold the lock of Python, of chains that depend on each other, in other threads."""
    cells = [runtime.buffer(1, "int64", name=f"c{i}") for i in range(8)]

    @runtime.kernel
    def mix(out, left, right, number):
        total = 0
        for i in range(200):  # long enough for Python to give the lock to another thread at times
            total += i
        out[0] = (3 * left[0] + right[0] + number + total) % PRIME

    def steps():
        for number in range(160):
            at = (5 * number) % 8
            yield at, (at + 1 + number % 3) % 8, (at + 4) % 8, number

    expected = [0] * 8
    with queue.record(record_only=True) as graph:
        for at, left, right, number in steps():
            queue.submit(mix, [weir.write(cells[at]), weir.read(cells[left]), weir.read(cells[right])], [number])
    events = [graph.launch() for _ in range(10)]
    for _ in events:
        for at, left, right, number in steps():
            expected[at] = (3 * expected[left] + expected[right] + number + 19900) % PRIME
    runtime.wait(events)
    assert [each.array[0] for each in cells] == expected


def test_a_failed_kernel_fails_the_launch(runtime, queue, adder):
    fails = []
    other = runtime.buffer(8, name="other")

    @runtime.kernel
    def maybe(part):
        if fails:
            raise KeyError("no more paper")

    with queue.record(name="loop") as graph:
        queue.submit(maybe, [weir.readwrite(adder.data)])
        adder(1)
        adder(1, other)
    queue.synchronize()
    fails.append(True)
    event, later = graph.launch(), adder(1)
    with pytest.raises(weir.KernelError, match="call 1 of 3, 'maybe': KeyError: 'no more paper'") as failure:
        event.wait()
    assert isinstance(failure.value.__cause__, KeyError)
    with pytest.raises(weir.PoisonedError, match="loop"):
        later.wait()
    with pytest.raises(weir.KernelError, match="no more paper"):
        queue.synchronize()
    assert adder.data.array[0] == 1 and other.array[0] == 2
    fails.clear()
    graph.launch().wait()
    assert adder.data.array[0] == 2


def test_an_exception_discards_the_graph(queue, adder):
    with pytest.raises(ZeroDivisionError):
        with queue.record() as graph:
            adder(1)
            1 / 0
    for call in (graph.launch, lambda: graph.calls):
        with pytest.raises(weir.InvalidArgumentError, match="the graph has been closed"):
            call()
    assert repr(graph) == "<weir.Graph, closed>"
    with pytest.raises(KeyboardInterrupt):
        with queue.record():
            raise KeyboardInterrupt
    with pytest.raises(weir.InvalidArgumentError, match="recorded no kernel call"):
        with queue.record():
            pass
    with queue.record() as second:  # nothing of them is left
        adder(1)
    second.launch().wait()
    assert second.calls == 1 and adder.data.array[0] == 3


def test_closing_in_the_block_ends_the_recording(queue, adder):
    with pytest.raises(weir.InvalidArgumentError, match="the graph has been closed"):
        with queue.record() as graph:
            adder(1)
            graph.close()
            with pytest.raises(ValueError, match="not being recorded"):
                adder(weir.parameter(0, 1.0))
    with queue.record() as first:
        adder(1)
    with queue.record() as second:
        adder(weir.parameter(0, 1))
        first.close()  # which is another one
        adder(weir.parameter(0, 1))
    second.launch(parameters=[10]).wait()
    assert adder.data.array[0] == 4 + 20


def test_nested_and_unsupported_recordings_are_refused(queue, adder):
    recording = queue.record()
    with recording:
        adder(1)
        with pytest.raises(weir.BusyError, match="has begun already"):
            recording.__enter__()
        with pytest.raises(weir.BusyError, match="is being recorded already"):
            queue.record().__enter__()
        with pytest.raises(weir.UnsupportedError, match="REDUCE cannot be recorded"):
            queue.submit(adder.kernel, [weir.reduce(adder.data)], [1], combine=adder.kernel)
    with queue.record() as graph:
        adder(1)
        with pytest.raises(weir.InvalidArgumentError, match="recording has not ended"):
            graph.launch()
    with pytest.raises(weir.UnsupportedError, match="launch of a graph cannot be recorded"):
        with queue.record():
            graph.launch()
    with weir.Runtime("host:cores=1,sim:cores=1") as both:
        with pytest.raises(weir.UnsupportedError, match="queue with one place, in host memory"):
            both.queue().record().__enter__()


def test_waits_and_copies_of_a_stream_cannot_be_recorded(card):
    place = card.domain().place()
    stream, other = place.stream(), place.stream()
    data = card.buffer(8)
    with pytest.raises(weir.UnsupportedError, match="wait for events cannot be recorded"):
        with stream.record():
            stream.wait(other.mark())
    with pytest.raises(weir.UnsupportedError, match="transfer that copies"):
        with stream.record():
            stream.upload(data)


def test_bindings_of_another_shape_or_of_unknown_buffers_are_refused(runtime, queue, adder):
    with queue.record(name="loop") as graph:
        adder(1)
    data, good = adder.data, runtime.buffer(8, name="good")
    frozen = np.zeros(8)
    frozen.flags.writeable = False
    locked = runtime.wrap(frozen, "locked")

    def refused(error, match, bindings):
        with pytest.raises(error, match=match):
            graph.launch(bindings)

    refused(ValueError, "'small' differs in shape", {data: runtime.buffer(4, name="small")})
    refused(ValueError, "differs in shape, dtype", {data: runtime.buffer(8, "int64")})
    refused(ValueError, "differs in shape", {data: runtime.buffer((4, 2))})
    refused(ValueError, "'good' in graph 'loop', which does not use it", {good: data})
    refused(ValueError, "a part of buffer 'good'", {data: good[:4]})
    refused(ValueError, "a part of buffer 'sums'", [(data.array[4:], good)])
    refused(ValueError, "'locked' is read-only", {data: locked})
    refused(ValueError, "a binding is a pair", [(data, good, good)])
    refused(TypeError, "a binding is a pair", [7])
    refused(TypeError, "bindings are", 7)
    refused(weir.NotFoundError, "no buffer holds this array", {data: np.zeros(8)})
    with weir.Runtime("host:cores=1") as second:
        refused(ValueError, "another runtime", {data: second.buffer(8)})
    queue.synchronize()
    assert graph.launches == 0 and not good.array.any() and data.array[0] == 1
    graph.launch({data: good}).wait()
    assert data.array[0] == 1 and good.array[0] == 1


def test_a_binding_with_another_order_of_elements_is_refused(runtime, queue):
    rows, columns = runtime.buffer((4, 4)), runtime.buffer((4, 4), order="F")
    fill = runtime.kernel("fill", lambda part: part.fill(1))
    with queue.record() as graph:
        queue.submit(fill, [weir.write(rows[0])])
    with pytest.raises(ValueError, match="order"):
        graph.launch({rows: columns})


def test_binding_one_buffer_for_two_is_refused(runtime, queue):
    first, second, third = (runtime.buffer(8, name=name) for name in ("first", "second", "third"))
    nothing = runtime.kernel("nothing", lambda *parts: None)
    with queue.record() as graph:
        queue.submit(nothing, [weir.read(first), weir.write(second)])
    with pytest.raises(weir.InvalidArgumentError, match="'second' would stand for two buffers"):
        graph.launch({first: second})
    first.close()
    with pytest.raises(weir.InvalidArgumentError, match="buffer 'first' has been destroyed"):
        graph.launch()
    graph.launch({first: third}).wait()


def test_wrong_parameters_of_recordings_and_launches_are_refused(queue, adder):
    with pytest.raises(ValueError, match="not being recorded: pass the value alone"):
        adder(weir.parameter(0, 1.0))
    with pytest.raises(ValueError, match="no parameter -1"):
        weir.parameter(-1, 1.0)
    with pytest.raises(TypeError):
        weir.parameter(0, [1.0])
    with queue.record(name="loop", record_only=True) as graph:
        adder(weir.parameter(1, 1))
        with pytest.raises(TypeError, match="parameter 1 is of type float here and int in an earlier call"):
            adder(weir.parameter(1, 1.0))
        with pytest.raises(weir.InvalidArgumentError, match="parameter 1000 of graph 'loop'"):
            adder(weir.parameter(1000, 1.0))
    assert (graph.calls, graph.parameters) == (1, 2)
    with pytest.raises(weir.InvalidArgumentError, match="has parameter 1, but the launch gives 1"):
        graph.launch(parameters=[1])
    with pytest.raises(TypeError, match="parameter 1 of graph 'loop' is of type int, not float"):
        graph.launch(parameters=[0, 2.0])
    with pytest.raises(ValueError, match="does not fit"):
        graph.launch(parameters=[0, 2**63])
    with pytest.raises(TypeError, match="scalar 1 is a"):
        graph.launch(parameters=[0, weir.parameter(1, 1)])
    with pytest.raises(TypeError, match="parameters are a sequence"):
        graph.launch(parameters=1)
    queue.synchronize()
    assert graph.launches == 0


def test_a_graph_keeps_its_buffers_until_it_is_closed(runtime, queue, adder):
    array = np.zeros(8)
    seen = weakref.ref(array)
    data = runtime.wrap(array)
    with queue.record(record_only=True) as graph:
        adder(1, data)
    del array, data
    gc.collect()
    assert seen() is not None
    with graph:
        graph.launch().wait()
        assert seen()[3] == 1
    gc.collect()
    assert seen() is None
    graph.close()  # again


def test_closing_a_graph_waits_for_its_launches(queue, adder):
    with queue.record(record_only=True) as graph:
        for _ in range(50):
            adder(1)
    for _ in range(10):
        graph.launch()
    graph.close()
    assert adder.data.array[0] == 500


def test_launching_a_graph_of_a_closed_queue_or_runtime_is_refused():
    runtime = weir.Runtime("host:cores=1")
    queue, data = runtime.queue(models=False), runtime.buffer(8)
    with queue.record() as graph:
        queue.submit("mem.set", [weir.write(data)], [1])
    queue.close()
    with pytest.raises(weir.InvalidArgumentError, match="the queue has been closed"):
        graph.launch()
    assert graph.calls == 1
    runtime.close()
    with pytest.raises(weir.InvalidArgumentError, match="the runtime has been closed"):
        graph.launch()
    graph.close()


def test_four_threads_can_launch_one_graph(queue, adder):
    with queue.record(record_only=True) as graph:
        adder(weir.parameter(0, 1))

    def launch():
        for _ in range(50):
            graph.launch(parameters=[2])
            assert graph.launches > 0 and graph.cores >= 0

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    queue.synchronize()
    assert adder.data.array[0] == 400 and graph.launches == 200
