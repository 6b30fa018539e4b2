"""Buffers over arrays that are in the memory of a device already."""

import ctypes
import os

import numpy as np
import pytest
import weir
from weir import _portable

HALVE = """
WEIR_KERNEL(halve, 64, 1, 1, WEIR_GLOBAL double* x, weir_i64 n) {
  WEIR_ITEMS_LAST_BELOW(n) { x[WEIR_ITEM_X] /= 2; }
}
"""


# ---- Memory that is a simulated device's -----------------------------------------------------------

@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_of_a_simulated_device_is_computed_in_place(card, order):
    there = np.asarray(np.arange(24.0).reshape(4, 6), order=order)
    data = card.wrap(there, "there", domain=card.domain())
    stream = card.domain().place(1).stream()
    add = card.kernel("add", lambda part, value: np.add(part, value, out=part))
    stream.compute(add, [weir.readwrite(data[1:3, ::2])], [100])
    stream.synchronize()
    expected = np.arange(24.0).reshape(4, 6)
    expected[1:3, ::2] += 100
    np.testing.assert_array_equal(there, expected)
    assert not data.array.any() and data.array.strides == there.strides, "the host has its own"
    stream.download(data)
    stream.synchronize()
    np.testing.assert_array_equal(data.array, expected)
    data.array[0] = -1
    stream.upload(data[0])
    stream.synchronize()
    assert there[0].tolist() == [-1] * 6 and card.domain().memory_used == 0
    with pytest.raises(weir.InvalidArgumentError, match="overlaps"):
        card.wrap(there.T, domain=card.domain())
    data.close()
    assert card.wrap(there, domain=card.domain()).dtype == there.dtype


def test_memory_that_a_domain_cannot_adopt_is_refused(card):
    for make, error in ((lambda: np.zeros((4, 4))[:, 1], ValueError), (lambda: np.zeros(0), ValueError),
                        (lambda: np.array([{}], object), TypeError), (lambda: [1.0], TypeError)):
        with pytest.raises(error):
            card.wrap(make(), domain=card.domain())
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    data = card.wrap(frozen, domain=card.domain())
    with pytest.raises(ValueError, match="read-only"):
        card.domain().place(1).stream().download(data)
    with weir.Runtime("host:cores=1") as runtime:
        with pytest.raises(weir.InvalidArgumentError, match="shares the memory"):
            runtime.wrap(np.zeros(4), domain=runtime.domain())
        copied = runtime.wrap(np.ones(4), domain=runtime.domain(), alias=False)
        stream = runtime.domain().place().stream()
        stream.download(copied)
        stream.synchronize()
        assert copied.array.tolist() == [1] * 4
    with weir.Runtime("sim:cores=1") as other:
        with pytest.raises(weir.InvalidArgumentError, match="another runtime"):
            card.wrap(np.zeros(4), domain=other.domain())
    with weir.Runtime("null") as runtime, pytest.raises(weir.UnsupportedError, match="null"):
        runtime.wrap(np.zeros(4), domain=runtime.domain())


# ---- Memory of a CUDA GPU: the driver for tests --------------------------------------------------

