"""Which memory of an array an action touches, and what a kernel sees of it."""

import array
import gc
import weakref

import numpy as np
import pytest
import weir

VIEWS = {
    "all": lambda x: x,
    "plane": lambda x: x[1],
    "rows": lambda x: x[:, 1:3],
    "columns": lambda x: x[..., 2:5],
    "box": lambda x: x[1:, 1:3, 1:4],
    "every second plane": lambda x: x[::2],
    "every second element": lambda x: x[0, 0, ::2],
    "a matrix with gaps both ways": lambda x: x[0, ::2, ::2],
    "an axis of one": lambda x: x[:, 1:2, :],
    "transposed": lambda x: x.T,
    "axes moved": lambda x: np.moveaxis(x, 0, 1),
    "one element": lambda x: x[1, 2, 3:4],
    "a scalar array": lambda x: x[1, 2, 3, ...],
}


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["f8", "c8", "i2", [("a", "i4"), ("b", "f8")]])
@pytest.mark.parametrize("view", VIEWS)
def test_only_the_elements_of_a_view_are_copied_and_computed(card, view, dtype, order):
    count = 3 * 4 * 6
    x = np.zeros((3, 4, 6), dtype, order)
    x.view("u1" if order == "C" else dtype)  # any bytes will do
    x[...] = np.arange(count).reshape(3, 4, 6).astype(x.dtype) if x.dtype.fields is None else x
    expected = x.copy()
    seen = []
    take = VIEWS[view]

    def record(part):
        seen.append((part.shape, part.dtype, part.copy()))
        part[...] = np.ones((), part.dtype) if part.dtype.fields is None else np.array(
            (7, 8.5), part.dtype)

    kernel = card.kernel("record", record)
    stream = card.domain().place(1).stream()
    buffer = card.wrap(x)
    part = buffer[...] if view == "all" else take(x)
    stream.upload(part)
    stream.compute(kernel, [weir.readwrite(part)])
    stream.download(part)
    stream.synchronize()
    shape, found_dtype, contents = seen[0]
    assert (shape, found_dtype) == (take(expected).shape, expected.dtype)
    np.testing.assert_array_equal(contents, take(expected))
    take(expected)[...] = 1 if expected.dtype.fields is None else (7, 8.5)
    np.testing.assert_array_equal(x, expected)


def test_four_axes_are_accepted_with_two_gaps_and_refused_with_more(card):
    x = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    double = card.kernel("double", lambda part: np.multiply(part, 2, out=part))
    stream = card.domain().place(1).stream()
    buffer = card.wrap(x)
    expected = x.copy()
    for index in (np.s_[...], np.s_[:, :, 1:3], np.s_[:, 1:, :, 2:4]):
        part = x[index]
        stream.upload(part)
        stream.compute(double, [weir.readwrite(part)])
        stream.download(part)
        stream.synchronize()
        expected[index] *= 2
        np.testing.assert_array_equal(x, expected)
    assert buffer.shape == (2, 3, 4, 5)
    with pytest.raises(ValueError, match="more gaps"):
        stream.upload(x[::1, :2, :3, :4])


@pytest.mark.parametrize("view,message", [
    (lambda x: x[::-1], r"backwards or repeats elements \(shape \(4, 6\), strides \(-48, 8\)\)"),
    (lambda x: x[0, ::-1], r"\(shape \(6,\), strides \(-8,\)\)"),
    (lambda x: np.broadcast_to(x[:1], (4, 6)), "backwards or repeats"),
    (lambda x: x[:0], "empty"),
])
def test_reversed_repeated_empty_and_copied_views_are_refused(card, view, message):
    x = np.zeros((4, 6))
    stream = card.domain().place(1).stream()
    kept = card.wrap(x)
    with pytest.raises(ValueError, match=message):
        stream.upload(view(x))
    with pytest.raises(ValueError, match="made a copy"):
        kept[[1, 2]]
    assert kept.name


@pytest.mark.parametrize("make,error,message", [
    (lambda: [1.0, 2.0], TypeError, "a list shares no memory"),
    (lambda: 3.0, TypeError, "a float shares no memory"),
    (lambda: np.zeros((4, 4))[:, 1], ValueError, "has gaps"),
    (lambda: np.zeros(0), ValueError, "empty"),
    (lambda: np.array([{}, ()], object), TypeError, "Python objects"),
])
def test_objects_that_cannot_be_buffers_are_refused_with_the_reason(card, make, error, message):
    with pytest.raises(error, match=message):
        card.wrap(make())


