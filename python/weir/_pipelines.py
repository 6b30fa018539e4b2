"""Pipelines as Python sees them: functions over arrays of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weir import _weir


class _EndOfEpoch:
    """What a source yields to say that what comes next belongs to the next epoch."""

    def __repr__(self) -> str:
        return "weir.END_OF_EPOCH"


END_OF_EPOCH = _EndOfEpoch()

_MORE, _OVER, _EPOCH_OVER = 0, 1, 2


def items_of(given: Any, dtype: np.dtype) -> np.ndarray:
    """One item or an array of items, in memory as a tunnel carries them."""
    base, shape = dtype.base, dtype.shape
    array = np.ascontiguousarray(given, base)
    found = np.shape(given) if not isinstance(given, np.ndarray) else given.shape
    if found[len(found) - len(shape):] != shape or len(found) > len(shape) + 1:
        raise TypeError(f"items of shape {shape} are expected, one or a row of them, not an array of"
                        f" shape {found}")
    return array


def _puts_of(result: Any, dtypes: Sequence[np.dtype]) -> list[np.ndarray | None]:
    """What a function returned, for each output."""
    if result is None or not dtypes:
        return [None] * len(dtypes)
    if len(dtypes) == 1:
        return [items_of(result, dtypes[0])]
    if not isinstance(result, tuple) or len(result) != len(dtypes):
        raise TypeError(f"a stage with {len(dtypes)} outputs returns a tuple of {len(dtypes)}: items "
                        "or None for each")
    return [None if each is None else items_of(each, dtype) for each, dtype in zip(result, dtypes)]


def _join(parts: list[list[np.ndarray | None]], outputs: int) -> list[bytes | None]:
    return [b"".join(part[i].tobytes() for part in parts if part[i] is not None)
            for i in range(outputs)]


class _Work:
    """Calls a function with the items of a batch. When that fails, finds out with which item."""

    def __init__(self, function: Callable[[np.ndarray], Any], dtype: np.dtype,
                 outputs: Sequence[np.dtype]):
        self._function, self._dtype, self._outputs = function, dtype, outputs

    def __call__(self, data: bytes, epoch: int) -> tuple[Any, ...]:
        items = np.frombuffer(data, self._dtype.base).reshape(-1, *self._dtype.shape)
        try:
            return -1, None, _MORE, *_puts_of(self._function(items), self._outputs)
        except Exception as error:
            if len(items) == 1:
                return 0, error, _MORE, *[None] * len(self._outputs)
        parts = []
        for index in range(len(items)):
            try:
                parts.append(_puts_of(self._function(items[index:index + 1]), self._outputs))
            except Exception as error:
                return index, error, _MORE, *_join(parts, len(self._outputs))
        return -1, None, _MORE, *_join(parts, len(self._outputs))


class _AtEnd:
    """Calls a function without items."""

    def __init__(self, function: Callable[[], Any], outputs: Sequence[np.dtype]):
        self._function, self._outputs = function, outputs

    def __call__(self, data: bytes, epoch: int) -> tuple[Any, ...]:
        return -1, None, _MORE, *_puts_of(self._function(), self._outputs)


class _Source:
    """Puts what an iterable gives, one element a call."""

    def __init__(self, items: Iterable[Any], outputs: Sequence[np.dtype]):
        self._items, self._outputs = iter(items), outputs

    def __call__(self, data: bytes, epoch: int) -> tuple[Any, ...]:
        nothing = [None] * len(self._outputs)
        try:
            found = next(self._items)
        except StopIteration:
            return -1, None, _OVER, *nothing
        if found is END_OF_EPOCH:
            return -1, None, _EPOCH_OVER, *nothing
        return -1, None, _MORE, *_puts_of(found, self._outputs)


def _tunnels(outputs: Any) -> list[_weir.Tunnel]:
    return [outputs] if isinstance(outputs, _weir.Tunnel) else list(outputs)


class Pipeline(_weir._Pipeline):
    """Stages that are functions of Python, connected by tunnels of items: see Runtime.pipeline()."""

    def source(self, items: Iterable[Any], outputs: _weir.Tunnel | Iterable[_weir.Tunnel], *,
               name: str | None = None, place: _weir.Place | None = None) -> None:
        """Adds a stage that puts what an iterable gives: for one output an item or an array of
        items, for several a tuple of such or None. weir.END_OF_EPOCH ends an epoch."""
        tunnels = _tunnels(outputs)
        work = _Source(items, [each.dtype for each in tunnels])
        self._add_stage(name, None, tunnels, work, None, place, 1, False)

    def stage(self, input: _weir.Tunnel, outputs: _weir.Tunnel | Iterable[_weir.Tunnel] = (),
              function: Callable[..., Any] | None = None, *, name: str | None = None,
              at_end: Callable[[], Any] | None = None, place: _weir.Place | None = None,
              workers: int = 0, ordered: bool = False) -> Any:
        """Adds a stage, as a call or as a decorator.

        function(items) gets an array of one or more items, a copy, and returns what it puts: for one
        output an item or an array of items, for several a tuple of such or None; None puts nothing.
        It holds Python's lock while it runs Python. When it raises it is called again with one item
        at a time, to find which one fails.

        at_end() is called once, when the stage is at its end, and returns the same. workers: calls
        at once, 0: as many as the place has cores. ordered: what it puts leaves in the order of its
        input.
        """
        tunnels = _tunnels(outputs)
        dtypes = [each.dtype for each in tunnels]

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            if not callable(function):
                raise TypeError("a stage is a function of Python")
            end = None if at_end is None else _AtEnd(at_end, dtypes)
            self._add_stage(name or getattr(function, "__name__", None), input, tunnels,
                            _Work(function, input.dtype, dtypes), end, place, workers, ordered)
            return function

        return add if function is None else add(function)

    def run(self, timeout: float | None = None) -> None:
        """Starts and waits for the end; raises the first failure. Ctrl-C and the time limit cancel."""
        self.start()
        try:
            self.wait(timeout)
        except (KeyboardInterrupt, TimeoutError):
            self.cancel()
            raise

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        try:
            if kind is None and self._running:
                self.wait()
        finally:
            self.close()
