"""The exceptions of weir: one for each status."""

import builtins


class Error(RuntimeError):
    """A call or an action of weir failed. `status` is the name of its status."""

    status = "internal"


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong; the message says which and why."""

    status = "invalid_argument"


class NotFoundError(Error, LookupError):
    """There is no kernel, domain, buffer or event of that name."""

    status = "not_found"


class UnsupportedError(Error):
    """Correct, but this domain or build cannot do it."""

    status = "unsupported"


class UnavailableError(Error):
    """A device, driver, library or resource is not available."""

    status = "unavailable"


class OutOfMemoryError(Error, MemoryError):
    """The memory of the host or of a domain is exhausted."""

    status = "out_of_memory"


class BusyError(Error):
    """The object is in use in a way that forbids the call."""

    status = "busy"


class TimeoutError(Error, builtins.TimeoutError):
    """The timeout is over; the work continues."""

    status = "timeout"


class CancelledError(Error):
    """The action was cancelled before it started."""

    status = "cancelled"


class PoisonedError(Error):
    """The action depends on one that failed, and never ran."""

    status = "poisoned"


class KernelError(Error):
    """The kernel failed. For a Python function `__cause__` is its exception."""

    status = "kernel_error"


class DeviceError(Error):
    """A device failed."""

    status = "device_error"


class NetworkError(Error):
    """A link or a rank failed."""

    status = "network_error"


class InternalError(Error):
    """A bug in weir: please report it with the message."""

    status = "internal"


CLASSES = {each.status: each for each in (
    InvalidArgumentError, NotFoundError, UnsupportedError, UnavailableError, OutOfMemoryError,
    BusyError, TimeoutError, CancelledError, PoisonedError, KernelError, DeviceError, NetworkError,
    InternalError)}

for _class in (Error, *CLASSES.values()):
    _class.__module__ = "weir"  # where users find them

# The statuses of failed actions that a synchronise reports; others are failures of the call.
OF_ACTIONS = (InvalidArgumentError, UnsupportedError, UnavailableError, OutOfMemoryError,
              CancelledError, PoisonedError, KernelError, DeviceError, NetworkError, InternalError)


def of_status(name: str) -> type[Error]:
    """The class of a status."""
    return CLASSES.get(name, InternalError)
