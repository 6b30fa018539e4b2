"""The runtime as Python sees it: the parts that are simpler in Python than in C++."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weir import _fabric, _html, _pipelines, _portable, _trace, _weir

_numbers = itertools.count(1)  # of policies without a name


class Runtime(_weir._Runtime):
    """The domains, places, kernels and buffers of one program.

    domains: those to open, "host,sim:cores=2,gbps=6"; None takes WEIR_DOMAINS, or the host.
    blas: for the built-in tile kernels, "openblas", "blis", "mkl", "reference" or a path; None takes
        WEIR_BLAS.
    fabric: for domains of other ranks, "rank:*".

    At the end of a with statement the runtime synchronises, which raises the first failure, and
    closes. After an exception it cancels what has not started, and closes. After KeyboardInterrupt,
    as by Ctrl-C, it does not wait for kernels that go on for more than half a second; when they
    still run at the end of the program, they end with it.
    """

    def __init__(self, domains: str | None = None, *, blas: str | None = None,
                 fabric: _fabric.Fabric | None = None):
        super().__init__(domains, blas, None if fabric is None else fabric._body)
        _trace.opened(self)

    def kernel(self, name: str | Callable[..., object],
               function: Callable[..., object] | None = None) -> Any:
        """Finds a kernel, or makes one of a function.

        kernel("blas.dgemm") finds one: built in, or registered before. kernel("name", function), or
        the decorator @runtime.kernel, registers function(*operands, *scalars): operands come as
        arrays over the memory of the domain, valid during the call; those that are only read are
        read-only. It writes its results to them; returning another array raises
        TypeError. It runs on host cores, one call at a time as far as it holds Python's lock. What
        it raises fails the action, poisons what depends on it, and is the cause of the KernelError
        that a wait raises.
        """
        if callable(name):
            name, function = name.__name__, name
        if function is None:
            return self._find_kernel(name)
        return self._add_function(name, function)

    def native_kernel(self, name: str, code: Any, *, flat: bool = False,
                      parallel: bool = False) -> _weir.Kernel:
        """Registers compiled code, which runs without Python's lock.

        code: an address, a function of ctypes, or anything with an `address`, as a Numba cfunc. It is
        a weir_host_function of C, int (const weir_call*); or, flat, int (void** operands, int64_t*
        shapes, double* scalars), where an operand has 5 numbers in shapes: bytes of a row, rows,
        planes, bytes between rows and between planes. It returns 0, or the status of a failure.
        parallel: it uses the whole place, with OpenMP.
        """
        address = getattr(code, "address", code)
        if not isinstance(address, int):
            address = _portable.address_of(code)
        if address == 0:
            raise ValueError(f"the code of kernel '{name}' is at address 0")
        kernel = self._add_native(name, address, flat, parallel)
        self._keep(code)
        return kernel

    def portable_kernel(self, source: str, items: str | tuple[str, ...], *,
                        name: str | None = None, parallel: bool = True) -> _weir.Kernel:
        """Registers a kernel from its text in the dialect of <weir/portable.h>.

        source: the text of one or more kernels. items: how many items a call has, in one to three
        directions, each a C expression over the parameters that are not pointers: "n", or
        ("width", "height"). name: the kernel in the text; None: the only one. parallel: on the
        host, groups spread over the threads of a place.

        For the host the C++ compiler makes code of it ($CXX, or c++), once: binaries are kept in
        the user's cache folder. Devices with a compiler of their own get the text.
        """
        built = _portable.build(source, items, name)
        kernel = self._add_portable(built.name, built.kernel, built.grid, source, parallel)
        self._keep(built)
        return kernel

    def pipeline(self, *, name: str | None = None, place: _weir.Place | None = None,
                 keep_going: bool = False, batch: int = 0, epochs: int = 0, keep_bytes: int = 0,
                 on_failure: Callable[[str, BaseException], object] | None = None,
                 on_epoch: Callable[[int], object] | None = None) -> _pipelines.Pipeline:
        """Makes an empty pipeline.

        place: of stages without one; None: all free cores of the first host domain. keep_going: a
        failed item does not end the pipeline; on_failure(stage, exception) is called for each.
        batch: the most items of a call, 0: 64. epochs: how many may be in flight, 0: one;
        on_epoch(epoch) is called when all items of one are complete, in order. Any thread calls
        both, and they must not wait. keep_bytes: the most bytes of items that a worker keeps for
        one tunnel, 0: 256 MiB; this ends a loop without an exit.
        """
        return _pipelines.Pipeline(self, name, place, keep_going, batch, epochs, keep_bytes,
                                   on_failure, on_epoch)

    def share(self, items: int, function: Callable[[_weir.Chunk], _weir.Event], *,
              chunks: str | None = None, places: Sequence[_weir.Place] = (),
              work: Sequence[float] = (), name: str | None = None, ways: int = 1,
              fabric: _fabric.Fabric | None = None, scheduler: str | None = None,
              results: np.ndarray | None = None) -> _weir.Share:
        """Distributes the items [0, items) over places, each of which fetches its next chunk itself.

        function(chunk) enqueues the actions of a chunk in chunk.stream, from host memory and back to
        it, and returns the event of the last one. Any thread calls it, and it must not wait.
        chunks: their sizes, None: "learned". places: empty: one with all free cores of
        each domain. work: of each item, in any unit; none: all alike. ways: to do a chunk, of which
        chunk.way says one.

        fabric: whose ranks share the items; each calls this, for the same, with places of its own.
        scheduler: how they fetch chunks, "onesided" or "master", None: "onesided". results: an array
        with an equal part for each item, where the actions of chunks leave them; rank 0 gets those
        of all ranks. Nothing else may write it before the share is complete.
        """
        if not places:
            places = [domain.place() for domain in self.domains]
        return _weir._start_share(self, items, function, chunks, list(places),
                                  [float(each) for each in work], name, ways,
                                  None if fabric is None else fabric._body, scheduler,
                                  _fabric.results_of(results))

    def policy(self, name: str | Callable[..., object],
               choose: Callable[..., object] | None = None) -> Any:
        """Adds a policy of task queues: policy("name", choose), or the decorator @runtime.policy.

        choose(task, candidates) gets the name of a task and a list of weir.Candidate, and returns
        the index of the one that is to run it, or None: not now, offer it again when something has
        changed. It is called on any thread, one call at a time, with Python's lock, and must not
        wait. When it raises, the task fails, and a wait raises that from the exception.
        """
        if callable(name):
            name, choose = name.__name__, name
        if choose is None:
            raise TypeError(f"policy '{name}' has no function")
        self._add_policy(name, choose)
        return choose

    def queue(self, policy: str | Callable[..., object] | None = None,
              places: Sequence[_weir.Place] = (), name: str | None = None,
              models: bool = True, max_in_flight: int = 0) -> _weir.Queue:
        """Makes a task queue over places; none: over all free cores of all domains.

        policy: a name, or a function for this queue: see policy(). models=False: neither reads nor
        keeps measured times. max_in_flight: tasks from which on submit() waits; 0: the usual
        number.
        """
        if callable(policy):
            given, policy = policy, f"{getattr(policy, '__name__', 'policy')}#{next(_numbers)}"
            self._add_policy(policy, given)
        return self._queue(policy, list(places), name, models, max_in_flight)

    def trace(self, path: str | os.PathLike[str] | None = None, *,
              max_bytes: int = 0) -> _trace.Trace:
        """Records what this runtime does inside a with statement, and writes it to path, if there is
        one: a page to *.html, Perfetto's format to *.pftrace, else Chrome's JSON."""
        return _trace.Trace(self, path, max_bytes)

    def close(self) -> None:
        """Waits for all work and ends the runtime with everything made from it. Unreported
        failures are discarded: synchronize() first."""
        try:
            if not self.closed:
                _trace.closing(self)
        finally:
            super().close()

    def describe(self) -> dict[str, Any]:
        """Machine, domains, libraries and kernels."""
        return json.loads(self._describe())

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if self.closed:
            return
        _weir._note_exit(kind)
        try:
            self.cancel() if kind is not None else self.synchronize()
        finally:
            self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<weir.Runtime, closed>"
        return f"<weir.Runtime on {', '.join(domain.name for domain in self.domains)}>"

    def _repr_html_(self) -> str:
        return _html.of(self)