def test_memory_in_two_buffers_is_refused(card):
    x = np.zeros(8)
    kept = card.wrap(x)
    with pytest.raises(weir.InvalidArgumentError, match="overlap"):
        card.wrap(x[2:4])
    kept.close()
    card.wrap(x[2:4])


def test_an_array_that_no_buffer_holds_is_refused(card):
    stream = card.domain().place(1).stream()
    with pytest.raises(weir.NotFoundError, match="wrap"):
        stream.upload(np.zeros(4))


def test_bytearrays_arrays_and_dlpack_are_wrapped_and_gpu_memory_refused(card):
    class OnlyDlpack:
        def __init__(self):
            self.array = np.arange(4, dtype="i4")

        def __dlpack__(self, **options):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    class OnCard:
        __cuda_array_interface__ = {}  # see test_device_arrays.py for those that are there

    given = OnlyDlpack()
    memory = [bytearray(16), array.array("d", [1, 2]), given, np.ones(3, "c16")]
    buffers = [card.wrap(each) for each in memory]
    assert [str(each.dtype) for each in buffers] == ["uint8", "float64", "int32", "complex128"]
    assert buffers[2].array.ctypes.data == given.array.ctypes.data
    with pytest.raises(TypeError, match="memory of a GPU"):
        card.wrap(OnCard())
    with pytest.raises(BufferError):
        memory[0].append(1)  # it is exported


def test_read_only_arrays_can_be_read_and_not_written(card):
    x = np.arange(4.0)
    x.flags.writeable = False
    stream = card.domain().place(1).stream()
    buffer = card.wrap(x, "constants")
    total = []
    stream.upload(buffer)
    stream.compute(card.kernel("add", lambda part: total.append(part.sum())), [weir.read(buffer)])
    stream.synchronize()
    assert total == [6.0]
    for attempt in (lambda: stream.download(buffer),
                    lambda: stream.compute("mem.set", [weir.write(buffer)], [0])):
        with pytest.raises(ValueError, match="'constants' is read-only"):
            attempt()


def test_a_kernel_that_writes_to_a_read_operand_fails(runtime, stream):
    buffer = runtime.buffer(4)

    @runtime.kernel
    def write(part):
        part[0] = 1

    stream.compute(write, [weir.read(buffer)])
    with pytest.raises(weir.KernelError, match="read-only") as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_buffer_keeps_its_array_alive_until_it_is_closed(runtime, stream):
    x = np.ones(1000)
    alive = weakref.ref(x)
    buffer = runtime.wrap(x)
    del x
    gc.collect()
    assert alive() is not None
    add = runtime.kernel("add", lambda part: np.add(part, 1, out=part))
    stream.upload(buffer)
    for _ in range(10):
        stream.compute(add, [weir.readwrite(buffer)])
    stream.download(buffer)
    stream.synchronize()
    assert (alive() == 11).all()
    buffer.close()
    del buffer
    gc.collect()
    assert alive() is None


def test_deleting_a_buffer_waits_for_its_actions(card):
    x = np.zeros(1000)
    stream = card.domain().place(1).stream()
    add = card.kernel("add", lambda part: np.add(part, 1, out=part))
    buffer = card.wrap(x)
    stream.upload(buffer)
    for _ in range(50):
        stream.compute(add, [weir.readwrite(buffer)])
    stream.download(buffer)
    del buffer
    assert (x == 50).all()


def test_calls_with_closed_buffers_and_streams_are_refused(card):
    x = np.zeros(4)
    stream = card.domain().place(1).stream()
    with card.wrap(x) as buffer:
        part = buffer[1:]
    assert repr(buffer) == "<weir.Buffer, closed>"
    for attempt in (lambda: stream.upload(buffer), lambda: buffer[0]):
        with pytest.raises(weir.InvalidArgumentError, match="closed"):
            attempt()
    with pytest.raises(weir.InvalidArgumentError):
        stream.upload(part)
    stream.close()
    with pytest.raises(weir.InvalidArgumentError, match="stream has been closed"):
        stream.barrier()


def test_a_buffer_has_the_shape_and_elements_of_an_array(card):
    buffer = card.buffer((2, 3), "f4", order="F", name="A")
    assert (buffer.name, buffer.nbytes, buffer.shape) == ("A", 24, (2, 3))
    buffer.array[1, 2] = 5
    assert np.asarray(buffer)[1, 2] == 5
    assert buffer[1, 2].shape == () and buffer[0].shape == (3,)
    assert repr(buffer[:, 1:]) == "<weir.Region of 'A': float32 (2, 2)>"
