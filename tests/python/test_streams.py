"""Streams, events, kernels and queues."""

import asyncio
import ctypes
import json
import threading

import numpy as np
import pytest
import weir


def test_the_ten_line_example_scales_both_halves_of_an_array(runtime, stream):
    x = np.arange(1024.0)
    data = runtime.wrap(x)

    @runtime.kernel
    def scale(part, factor):
        part *= factor

    for part in (data[:512], data[512:]):
        stream.upload(part)
        stream.compute(scale, [weir.readwrite(part)], [2.0])
        stream.download(part)
    stream.synchronize()
    np.testing.assert_array_equal(x, 2 * np.arange(1024.0))


def test_scalars_keep_their_values(runtime, stream):
    given = [1, -2, 2**63, True, 2.5, np.float32(0.1), np.int16(-3), np.uint64(2**64 - 1),
             np.float64(1e300), "N"]
    seen = []
    runtime.kernel("take", lambda *scalars: seen.extend(scalars))
    stream.compute("take", [], given)
    stream.synchronize()
    assert seen == [*(given[:-1]), ord("N")]


@pytest.mark.parametrize("scalar,error", [
    ("NN", TypeError), (None, TypeError), ([1], TypeError), (1j, TypeError), (2**64, OverflowError),
    (np.zeros(1), TypeError)])
def test_values_that_cannot_be_scalars_are_refused(runtime, stream, scalar, error):
    runtime.kernel("take", lambda *scalars: None)
    with pytest.raises(error):
        stream.compute("take", [], [scalar])


@pytest.mark.parametrize("call,error,message", [
    (lambda s, x: s.compute("mem.sett", [weir.write(x)], [0]), weir.NotFoundError, "did you mean"),
    (lambda s, x: s.compute(3, []), TypeError, "a kernel is"),
    (lambda s, x: s.compute("mem.set", [x], [0]), TypeError, r"weir\.read\(x\)"),
    (lambda s, x: s.compute("mem.set", 3, [0]), TypeError, "sequence"),
    (lambda s, x: s.compute("mem.set", [weir.write(x)], 0), TypeError, "sequence"),
    (lambda s, x: s.wait(3), TypeError, "events"),
    (lambda s, x: s.synchronize(-1), ValueError, "not a time"),
    (lambda s, x: s.synchronize(float("nan")), ValueError, "not a time"),
])
def test_wrong_arguments_of_stream_calls_are_refused_with_a_reason(runtime, stream, call, error, message):
    with pytest.raises(error, match=message):
        call(stream, runtime.buffer(4))


def test_the_gemm_tile_kernel_gives_the_product_of_numpy(runtime, stream):
    random = np.random.default_rng(1)
    for dtype, letter in (("f8", "d"), ("f4", "s")):
        a, b = (np.asfortranarray(random.random((6, 6)), dtype) for _ in range(2))
        c = np.zeros((6, 6), dtype, "F")
        buffers = [runtime.wrap(each) for each in (a, b, c)]
        for each in buffers:
            stream.upload(each)
        stream.compute(f"blas.{letter}gemm", [weir.read(a[1:4, :5]), weir.read(b[:5, 2:4]),
                                              weir.readwrite(c[:3, 1:3])], ["N", "N", 1.0, 0.0])
        stream.download(buffers[2])
        stream.synchronize()
        np.testing.assert_allclose(c[:3, 1:3], a[1:4, :5] @ b[:5, 2:4], 1e-5)


def test_tile_kernels_refuse_wrong_arrays(runtime, stream):
    good = runtime.buffer((4, 4), order="F")
    for wrong, error, message in (
            (runtime.buffer((4, 4), "f4", "F"), TypeError, "operand 2 of 'blas.dgemm' is of dtype float32"),
            (runtime.buffer((4, 4)), ValueError, "not column-major"),
            (runtime.buffer((4, 4, 4), order="F"), ValueError, "3 axes")):
        with pytest.raises(error, match=message):
            stream.compute("blas.dgemm", [weir.read(good), weir.read(good), weir.readwrite(wrong)],
                           ["N", "N", 1.0, 0.0])


