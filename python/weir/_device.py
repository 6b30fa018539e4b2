"""Arrays in the memory of a GPU: the CUDA array interface, and DLPack."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any

import numpy as np

from weir import _errors, _weir

_CUDA, _CUDA_MANAGED = 2, 13  # DLPack's kinds of devices
_DEVICE_ORDINAL = 9           # of cuPointerGetAttribute()
_LEGACY_STREAM = 1


def is_on_device(given: Any) -> bool:
    """Whether an array is in the memory of a GPU, by its own interface."""
    if hasattr(given, "__cuda_array_interface__"):
        return True
    return hasattr(given, "__dlpack_device__") and given.__dlpack_device__()[0] in (
        _CUDA, _CUDA_MANAGED)


def _await(address: int, stream: int) -> None:
    """Waits until a stream has done the work that makes the array."""
    driver = ctypes.CDLL(os.environ.get("WEIR_CUDA_DRIVER", "libcuda.so.1"))
    device, context = ctypes.c_int(), ctypes.c_void_p()

    def call(name: str, *arguments: Any) -> None:
        code = getattr(driver, name)(*arguments)
        if code != 0:
            raise _errors.DeviceError(f"waiting for the array's stream: {name}() gives {code}")

    call("cuPointerGetAttribute", ctypes.byref(device), _DEVICE_ORDINAL, ctypes.c_uint64(address))
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        call("cuCtxPushCurrent_v2", context)
        try:
            call("cuStreamSynchronize", ctypes.c_void_p(stream))
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)


def _twin(shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype,
          readonly: bool) -> np.ndarray:
    """An array of the host with the same elements in the same order; the system allocates its
    pages at the first access."""
    if dtype.hasobject:
        raise TypeError("a device cannot use an array of Python objects: take a numeric dtype")
    if math.prod(shape) == 0:
        raise ValueError("the array is empty: a buffer has at least one element")
    for order in "CF":
        made = np.zeros(shape, dtype, order)
        wanted = made.strides if strides is None else strides
        if all(size == 1 or here == there
               for size, here, there in zip(shape, made.strides, wanted)):
            made.flags.writeable = not readonly
            return made
    raise ValueError("the array has gaps: wrap the array that it is a view of, and use parts of that")


def _by_interface(given: Any) -> tuple[int, np.ndarray, Any]:
    facts = given.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise TypeError("a device cannot use an array with a mask")
    address, readonly = facts["data"]
    dtype = np.dtype(facts["typestr"])
    if dtype.kind == "V" and facts.get("descr"):
        dtype = np.dtype([tuple(each) for each in facts["descr"]])
    twin = _twin(tuple(facts["shape"]), facts.get("strides"), dtype, readonly)
    stream = facts.get("stream")
    if stream is None and facts.get("version", 0) < 3:
        stream = _LEGACY_STREAM  # interfaces before version 3 name no stream
    if stream is not None:
        _await(address, stream)
    return address, twin, given


def _by_dlpack(given: Any) -> tuple[int, np.ndarray, Any]:
    address, shape, strides, typestr, owner = _weir._open_dlpack(given)
    dtype = np.dtype(typestr)
    twin = _twin(shape, tuple(each * dtype.itemsize for each in strides), dtype, False)
    _await(address, _LEGACY_STREAM)  # then the array has its contents
    return address, twin, owner


def memory_of(given: Any) -> tuple[int, np.ndarray, Any]:
    """Address of an array in the memory of a device, an array of the host for it, and its owner."""
    if hasattr(given, "__cuda_array_interface__"):
        return _by_interface(given)
    if is_on_device(given):
        return _by_dlpack(given)
    array = _weir._array_of(given)
    twin = _twin(array.shape, array.strides, array.dtype, not array.flags.writeable)
    return array.ctypes.data, twin, array
