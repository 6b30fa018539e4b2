"""HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

from weir import _errors


def _text(value: Any) -> str:
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A table of rows that have the same columns."""
    heads = "".join(f"<th>{_text(name)}</th>" for name in (rows[0] if rows else ()))
    lines = "".join("<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row.values()) + "</tr>"
                    for row in rows)
    return f"<table><tr>{heads}</tr>{lines}</table>"


def facts(caption: str, pairs: dict[str, Any]) -> str:
    """A table of names and values."""
    lines = "".join(f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>"
                    for name, value in pairs.items())
    return f"<table><caption>{_text(caption)}</caption>{lines}</table>"


def _domains(runtime: Any) -> str:
    return table([{"domain": each.name, "device": each.description, "cores": each.cores,
                   "memory": f"{each.memory_bytes >> 20} MiB"} for each in runtime.domains])


def _buffer(buffer: Any) -> str:
    return facts(f"buffer {buffer.name}", {"dtype": buffer.dtype, "shape": buffer.shape,
                                           "bytes": buffer.nbytes})


def _queue(queue: Any) -> str:
    return f"<p>{_text(queue)}</p>{table(queue.shares())}"


def _share(share: Any) -> str:
    return f"<p>{share.done} of {share.items} items</p>{table(share.parts())}"


def _pipeline(pipeline: Any) -> str:
    return table(pipeline.stages())


def _event(event: Any) -> str:
    return f"<code>{_text(event)}</code>"


_MAKERS: dict[str, Callable[[Any], str]] = {
    "Runtime": _domains, "Buffer": _buffer, "Queue": _queue, "Share": _share, "Pipeline": _pipeline,
    "Event": _event}


def of(shown: Any) -> str:
    """The HTML of an object of weir; the text of one that is closed."""
    try:
        return _MAKERS[type(shown).__name__](shown)
    except _errors.Error:
        return html.escape(repr(shown))