def test_a_stream_waits_for_an_event_of_another_stream():
    with weir.Runtime("host:cores=2") as runtime:
        first, second = (place.stream() for place in runtime.domain().partition(2, True))
        x = runtime.buffer(4)
        go = threading.Event()

        @runtime.kernel
        def store(part, value):
            go.wait(30)
            part[...] = value

        done = first.compute(store, [weir.write(x)], [1])
        second.wait(done, [x])
        later = second.compute(store, [weir.write(x)], [2])
        assert not later.done and later.status == "pending"
        go.set()
        runtime.wait([done, later])
        assert (x.array == 2).all() and later.status == "ok"
        assert runtime.wait_any([done, later]) == 0


def test_a_transfer_between_devices_copies_the_buffer():
    with weir.Runtime("host:cores=1,sim:cores=1,sim:cores=1") as runtime:
        x, y = runtime.wrap(np.arange(8.0)), runtime.buffer(8)
        _, one, two = runtime.domains
        first, second = one.place().stream(), two.place().stream()
        first.upload(x)
        second.wait(first.transfer(x, y, source_domain=one, target_domain=two))
        second.transfer(y, y, source_domain=two)
        second.synchronize()
        np.testing.assert_array_equal(y.array, x.array)


def test_waits_end_with_a_timeout_error(runtime):
    if runtime.domain().virtual_time:
        pytest.skip("a thread that waits drives the time there")
    stream = runtime.domain().place(1).stream()
    go = threading.Event()
    event = stream.compute(runtime.kernel("hold", lambda: go.wait(30)), [])
    for wait in (event.wait, stream.synchronize, runtime.synchronize,
                 lambda seconds: runtime.wait([event], seconds)):
        with pytest.raises(weir.TimeoutError):
            wait(0.01)
    with pytest.raises(TimeoutError):
        event.wait(0)
    go.set()
    event.wait(30)


def test_futures_and_await_return_or_raise_like_the_action(runtime, stream):
    x = runtime.buffer(4)

    @runtime.kernel
    def fail(part):
        raise LookupError("no such cell")

    async def run():
        await stream.compute("mem.set", [weir.write(x)], [0])
        with pytest.raises(weir.KernelError, match="no such cell") as caught:
            await stream.compute(fail, [weir.readwrite(x)])
        assert isinstance(caught.value.__cause__, LookupError)

    asyncio.run(run())
    future = stream.compute(fail, [weir.readwrite(x)]).future()
    with pytest.raises(weir.KernelError, match="no such cell"):
        stream.synchronize()
    assert isinstance(future.exception(30), weir.PoisonedError)
    future = stream.mark().future()
    stream.synchronize()
    assert future.result(30) is None


def test_callbacks_get_the_status_of_their_action(runtime, stream):
    seen = []
    x = runtime.buffer(4)
    stream.compute("mem.set", [weir.write(x)], [0]).on_complete(lambda *what: seen.append(what))
    event = stream.compute(runtime.kernel("fail", lambda: 1 / 0), [])
    event.on_complete(lambda status, message: seen.append(status))
    with pytest.raises(weir.KernelError):
        stream.synchronize()
    assert seen[0] == ("ok", "") and seen[1] == "kernel_error"


def test_a_queue_gives_the_result_of_the_sequential_program():
    with weir.Runtime("host:cores=1,sim:cores=1") as runtime:
        x = np.zeros((4, 100))
        tiles = runtime.wrap(x)

        @runtime.kernel
        def add(target, source, factor):
            target += factor * source + 1

        with runtime.queue(models=False) as queue:
            for step in range(5):
                for i in range(4):
                    queue.submit(add, [weir.readwrite(tiles[i]), weir.read(tiles[(i + 1) % 4])],
                                 [step], name=f"add {i}")
            queue.acquire(tiles[0])
            queue.flush(tiles[1]).wait()
            queue.synchronize()
            assert (queue.submitted, sum(each["tasks"] for each in queue.shares())) == (20, 20)
        expected = np.zeros((4, 100))
        for step in range(5):
            for i in range(4):
                expected[i] += step * expected[(i + 1) % 4] + 1
        np.testing.assert_array_equal(x, expected)


