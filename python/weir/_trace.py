"""Recordings of actions, as files and as pages."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

from weir import _errors, _html, _weir

_open: weakref.WeakSet[Any] = weakref.WeakSet()
_everywhere: list[Trace] = []  # those that record every runtime


def opened(runtime: Any) -> None:
    """A runtime begins."""
    _open.add(runtime)
    for trace in _everywhere:
        trace._begin(runtime)


def closing(runtime: Any) -> None:
    """A runtime is about to end."""
    for trace in list(_everywhere):
        if runtime in trace._runtimes:
            with contextlib.suppress(_errors.Error):  # close() does not report failures
                trace._end(runtime)
    _open.discard(runtime)


class Trace:
    """A recording: `with weir.trace("run.html") as trace: ...`, then `trace.summary`."""

    def __init__(self, runtime: Any | None, path: str | os.PathLike[str] | None, max_bytes: int):
        self._only, self._max_bytes = runtime, max_bytes
        self.path = None if path is None else Path(path)
        self.summaries: list[dict[str, Any]] = []
        """The summary of the recording of each runtime; times in seconds. Empty until it ends."""
        self._runtimes: list[Any] = []
        self._files: list[str] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of the first runtime."""
        return self.summaries[0] if self.summaries else {}

    @property
    def _is_page(self) -> bool:
        return self.path is not None and self.path.suffix in (".html", ".htm")

    def __enter__(self) -> Trace:
        if self._is_page:
            self._folder = tempfile.TemporaryDirectory(prefix="weir-")
        if self._only is not None:
            self._begin(self._only)
            return self
        for runtime in [each for each in _open if not each.closed]:
            self._begin(runtime)
        _everywhere.append(self)
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if self in _everywhere:
            _everywhere.remove(self)
        failures = []
        try:
            for runtime in list(self._runtimes):
                try:
                    self._end(runtime, kind is None)
                except _errors.Error as failure:
                    failures.append(failure)
            if self._is_page and self._files:
                _weir._write_report(self._files, self._titles(), shlex.join(sys.argv),
                                    os.fspath(self.path))
        finally:
            if self._folder is not None:
                self._folder.cleanup()
        if failures:
            raise failures[0]

    def _begin(self, runtime: Any) -> None:
        runtime.start_trace(self._max_bytes)
        self._runtimes.append(runtime)

    def _end(self, runtime: Any, synchronize: bool = True) -> None:
        self._runtimes.remove(runtime)
        if runtime.closed:
            return
        try:
            if synchronize:
                runtime.synchronize()
        finally:
            runtime.stop_trace()
            self.summaries.append(runtime.trace_summary())
            if self.path is not None:
                self._write(runtime, self.path)

    def _write(self, runtime: Any, path: Path) -> None:
        number = "" if len(self.summaries) == 1 else f".{len(self.summaries)}"
        if self._folder is not None:
            path = Path(self._folder.name, path.with_suffix(".json").name)
        file = os.fspath(path.with_name(path.stem + number + path.suffix))
        runtime.write_trace(file)
        self._files.append(file)

    def _titles(self) -> list[str]:
        """The names of the recordings in the page: derived from the name of the page."""
        name = self.path.name if self.path is not None else ""
        return [name, *(f"{name}, runtime {i}" for i in range(2, len(self._files) + 1))]

    def _repr_html_(self) -> str:
        tables = [_html.facts("recording", each) for each in self.summaries]
        return "".join(tables) or "<p>nothing is recorded yet</p>"


def trace(path: str | os.PathLike[str] | None = None, *, max_bytes: int = 0) -> Trace:
    """Records all runtimes inside a with statement: those that are open, and those it opens.

    path: "*.html" gets a page that shows where the time went and needs nothing else, "*.pftrace"
    Perfetto's format, anything else Chrome's JSON; a page has all runtimes, the other formats a
    file for each: "run.json", "run.2.json". A runtime has one recording at a time.
    """
    return Trace(None, path, max_bytes)
