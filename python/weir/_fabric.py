"""The fabric as Python sees it: ranks, communicators, windows and conveyors over arrays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weir import _weir


def items_of(data: bytes, dtype: np.dtype) -> np.ndarray:
    """The items for a handler of a conveyor, as an array."""
    return np.frombuffer(data, dtype.base).reshape(-1, *dtype.shape)


def _plain(given: Any) -> Any:
    """Checks an array that other ranks read: Python objects would be sent as addresses."""
    if isinstance(given, np.ndarray) and given.dtype.hasobject:
        raise TypeError("an array of Python objects is nothing for other ranks: take a numeric dtype")
    return given


def _memory(given: Any) -> np.ndarray:
    """The array of the program, or a new one of that many zero bytes."""
    if isinstance(given, (int, np.integer)):
        return np.zeros(int(given), np.uint8)
    if not isinstance(given, np.ndarray) or not given.flags.c_contiguous:
        raise TypeError("memory for other ranks is a number of bytes, or a NumPy array without gaps")
    return _plain(given)


def results_of(given: Any) -> np.ndarray | None:
    """The array in which a share leaves results."""
    if given is not None and not isinstance(given, np.ndarray):
        raise TypeError("results of a share are a NumPy array without gaps")
    return None if given is None else _memory(given)


def _numbers(given: Any, dtype: str) -> np.ndarray:
    """Numbers in a dtype that weir takes, with the same values."""
    array = np.atleast_1d(np.asarray(given))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"whole numbers are expected, not {array.dtype}")
    return np.ascontiguousarray(_fitting(array, dtype), dtype)


def _fitting(array: np.ndarray, dtype: str) -> np.ndarray:
    """Whole numbers that fit the dtype; raises for others, whose values would change."""
    limits = np.iinfo(dtype)
    for number in (int(array.min()), int(array.max())) if array.size else ():
        if not limits.min <= number <= limits.max:
            raise OverflowError(f"{number} is no {limits.dtype}: {limits.min} to {limits.max}")
    return array


def _combined(given: npt.ArrayLike, combine: Callable[[np.ndarray], object]) -> Any:
    """Calls combine(copy of the numbers), and returns the copy in the shape of what was given."""
    array = np.asarray(given)
    numbers = np.array(array, array.dtype.newbyteorder("="), order="C", ndmin=1)
    combine(numbers)
    return numbers[0] if array.ndim == 0 else numbers


class Communicator:
    """A group of ranks with the numbers 0, 1, ..., as in MPI: see Fabric.communicator.

    Operations with a timeout, in seconds, are collective: all ranks of the group call the same ones in
    the same order, with arrays of the same shape and dtype, one thread of a rank at a time. Groups are
    independent of each other.

    A failure makes this operation or the next one fail on all ranks, and all later ones: NetworkError
    with the first reason, InvalidArgumentError if ranks call different operations, TimeoutError on a
    rank whose timeout has passed. Ctrl-C ends an operation, and revokes the communicator. shrink()
    makes one of the ranks that are left. An argument that is refused before the operation begins raises
    on this rank only.
    """

    def __init__(self, body: Any):
        self._body = body

    @property
    def rank(self) -> int:
        """This rank in the group."""
        return self._body.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._body.size

    def fabric_rank(self, rank: int) -> int:
        """Returns the rank of the fabric that has a number in the group."""
        return self._body.fabric_rank(rank)

    def split(self, color: int | None, key: int = 0, timeout: float | None = None) -> Communicator | None:
        """Divides the group: ranks with the same color, at least 0, form a new one, in the order of
        key, then of their rank. Colors and keys may differ. A rank with the color None is in no group,
        and gets None."""
        body = self._body.split(color, key, timeout)
        return None if body is None else Communicator(body)

    def split_by_node(self, timeout: float | None = None) -> Communicator:
        """Divides the group into those of ranks that share memory."""
        return Communicator(self._body.split_by_node(timeout))

    def shrink(self, timeout: float | None = None) -> Communicator:
        """Returns a group of the ranks that are left, in their order. All of them call it; operations
        of the old group then fail. After TimeoutError or Ctrl-C, call it again to continue."""
        return Communicator(self._body.shrink(timeout))

    def revoke(self) -> None:
        """Makes the operations of all ranks fail, except shrink(). Not collective; any thread."""
        self._body.revoke()

    def send(self, stream: _weir.Stream, part: Any, to: int, tag: int = 0) -> _weir.Event:
        """Enqueues the send of a part of an array, in the memory of the stream's domain, to a rank.
        It starts when the kernels before it that write the part are complete; no thread waits. The
        n-th send with a tag to a rank matches the n-th receive with this tag from the sender. The
        runtime of the stream has the fabric: weir.Runtime(fabric=...). Not collective."""
        return self._body.send(stream, part, to, tag)

    def receive(self, stream: _weir.Stream, part: Any, source: int, tag: int = 0) -> _weir.Event:
        """Enqueues the matching receive, of as many bytes."""
        return self._body.receive(stream, part, source, tag)

    def enqueue_broadcast(self, stream: _weir.Stream, part: Any, root: int = 0) -> _weir.Event:
        """Enqueues the copy of a part of an array of rank root over those of all ranks. This and the
        enqueue methods below order it with the kernels of the stream, as send() does; no thread waits.
        All ranks of the group enqueue the same operations in the same order."""
        return self._body._enqueue(stream, "broadcast", root, part, None, "sum")

    def enqueue_reduce(self, stream: _weir.Stream, part: Any, op: str = "sum",
                       root: int | None = None) -> _weir.Event:
        """Enqueues a reduction in place: see reduce(). With a root, the parts of the other ranks have
        unspecified values afterwards."""
        return self._body._enqueue(stream, "reduce", root, part, None, op)

    def enqueue_gather(self, stream: _weir.Stream, part: Any, into: Any,
                       root: int | None = None) -> _weir.Event:
        """Enqueues a gather into an array of size parts, by rank: on rank root, or with None on all
        ranks. On other ranks `into` is not used."""
        into = into if root in (None, self.rank) else None
        return self._body._enqueue(stream, "gather", root, part, into, "sum")

    def enqueue_scatter(self, stream: _weir.Stream, parts: Any, into: Any,
                        root: int = 0) -> _weir.Event:
        """Enqueues the copy of part i of an array of rank root to `into` of rank i. On other ranks
        `parts` is not used."""
        parts = parts if root == self.rank else None
        return self._body._enqueue(stream, "scatter", root, into, parts, "sum")

    def enqueue_all_to_all(self, stream: _weir.Stream, parts: Any, into: Any) -> _weir.Event:
        """Enqueues the copy of part i of an array to rank i, whose array `into` gets it as part r, where
        r is this rank."""
        return self._body._enqueue(stream, "all_to_all", 0, parts, into, "sum")

    def barrier(self, timeout: float | None = None) -> None:
        """Waits until all ranks have called it."""
        self._body.barrier(timeout)

    def broadcast(self, array: np.ndarray, root: int = 0, timeout: float | None = None) -> np.ndarray:
        """Copies an array of rank root over those of all ranks, and returns it."""
        self._body.broadcast(root, _plain(array), timeout)
        return array

    def gather(self, array: npt.ArrayLike, root: int | None = None,
               timeout: float | None = None) -> np.ndarray | None:
        """Returns the arrays of all ranks, by rank, in an array of shape (size, *array.shape): on rank
        root, or with None on all ranks. Other ranks get None."""
        own, everything = _plain(np.asarray(array, order="C")), None
        if root in (None, self.rank):
            everything = np.empty((self.size, *own.shape), own.dtype)
        self._body.gather(root, own, everything, timeout)
        return everything

    def scatter(self, array: npt.ArrayLike | None, into: np.ndarray, root: int = 0,
                timeout: float | None = None) -> np.ndarray:
        """Copies array[i] of rank root over the array into of rank i, and returns into. On rank root
        array has the dtype of into and the shape (size, *into.shape); elsewhere it is not used."""
        if not isinstance(into, np.ndarray):
            raise TypeError(f"a scatter into {type(into).__name__}: give a NumPy array for one part")
        parts = None
        if root == self.rank:
            parts = _plain(np.asarray(array, order="C"))
            if parts.dtype != into.dtype or parts.shape != (self.size, *into.shape):
                raise ValueError(f"a scatter of {parts.dtype} {parts.shape} into {into.dtype} {into.shape}: "
                                 f"give an array of {into.dtype} {(self.size, *into.shape)}")
        self._body.scatter(root, parts, _plain(into), timeout)
        return into

    def all_to_all(self, array: npt.ArrayLike, timeout: float | None = None) -> np.ndarray:
        """Sends array[i] to rank i, and returns an array whose part i is from rank i. Both have the
        same shape, (size, ...)."""
        parts = _plain(np.asarray(array, order="C"))
        if parts.shape[:1] != (self.size,):
            raise ValueError(f"an all-to-all exchange of an array of shape {parts.shape}: "
                             f"the first axis has an element for each of {self.size} ranks")
        received = np.empty_like(parts)
        self._body.all_to_all(parts, received, timeout)
        return received

    def all_to_all_v(self, arrays: Sequence[npt.ArrayLike],
                     timeout: float | None = None) -> list[np.ndarray]:
        """Sends arrays[i] to rank i, and returns the array from each rank, by rank. Arrays have one
        axis, any length, and the same dtype on all ranks. Ranks exchange the lengths first."""
        parts = [_plain(np.asarray(each)) for each in arrays]
        if len(parts) != self.size or any((each.ndim, each.dtype) != (1, parts[0].dtype) for each in parts):
            raise ValueError(f"an all-to-all exchange of {[f'{each.dtype} {each.shape}' for each in parts]}: "
                             f"give each of {self.size} ranks an array of one axis, all with the same dtype")
        end = None if timeout is None else time.monotonic() + timeout
        counts = np.array([each.size for each in parts], "i8")
        expected = self.all_to_all(counts, timeout)
        sent = np.concatenate(parts)
        received = np.empty(expected.sum(), sent.dtype)
        self._body.all_to_all_v(sent, (counts * sent.itemsize).tolist(),
                                received, (expected * sent.itemsize).tolist(),
                                None if end is None else max(0, end - time.monotonic()))
        return np.split(received, np.cumsum(expected)[:-1])

    def reduce(self, values: npt.ArrayLike, op: str = "sum", root: int | None = None,
               timeout: float | None = None) -> Any:
        """Returns the "sum", "min", "max", "product", "and", "or" or "xor" of the values of all ranks, on
        rank root, or with None on all ranks. Other ranks get None. Numbers are int8 to int64, uint8 to
        uint64, float32 or float64, and keep their dtype: sums and products of integers wrap; "and", "or"
        and "xor" are for integers. They are combined in the order of the ranks: all ranks get the same
        bits. Functions of Python are not possible here: gather() the values, and combine them."""
        result = _combined(values, lambda numbers: self._body.reduce(root, numbers, op, timeout))
        return result if root in (None, self.rank) else None

    def scan(self, values: npt.ArrayLike, op: str = "sum", exclusive: bool = False,
             timeout: float | None = None) -> Any:
        """Returns what reduce() would return for the ranks up to this one, or if exclusive for those
        below it, where rank 0 gets its own values."""
        return _combined(values, lambda numbers: self._body.scan(numbers, op, exclusive, timeout))

    def close(self) -> None:
        """Ends the group on this rank: operations of other ranks that need this one then fail. The
        group of all ranks ends with the fabric."""
        self._body.close()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._body.closed:
            return "<weir.Communicator, closed>"
        return f"<weir.Communicator: rank {self.rank} of {self.size}>"


class Window:
    """Memory of each rank that all ranks may access: see Fabric.window(). Offsets are in bytes."""

    def __init__(self, body: Any, array: np.ndarray):
        self._body, self.array = body, array

    def put(self, rank: int, offset: int, data: npt.ArrayLike) -> None:
        """Writes into the memory of a rank. The data must not change until flush()."""
        self._body.put(rank, offset, _plain(np.ascontiguousarray(data)))

    def get(self, rank: int, offset: int, into: np.ndarray) -> None:
        """Reads the memory of a rank into an array, which has the contents after flush()."""
        self._body.get(rank, offset, _plain(into))

    def enqueue_put(self, stream: _weir.Stream, part: Any, rank: int, offset: int) -> _weir.Event:
        """Enqueues the copy of a part of an array, in the memory of the stream's domain, into the memory
        of a rank, in order with the kernels of the stream. It is complete when the rank can read it; no
        thread waits. The runtime of the stream has the fabric: weir.Runtime(fabric=...)."""
        return self._body.enqueue_put(stream, part, rank, offset)

    def enqueue_get(self, stream: _weir.Stream, part: Any, rank: int, offset: int) -> _weir.Event:
        """Enqueues the copy from the memory of a rank into a part of an array."""
        return self._body.enqueue_get(stream, part, rank, offset)

    def fetch_add(self, rank: int, offset: int, operand: int) -> int:
        """Adds to the int64 at an offset atomically, and returns the value before."""
        return self._body.fetch_add(rank, offset, operand)

    def compare_swap(self, rank: int, offset: int, expected: int, desired: int) -> int:
        """Replaces the int64 at an offset if it is as expected, and returns the value before."""
        return self._body.compare_swap(rank, offset, expected, desired)

    def flush(self, rank: int, timeout: float | None = None) -> None:
        """Waits until the puts and gets of this thread are complete."""
        self._body.flush(rank, timeout)

    def close(self) -> None:
        """Closes the window on this rank: later accesses of other ranks fail."""
        self._body.close()

    def __enter__(self) -> Window:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        self.close()


class Producer:
    """Puts items of one thread into a conveyor."""

    def __init__(self, body: Any, dtypes: list[np.dtype]):
        self._body, self._dtypes = body, dtypes

    def put(self, rank: int, offsets: npt.ArrayLike, items: np.ndarray) -> None:
        """Writes an equal part of items to each offset in the memory of a rank."""
        where, array = _numbers(offsets, "u8"), _plain(np.ascontiguousarray(items))
        if where.size and (array.nbytes == 0 or array.nbytes % where.size):
            raise ValueError(f"{array.nbytes} bytes are no {where.size} items")
        self._body.put(rank, where, array)

    def add(self, rank: int, offsets: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Adds int64 values to those at offsets in the memory of a rank; one value serves all."""
        where = _numbers(offsets, "u8")
        numbers = np.broadcast_to(_numbers(values, "i8"), where.shape)
        self._body.add(rank, where, np.ascontiguousarray(numbers))

    def send(self, rank: int, handler: int, items: npt.ArrayLike) -> None:
        """Sends items to a handler of a rank, of its dtype."""
        dtype = self._dtypes[handler]
        array = np.ascontiguousarray(items, dtype.base)
        if array.nbytes % dtype.itemsize:
            raise ValueError(f"{array.nbytes} bytes are not a multiple of an item of {dtype.itemsize}")
        self._body.send(rank, handler, array, dtype.itemsize)

    def flush(self, timeout: float | None = None) -> None:
        """Waits until all items of this producer have been applied."""
        self._body.flush(timeout)

    def close(self) -> None:
        """Closes the producer; flush() first to lose nothing."""
        self._body.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()


