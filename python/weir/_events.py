"""Events as futures."""

import asyncio
from concurrent.futures import Future

from weir import _weir


def future_of(event):
    """A concurrent.futures.Future of an event."""
    future = Future()
    future.set_running_or_notify_cancel()  # an action is not taken back by its future

    def complete(status, message):
        if status == "ok":
            future.set_result(None)
        else:
            future.set_exception(_weir._exception_of(status, message))

    event.on_complete(complete)
    return future


def wait_of(event):
    """What `await event` runs. Simulated time passes only while a thread waits."""
    if event._virtual_time:
        return asyncio.to_thread(event.wait).__await__()
    return asyncio.wrap_future(future_of(event)).__await__()