class Driver:
    """The functions of a CUDA driver that another library of the program would call."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.call("cuInit", 0)
        self.contexts = []
        for device in range(2):
            context = ctypes.c_void_p()
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.contexts.append(context)

    def call(self, name, *arguments):
        assert getattr(self.library, name)(*arguments) == 0, name

    def allocate(self, values, device=0):
        self.call("cuCtxPushCurrent_v2", self.contexts[device])
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(values.nbytes))
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        ctypes.memmove(address.value, values.ctypes.data, values.nbytes)  # it is of the host, really
        return address.value

    def free(self, address):
        self.call("cuCtxPushCurrent_v2", self.contexts[0])
        self.call("cuMemFree_v2", ctypes.c_uint64(address))
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def stream(self):
        self.call("cuCtxPushCurrent_v2", self.contexts[0])
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), 1)
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return made.value

    def teach(self, source):
        built = _portable.build(source, "n", None)

        class Kernel(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("group", ctypes.c_uint32 * 3),
                        ("parameters", ctypes.c_char_p), ("run", ctypes.c_void_p)]

        kernel = Kernel.from_address(built.kernel)
        name, parameters, run = kernel.name, kernel.parameters, kernel.run
        self.library.fake_cuda_register_kernel(name, parameters, ctypes.c_void_p(run))


class OnCard:
    """An array of another library."""

    def __init__(self, driver, values, device=0, stream=None, **changes):
        self.driver, self.values = driver, values
        self.address = driver.allocate(values, device)
        self.__cuda_array_interface__ = {
            "shape": values.shape, "typestr": values.dtype.str, "data": (self.address, False),
            "strides": None if values.flags.c_contiguous else values.strides, "version": 3,
            "stream": stream, **changes}

    def read(self):
        return np.frombuffer(ctypes.string_at(self.address, self.values.nbytes),
                             self.values.dtype).reshape(self.values.shape)


class _Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class ByDlpack:
    """The same, which speaks DLPack only."""

    def __init__(self, driver, values, code=2):
        self.address, self.code, self.deleted = driver.allocate(values), code, []
        self.shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        self.bits = 8 * values.itemsize

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **options):
        self.delete = _Tensor._fields_[-1][1](self.deleted.append)
        self.tensor = _Tensor(self.address, 2, 0, len(self.shape), self.code, self.bits, 1,
                              ctypes.addressof(self.shape), None, 0, None, self.delete)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                         ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    path = os.environ.get("WEIR_TEST_FAKE_CUDA")
    if path is None:
        pytest.skip("the CUDA driver for tests is not built: CUDA's headers are missing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for name in ("WEIR_CUDA_DRIVER", "WEIR_NVRTC"):
            patch.setenv(name, path)
        made = Driver(path)
        made.teach(HALVE)
        yield made


@pytest.fixture
def cards(driver):
    driver.library.fake_cuda_reset()
    with weir.Runtime("host:cores=1,cuda:0,cuda:1") as runtime:
        yield runtime
    assert driver.library.fake_cuda_misuses() == 0


def check_halves(cards, given, read, domain):
    data = cards.wrap(given, "given")
    assert data.dtype == np.float64 and data.shape == (5, 20)
    stream = cards.domain(domain).place().stream()
    halve = cards.portable_kernel(HALVE, "n")
    stream.compute(halve, [weir.readwrite(data[1:4])], [60])
    stream.download(data[:2])
    stream.synchronize()
    expected = np.arange(100.0).reshape(5, 20)
    expected[1:4] /= 2
    np.testing.assert_array_equal(read(), expected)
    np.testing.assert_array_equal(data.array[:2], expected[:2])
    assert not data.array[2:].any(), "only what is downloaded is in the host"
    data.close()


@pytest.mark.parametrize("device", [0, 1])
def test_arrays_with_the_cuda_array_interface_are_computed_in_place(driver, cards, device):
    given = OnCard(driver, np.arange(100.0).reshape(5, 20), device)
    check_halves(cards, given, given.read, f"cuda:{device}")
    data = cards.wrap(given, domain=cards.domain(f"cuda:{device}"))
    with pytest.raises(weir.NotFoundError, match="not in the memory of"):
        cards.wrap(given, domain=cards.domain(f"cuda:{1 - device}"))
    del data


def test_dlpack_arrays_of_a_gpu_are_computed_in_place_and_released_once(driver, cards):
    given = ByDlpack(driver, np.arange(100.0).reshape(5, 20))
    check_halves(cards, given, lambda: np.frombuffer(ctypes.string_at(given.address, 800))
                 .reshape(5, 20), "cuda:0")
    assert len(given.deleted) == 1, "its deleter has been called, once"
    with pytest.raises(TypeError, match="no type of NumPy"):
        cards.wrap(ByDlpack(driver, np.zeros(4), code=4))


def test_wrapping_an_array_waits_for_its_cuda_stream(driver, cards):
    for says in (dict(stream=1), dict(stream=driver.stream()), dict(version=2)):
        before = driver.library.fake_cuda_calls(b"cuStreamSynchronize")
        kept = cards.wrap(OnCard(driver, np.zeros(4), **says))
        assert driver.library.fake_cuda_calls(b"cuStreamSynchronize") > before
        kept.close()
    driver.library.fake_cuda_fail(b"cuStreamSynchronize", 1, 999)
    with pytest.raises(weir.DeviceError, match="gives 999"):
        cards.wrap(OnCard(driver, np.zeros(4), stream=1))


def test_gpu_arrays_that_cannot_be_buffers_are_refused_with_the_reason(driver, cards):
    matrix = np.zeros((4, 4))
    for changes, error, words in (
            (dict(strides=(64, 8)), ValueError, "gaps"), (dict(shape=(0,)), ValueError, "empty"),
            (dict(mask=object()), TypeError, "mask"),
            (dict(shape=(100,)), weir.InvalidArgumentError, "beyond an allocation of 128"),
            (dict(data=(matrix.ctypes.data, False)), weir.NotFoundError, "not in the memory"),
    ):
        with pytest.raises(error, match=words):
            cards.wrap(OnCard(driver, matrix, **changes))
    fortran = cards.wrap(OnCard(driver, np.asfortranarray(np.ones((2, 3)))))
    assert fortran.array.flags.f_contiguous
    frozen = OnCard(driver, np.ones(4))
    frozen.__cuda_array_interface__["data"] = (frozen.address, True)
    data = cards.wrap(frozen)
    with pytest.raises(ValueError, match="read-only"):
        cards.domain("cuda:0").place().stream().compute("mem.set", [weir.write(data)], [0])
    with weir.Runtime("host:cores=1") as runtime, pytest.raises(TypeError, match="domain 'cuda'"):
        runtime.wrap(OnCard(driver, matrix))


def test_an_array_lives_as_long_as_its_buffer(driver, cards):
    given = OnCard(driver, np.arange(4.0))
    gone = []

    class Owner(OnCard):
        def __init__(self):
            self.__cuda_array_interface__ = given.__cuda_array_interface__

        def __del__(self):
            gone.append(True)

    data = cards.wrap(Owner())
    assert not gone
    stream = cards.domain("cuda:0").place().stream()
    stream.download(data)
    stream.synchronize()
    assert data.array.tolist() == [0, 1, 2, 3]
    data.close()
    assert gone
    driver.free(given.address)  # weir has not