class Conveyor:
    """Small items for other ranks, sent in large messages: see Fabric.conveyor()."""

    def __init__(self, body: Any, array: np.ndarray | None, dtypes: list[np.dtype]):
        self._body, self.array, self._dtypes = body, array, dtypes

    def producer(self) -> Producer:
        """Opens a producer for one thread."""
        return Producer(self._body.producer(), self._dtypes)

    def finish(self, timeout: float | None = None) -> None:
        """Waits until all items of all ranks are applied: every rank calls it. Raises what a handler
        of this rank raised, or the first failure."""
        self._body.finish(timeout)

    def info(self) -> dict[str, int]:
        """Counts of this rank."""
        return self._body.info()

    def close(self) -> None:
        """Frees it; finish() first to lose nothing."""
        self._body.close()

    def __enter__(self) -> Conveyor:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()


class Fabric:
    """The membership of one rank in the processes that were started together.

    transport: "auto", "self", "shm" or "mpi"; None: auto, what started the process. progress: the threads that drive
    the fabric, "thread", "caller" or "hybrid". lost_after: seconds of silence after which a rank
    counts as lost, 0: 10. Calls that need a lost rank raise NetworkError.
    """

    def __init__(self, transport: str | None = None, *, progress: str | None = None,
                 lost_after: float = 0):
        self._body = _weir._open_fabric(transport, progress, lost_after, 0)

    @classmethod
    def _of(cls, body: Any) -> Fabric:
        made = cls.__new__(cls)
        made._body = body
        return made

    @staticmethod
    def simulate(ranks: int, program: Callable[[Fabric], object], *, seed: int = 0,
                 progress: str | None = None, lost_after: float = 0) -> None:
        """Runs program(fabric) on that many ranks in this process, each on a thread of its own, and
        raises the exception of the lowest rank that failed, or a deadlock report when all wait for
        each other without a timeout. Ctrl-C takes effect after all ranks have ended. seed: chooses
        the order of messages, the same on every run, unless progress is "thread" or "hybrid"."""
        _weir._simulate(ranks, lambda body: program(Fabric._of(body)), progress, lost_after, seed)

    @property
    def rank(self) -> int:
        return self._body.rank

    @property
    def ranks(self) -> int:
        return self._body.ranks

    @property
    def communicator(self) -> Communicator:
        """All ranks as a group."""
        return Communicator(self._body.communicator())

    def is_alive(self, rank: int) -> bool:
        """Whether a rank is neither lost nor has left the fabric."""
        return self._body.is_alive(rank)

    def link(self, rank: int) -> str | None:
        """What connects this rank to a rank: "shm", "mpi (Open MPI 4.1.4)", "self" for itself; None
        if there is no such rank."""
        return self._body.link(rank)

    def barrier(self, timeout: float | None = None) -> None:
        """Waits until all ranks that are not lost have called it."""
        self._body.barrier(timeout)

    def reduce(self, values: npt.ArrayLike, op: str = "sum", timeout: float | None = None) -> Any:
        """Returns the "sum", "min", "max" or another op of Communicator.reduce() over all ranks, of int64
        or of float64; every rank calls it with an array of the same shape, and gets the same result.
        Integer sums wrap."""
        given = np.asarray(values)
        if given.dtype.kind not in "iuf":
            raise TypeError(f"numbers are expected, not {given.dtype}")
        dtype = "f8" if given.dtype.kind == "f" else "i8"
        whole = given if dtype == "f8" else _fitting(given, dtype)
        numbers = np.array(whole, dtype, order="C", ndmin=1)
        self._body.reduce(numbers, op, timeout)
        return numbers[0] if given.ndim == 0 else numbers

    def broadcast(self, data: np.ndarray, root: int = 0, timeout: float | None = None) -> np.ndarray:
        """Copies an array of rank root over those of all ranks, and returns it."""
        self._body.broadcast(root, _plain(data), timeout)
        return data

    def send(self, to: int, message: Any) -> None:
        """Sends bytes, or an array without gaps, to the handler of a rank."""
        self._body.send(to, _plain(message))

    def listen(self, handler: Callable[[int, bytes], object] | None) -> None:
        """Sets handler(rank, message), called for one message at a time, on the thread that drives
        the fabric; it must not wait. The next wait of this rank raises its exception."""
        self._body.listen(handler)

    def progress(self, timeout: float | None = None) -> None:
        """Drives the fabric until the handler has returned from a message."""
        self._body.progress(timeout)

    def window(self, memory: int | np.ndarray, timeout: float | None = None) -> Window:
        """Opens an array of this rank, or that many bytes, to all ranks; every rank calls it."""
        array = _memory(memory)
        return Window(self._body.window(array, timeout), array)

    def conveyor(self, memory: int | np.ndarray | None = None,
                 handlers: Sequence[tuple[npt.DTypeLike, Callable[[np.ndarray, int], object]]] = (),
                 *, name: str | None = None, block_bytes: int = 0, block_items: int = 0,
                 blocks_in_flight: int = 0, age: float = 0,
                 timeout: float | None = None) -> Conveyor:
        """Makes a conveyor together with the other ranks.

        memory: of this rank, which the others put to. handlers: of each the dtype of its items, of 8
        to 256 bytes in steps of 8, and handler(items, rank), which must not wait; the same on all
        ranks. block_bytes, block_items: of a message at most, 0: 63 KiB (MPI: 504), as many as fit.
        blocks_in_flight: from one rank to another, 0: 8. age: seconds after which a message is sent,
        0: 0.001, negative: any. timeout: for the other ranks, None: 60 s.
        """
        array = None if memory is None else _memory(memory)
        dtypes = [np.dtype(dtype) for dtype, _ in handlers]
        codes = [(dtype, code) for dtype, (_, code) in zip(dtypes, handlers)]
        body = self._body.conveyor(name, array, codes, block_bytes, block_items, blocks_in_flight,
                                   age, timeout)
        return Conveyor(body, array, dtypes)

    def close(self) -> None:
        """Leaves the fabric, when the last runtime that uses it has been closed. Raises BusyError, and
        closes nothing, while another thread is in a call of it or of its communicators, windows and
        conveyors."""
        self._body.close()

    def __enter__(self) -> Fabric:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._body.closed:
            return "<weir.Fabric, closed>"
        return f"<weir.Fabric: rank {self.rank} of {self.ranks}>"


def launch(ranks: int, arguments: Sequence[str | os.PathLike[str]], *,
           lost_after: float = 0) -> int:
    """Starts a program as that many processes of this machine, which weir.Fabric() connects, and
    waits until all have ended. Returns the exit status of the lowest rank that failed, or 0."""
    return _weir._launch(ranks, [os.fspath(each) for each in arguments], lost_after)
