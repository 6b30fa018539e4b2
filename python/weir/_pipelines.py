"""Pipelines as Python sees them: functions over arrays of items."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weir import _html, _weir


class _EndOfEpoch:
    """A source yields it to end an epoch: later items belong to the next one."""

    def __repr__(self) -> str:
        return "weir.END_OF_EPOCH"


END_OF_EPOCH = _EndOfEpoch()

STENCIL_REGION = np.dtype([(each, "u4") for each in ("row", "column", "rows", "columns")])
"""A part of the matrix of a stencil, in values: the items of its output."""

_MORE, _OVER, _EPOCH_OVER = 0, 1, 2


def items_of(given: Any, dtype: np.dtype) -> np.ndarray:
    """One item or an array of items, in memory as a tunnel carries them."""
    base, shape = dtype.base, dtype.shape
    array = np.asarray(given, base)
    found = array.shape
    if found[len(found) - len(shape):] != shape or len(found) > len(shape) + 1:
        raise TypeError(f"items of shape {shape} are expected, one or a row of them, not an array of"
                        f" shape {found}")
    return np.ascontiguousarray(array)


class _Items:
    """What a stage puts into a tunnel."""

    def __init__(self, dtype: np.dtype):
        self._dtype = dtype

    def take(self, given: Any) -> np.ndarray:
        return items_of(given, self._dtype)

    @staticmethod
    def join(parts: list[np.ndarray]) -> bytes:
        return b"".join(each.tobytes() for each in parts)


def _counted(what: str, given: Any) -> int:
    """A valid row or column of a stencil."""
    number = operator.index(given)
    if not 0 <= number < 2**63:
        raise IndexError(f"{what} {number} is in no stencil: they count from 0")
    return number


class _Values:
    """What a stage sets for a stencil: (row, column, rows, columns, values), in a list."""

    def __init__(self, dtype: np.dtype):
        self._dtype = dtype

    def take(self, given: Any) -> list[tuple[int, int, int, int, np.ndarray]]:
        return [self._part(*each) for each in ([given] if isinstance(given, tuple) else given)]

    def _part(self, row: int, column: int, values: Any) -> tuple[int, int, int, int, np.ndarray]:
        array = np.ascontiguousarray(np.atleast_2d(values), self._dtype)
        if array.ndim != 2:
            raise TypeError(f"the values of a stencil are a matrix, not an array of {array.ndim} axes")
        return _counted("row", row), _counted("column", column), *array.shape, array

    @staticmethod
    def join(parts: list[list[Any]]) -> list[Any]:
        return [each for part in parts for each in part]


_Output = _Items | _Values


def _puts_of(result: Any, outputs: Sequence[_Output]) -> list[Any]:
    """The result of a function, split by output."""
    if result is None or not outputs:
        return [None] * len(outputs)
    if len(outputs) == 1:
        return [outputs[0].take(result)]
    if not isinstance(result, tuple) or len(result) != len(outputs):
        raise TypeError(f"a stage with {len(outputs)} outputs returns a tuple of {len(outputs)}: "
                        "items or None for each")
    return [None if each is None else output.take(each) for each, output in zip(result, outputs)]


def _join(parts: list[list[Any]], outputs: Sequence[_Output]) -> list[Any]:
    return [output.join([part[i] for part in parts if part[i] is not None])
            for i, output in enumerate(outputs)]


class _Work:
    """Calls a function with the items of a batch. When that fails, finds the item that fails."""

    def __init__(self, function: Callable[[np.ndarray], Any], dtype: np.dtype,
                 outputs: Sequence[_Output]):
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
                return index, error, _MORE, *_join(parts, self._outputs)
        return -1, None, _MORE, *_join(parts, self._outputs)


class _KeepingWork:
    """Calls a function with one item of a batch at a time, and with a function that keeps it."""

    def __init__(self, function: Callable[[np.ndarray, Callable[[], _weir.Item]], Any],
                 dtype: np.dtype, outputs: Sequence[_Output]):
        self._function, self._dtype, self._outputs = function, dtype, outputs

    def __call__(self, data: bytes, epoch: int) -> tuple[Any, ...]:
        items = np.frombuffer(data, self._dtype.base).reshape(-1, *self._dtype.shape)
        parts, batch = [], _weir._this_batch()
        for index in range(len(items)):
            keep = functools.partial(_weir._keep_item, batch, index)
            try:
                parts.append(_puts_of(self._function(items[index:index + 1], keep), self._outputs))
            except Exception as error:
                return index, error, _MORE, *_join(parts, self._outputs)
        return -1, None, _MORE, *_join(parts, self._outputs)


class _AtEnd:
    """Calls a function without items."""

    def __init__(self, function: Callable[[], Any], outputs: Sequence[_Output]):
        self._function, self._outputs = function, outputs

    def __call__(self, data: bytes, epoch: int) -> tuple[Any, ...]:
        return -1, None, _MORE, *_puts_of(self._function(), self._outputs)


class _Source:
    """Puts the elements of an iterable, one in each call."""

    def __init__(self, items: Iterable[Any], outputs: Sequence[_Output]):
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


_Target = _weir.Tunnel | _weir.Stencil


def _targets(outputs: Any) -> list[_Target]:
    targets = [outputs] if isinstance(outputs, _Target) else list(outputs)
    for each in targets:
        if not isinstance(each, _Target):
            raise TypeError(f"a stage puts into tunnels and stencils, not into a {type(each).__name__}")
    return targets


def _outputs(targets: list[_Target]) -> list[_Output]:
    return [(_Values if isinstance(each, _weir.Stencil) else _Items)(each.dtype) for each in targets]


def _for_each(outputs: list[Any], given: Any) -> list[Any]:
    """One option for all outputs, or a sequence with one for each."""
    if isinstance(given, (int, str)):
        return [given] * len(outputs)
    if len(given) != len(outputs):
        raise ValueError(f"{len(given)} options are given for {len(outputs)} outputs")
    return list(given)


class Pipeline(_weir._Pipeline):
    """Stages that are functions of Python, connected by tunnels of items: see Runtime.pipeline()."""

    def source(self, items: Iterable[Any], outputs: _Target | Iterable[_Target], *,
               name: str | None = None, place: _weir.Place | None = None,
               item_seconds: float = 0) -> None:
        """Adds a stage that puts the elements of an iterable: for one output an item or an array of
        items, for several a tuple of such or None. weir.END_OF_EPOCH ends an epoch. item_seconds: in
        virtual time, how long a core works on an item."""
        targets = _targets(outputs)
        self._add_stage(name, None, targets, _Source(items, _outputs(targets)), None, place, 1, False,
                        item_seconds)

    def stage(self, input: _weir.Tunnel, outputs: _Target | Iterable[_Target] = (),
              function: Callable[..., Any] | None = None, *, name: str | None = None,
              at_end: Callable[[], Any] | None = None, place: _weir.Place | None = None,
              workers: int = 0, ordered: bool = False, keeps: bool = False,
              item_seconds: float = 0) -> Any:
        """Adds a stage, as a call or as a decorator.

        function(items) gets an array of one or more items, a copy, and returns what it puts: for one
        output an item or an array of items, for several a tuple of such or None; None puts nothing.
        It holds Python's lock while it runs Python. When it raises it is called again with one item
        at a time, to find which one fails.

        at_end() is called once, at the end of the stage, and returns the same. workers: concurrent
        calls, 0: as many as the place has cores. ordered: its outputs keep the order of its input.
        item_seconds: in virtual time, how long a core works on an item; otherwise it has no effect.

        keeps: function(items, keep) gets one item at a time, and keep() returns a weir.Item: the
        item then completes when any thread completes or destroys that, and not with the call.
        """
        targets = _targets(outputs)
        puts = _outputs(targets)

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            if not callable(function):
                raise TypeError("a stage is a function of Python")
            end = None if at_end is None else _AtEnd(at_end, puts)
            work = (_KeepingWork if keeps else _Work)(function, input.dtype, puts)
            self._add_stage(name or getattr(function, "__name__", None), input, targets, work, end,
                            place, workers, ordered, item_seconds)
            return function

        return add if function is None else add(function)

    def kernel_stage(self, input: _weir.Tunnel,
                     outputs: _weir.Tunnel | Iterable[_weir.Tunnel],
                     kernel: _weir.Kernel | str, scalars: Iterable[_weir.Scalar] = (), *,
                     place: _weir.Place, name: str | None = None, most: int | Sequence[int] = 1,
                     counting: str | Sequence[str] = "all", batch: int = 0, in_flight: int = 0,
                     ordered: bool = False,
                     tables: Iterable[_weir.Buffer | _weir.Region | np.ndarray] = (),
                     scratch_bytes: int = 0) -> None:
        """Adds a stage that is a kernel, in the memory of any domain: portable, compiled or built in.

        Its operands are the input items; then, for each output, the items that it puts and,
        unless the counting is "all", the 32-bit numbers of these. Its scalars are the number of
        items that came, and those given here. It puts `most` items for each that came; or with
        counting "item" up to so many, the number of each given, what it puts for item i beginning at
        i * most; or with "tunnel" any number, which it adds to atomically from 0, one after the
        other. most and counting may be given for each output. batch: items at most, 0: as
        measured times suggest. in_flight: batches at most, 0: 8.

        tables: parts of buffers that every batch reads, which go to the domain now and are not to
        change any more; they are operands behind the others. scratch_bytes: of memory that a batch
        has for itself on the device, 0 in the beginning, the last operand.
        """
        targets = [outputs] if isinstance(outputs, _weir.Tunnel) else list(outputs)
        self._add_kernel_stage(name, input, targets, kernel, scalars, _for_each(targets, most),
                               _for_each(targets, counting), place, batch, in_flight, ordered,
                               tables, scratch_bytes)

    def stencil(self, result: _weir.Buffer, kernel: _weir.Kernel | str,
                scalars: Iterable[_weir.Scalar] = (), *, place: _weir.Place, halo: int,
                corners: bool = True, sweeps: int = 1, region: tuple[int, int] = (64, 64),
                output: _weir.Tunnel | None = None, batch: int = 0, in_flight: int = 0,
                name: str | None = None) -> _weir.Stencil:
        """Adds a stencil, which computes each value of a matrix from those up to halo around it.

        Stages set the values by having it as an output: they return (row, column, values), or a list
        of these, each value once. What a region needs is copied to the place's domain as soon as it
        is there. corners: also those beside it in both directions; False for a cross. sweeps: how
        often. output: gets each tile that is in the result, of dtype weir.STENCIL_REGION. The kernel
        is portable or compiled; see weir_stencil_options for its scalars, which those given here
        follow.
        """
        tunnel = self.tunnel(STENCIL_REGION)
        return self._add_stencil(name, tunnel, output, kernel, scalars, result, place, *region, halo,
                                 corners, sweeps, batch, in_flight)

    def run(self, timeout: float | None = None) -> None:
        """Starts and waits for the end; raises the first failure. Ctrl-C and the time limit cancel."""
        self.start()
        try:
            self.wait(timeout)
        except (KeyboardInterrupt, TimeoutError):
            self.cancel()
            raise

    def _repr_html_(self) -> str:
        return _html.of(self)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        _weir._note_exit(kind)
        try:
            if kind is None and self._running:
                self.wait()
        finally:
            self.close()