def test_a_queue_uses_the_domains_and_the_place_that_a_task_names():
    with weir.Runtime("host:cores=1,sim:cores=1") as runtime:
        x = runtime.buffer(100)
        host, card = runtime.domains
        places = [host.place(name="here"), card.place(name="there")]
        queue = runtime.queue(places=places, models=False)
        for _ in range(3):
            queue.submit("mem.set", [weir.write(x)], [1], domains=[card])
        queue.submit("mem.set", [weir.write(x)], [2], place=places[0])
        queue.synchronize()
        assert [(each["place"], each["tasks"]) for each in queue.shares()] == [
            ("here", 1), ("there", 3)]


HOST_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def test_a_native_function_is_called_once_and_other_values_are_refused(runtime, stream):
    calls = []

    @HOST_FUNCTION
    def function(call):
        calls.append(call)
        return 0

    kernel = runtime.native_kernel("native", function)
    stream.compute(kernel, [])
    stream.synchronize()
    assert len(calls) == 1
    for wrong, error in ((0, ValueError), ("text", TypeError)):
        with pytest.raises(error):
            runtime.native_kernel("wrong", wrong)


def test_a_flat_kernel_gets_shapes_and_scalars_and_its_status_is_raised(runtime, stream):
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p),
                                ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double))
    seen = []

    @function
    def record(operands, shapes, scalars):
        seen.extend([bool(operands[0]), shapes[:5], scalars[:2]])
        return int(scalars[0])

    x = runtime.buffer((4, 6), "f4")
    kernel = runtime.native_kernel("record", record, flat=True)
    stream.compute(kernel, [weir.read(x[1:3, :5])], [3, 0.5])
    with pytest.raises(weir.UnsupportedError):
        stream.synchronize()
    assert seen == [True, [20, 2, 1, 24, 0], [3.0, 0.5]]
    for status in (-1, 7, 14):  # 7 is what a wait returns whose time is over
        stream.compute(kernel, [weir.read(x)], [status, 0])
        with pytest.raises(weir.KernelError, match=f"returned {status}"):
            stream.synchronize()


