"""Events as futures."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from weir import _weir


def future_of(event: _weir.Event) -> Future[None]:
    """A concurrent.futures.Future of an event."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()  # cancelling the future does not cancel the action

    def complete(status: str, message: str) -> None:
        if status == "ok":
            future.set_result(None)
        else:
            future.set_exception(_weir._exception_of(status, message))

    event.on_complete(complete)
    return future


def wait_of(event: _weir.Event) -> Generator[Any, None, None]:
    """The generator of `await event`. Simulated time passes only while a thread waits."""
    if event._virtual_time:
        return asyncio.to_thread(event.wait).__await__()
    return asyncio.wrap_future(future_of(event)).__await__()
