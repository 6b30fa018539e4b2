"""weir: one streaming runtime for every processor in a machine.

    import numpy as np
    import weir

    x = np.arange(8.0)
    with weir.Runtime("sim:cores=1") as runtime:
        stream = runtime.domain().place().stream()
        data = runtime.wrap(x)

        @runtime.kernel
        def scale(part, factor):
            part *= factor

        stream.upload(data)
        stream.compute(scale, [weir.readwrite(data)], [2.0])
        stream.download(data)

Contracts are those of the C functions of the same names, in the headers of weir.
"""

from weir._installation import check_owner as _check_owner, explained as _explained, get_include

_check_owner()
from weir._errors import (BusyError, CancelledError, DeviceError, Error, InternalError,
                          InvalidArgumentError, KernelError, NetworkError, NotFoundError,
                          OutOfMemoryError, PoisonedError, TimeoutError, UnavailableError,
                          UnsupportedError)
try:
    from weir._weir import (Buffer, Candidate, Chunk, Domain, Event, Feed, Graph, Item, Kernel, Operand, Parameter,
                            Place, Queue, Recording, Region, Share, Stencil, Stream, Tunnel, __version__, commute,
                            parameter, read, readwrite, reduce, write)
except ImportError as _error:
    raise _explained(_error) from _error
from weir._fabric import Communicator, Conveyor, Fabric, Producer, Window, launch
from weir._pipelines import END_OF_EPOCH, STENCIL_REGION, Pipeline
from weir._runtime import Runtime
from weir._trace import Trace, trace

__all__ = [
    "Buffer", "BusyError", "CancelledError", "Candidate", "Chunk", "Communicator", "Conveyor", "DeviceError", "Domain", "END_OF_EPOCH",
    "Error", "Event", "Fabric", "Feed", "Graph", "InternalError", "InvalidArgumentError", "Item", "Kernel", "KernelError",
    "NetworkError", "NotFoundError", "Operand", "OutOfMemoryError", "Parameter", "Pipeline", "Place",
    "PoisonedError", "Producer", "Queue", "Recording", "Region", "Runtime", "STENCIL_REGION", "Share", "Stencil", "Stream", "TimeoutError", "Trace",
    "Tunnel", "UnavailableError", "UnsupportedError", "Window", "__version__", "commute", "get_include", "launch", "parameter", "read",
    "readwrite", "reduce", "trace", "write",
]