def test_a_numba_function_runs_as_a_flat_kernel(runtime, stream):
    numba = pytest.importorskip("numba")
    double, whole = numba.types.float64, numba.types.int64
    pointer = numba.types.CPointer

    @numba.cfunc(numba.types.int32(pointer(pointer(double)), pointer(whole), pointer(double)))
    def scale(operands, shapes, scalars):
        x = numba.carray(operands[0], shapes[0] // 8)
        x *= scalars[0]
        return 0

    data = runtime.wrap(np.arange(100.0))
    stream.upload(data)
    kernel = runtime.native_kernel("scale", scale, flat=True)
    stream.compute(kernel, [weir.readwrite(data[10:])], [3])
    stream.download(data)
    stream.synchronize()
    expected = np.arange(100.0)
    expected[10:] *= 3
    np.testing.assert_array_equal(data.array, expected)


def test_a_kernel_name_cannot_be_taken_twice(runtime):
    runtime.kernel("mine", lambda: None)
    with pytest.raises(weir.InvalidArgumentError):
        runtime.kernel("mine", lambda: None)
    assert runtime.kernel("mine").name == "mine"


SAXPY = """
#include <weir/portable.h>
WEIR_KERNEL(saxpy, 64, 1, 1, WEIR_GLOBAL float* WEIR_RESTRICT y,  // y = y + a x
            WEIR_GLOBAL const float* WEIR_RESTRICT x, float a, weir_i64 n) {
  WEIR_ITEMS_LAST_BELOW(n) { y[WEIR_ITEM_X] += a * x[WEIR_ITEM_X]; }
}
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def test_a_portable_kernel_computes_saxpy_and_is_compiled_once(runtime, stream, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    x, y = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
    buffers = [runtime.wrap(each) for each in (x, y)]
    kernel = runtime.portable_kernel(SAXPY, "n")
    for each in buffers:
        stream.upload(each)
    stream.compute(kernel, [weir.readwrite(y), weir.read(x)], [2.0, 1000])
    stream.download(y)
    stream.synchronize()
    np.testing.assert_array_equal(y, 2 * np.arange(1000) + 1)
    assert len(list(cache.rglob("*.so"))) == 1


def test_a_relative_cache_folder_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert weir._portable.cache_folder() == tmp_path / ".cache" / "weir" / "python"


def test_wrong_portable_kernels_and_a_missing_compiler_are_refused(card, cache, monkeypatch):
    runtime = card
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    for source, message in (("", "no WEIR_KERNEL"), (SAXPY.replace(")", ""), "no end")):
        with pytest.raises(ValueError, match=message):
            runtime.portable_kernel(source, "n")
    with pytest.raises(ValueError, match="'daxpy' is not there"):
        runtime.portable_kernel(SAXPY, "n", name="daxpy")
    with pytest.raises(weir.KernelError, match="nonsense"):
        runtime.portable_kernel(SAXPY.replace("a * x", "nonsense * x"), "n")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(weir.UnavailableError, match="set CXX"):
        runtime.portable_kernel(SAXPY.replace("64", "32"), "n")


def test_a_trace_records_the_actions_of_the_runtime(card, tmp_path):
    stream = card.domain().place(1).stream()
    x = card.buffer(1000)
    with card.trace(tmp_path / "run.json") as trace:
        stream.upload(x)
        stream.compute("mem.set", [weir.write(x)], [0], name="clear")
    assert trace.summary["actions"] == 2 and trace.summary["critical_path_s"] > 0
    events = json.loads((tmp_path / "run.json").read_text())
    assert "clear" in json.dumps(events)


def test_domains_are_described_and_unknown_ones_are_refused(runtime):
    assert runtime.domain().name in {each["name"] for each in runtime.describe()["domains"]}
    assert runtime.domain(runtime.domain().name).index == 0
    assert runtime.domain().name in repr(runtime) and "<table>" in runtime._repr_html_()
    for key in (-1, 7, "nowhere"):
        with pytest.raises(weir.NotFoundError):
            runtime.domain(key)
    assert runtime.stats()["actions_failed"] == 0 and runtime.now() >= 0


def test_wrong_domains_of_a_runtime_are_refused():
    with pytest.raises(weir.InvalidArgumentError, match="speed"):
        weir.Runtime("sim:speed=3")
    with pytest.raises(TypeError):
        weir.Runtime(3)


@pytest.mark.parametrize("kernel", [lambda out, a: a * 2, lambda out, a: np.sum(a),
                                    lambda out, a: out.copy()])
def test_a_kernel_that_returns_its_result_fails_with_a_hint_to_write_it(runtime, stream, kernel):
    out, a = runtime.wrap(np.zeros(4)), runtime.wrap(np.ones(4))
    stream.compute(runtime.kernel("double", kernel), [weir.write(out), weir.read(a)])
    with pytest.raises(weir.KernelError, match=r"'double' returned a \w+, which nothing reads: "
                                               r"a kernel writes to its operands, as in `out\[") as told:
        stream.synchronize()
    assert isinstance(told.value.__cause__, TypeError)


@pytest.mark.parametrize("kernel", [lambda out, a: np.multiply(a, 2, out=out),
                                    lambda out, a: np.multiply(a[1:], 2, out=out[1:]),
                                    lambda out, a: out.fill(2), lambda out, a: True])
def test_a_kernel_that_returns_an_operand_none_or_true_succeeds(runtime, stream, kernel):
    out, a = runtime.wrap(np.zeros(4)), runtime.wrap(np.ones(4))
    stream.upload(a)
    stream.compute(runtime.kernel("double", kernel), [weir.write(out), weir.read(a)])
    stream.synchronize()


def test_all_kernels_run_with_a_bound_on_actions_in_flight(runtime):
    """The thread that enqueues waits, and kernels in Python run meanwhile."""
    ran = []
    runtime.kernel("note", lambda: ran.append(len(ran)))
    with runtime.domain().place(1, oversubscribe=True) as place:
        stream = place.stream(max_in_flight=2)
        for _ in range(100):
            stream.compute("note", [])
        stream.synchronize()
    assert len(ran) == 100
    with runtime.queue(models=False, max_in_flight=3) as queue:
        for _ in range(100):
            queue.submit("note", [])
        queue.synchronize()
    assert len(ran) == 200
