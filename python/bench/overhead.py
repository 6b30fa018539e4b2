#!/usr/bin/env python3
"""What the Python layer costs for each action: the best of several rounds.

    overhead.py [ACTIONS]      100 or more, default: 2000
"""

import sys
import time

import weir


def per_action(stream, count, enqueue):
    """Microseconds that the program spends to enqueue one action."""
    best = float("inf")
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(count):
            enqueue()
        best = min(best, time.perf_counter() - begin)
        stream.synchronize()
    return best / count * 1e6


def from_end_to_end(stream, count, enqueue):
    """Microseconds for one action until all are complete."""
    best = float("inf")
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(count):
            enqueue()
        stream.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best / count * 1e6


CALLS = 100  # of a graph


def record(stream, kernel, operands, scalars=()):
    with stream.record(record_only=True) as graph:
        for _ in range(CALLS):
            stream.compute(kernel, operands, scalars)
    return graph


def main(count=2000):
    with weir.Runtime("host:cores=1") as runtime:
        stream = runtime.domain().place().stream()
        data = runtime.buffer(1000)
        part = data[100:200]
        operands = [weir.write(part)]
        clear = runtime.kernel("mem.set")
        nothing = runtime.kernel("nothing", lambda part: None)
        for name, measure, enqueue in (
                ("enqueue a kernel, operands kept", per_action,
                 lambda: stream.compute(clear, operands, [0])),
                ("enqueue a kernel, operand from a slice", per_action,
                 lambda: stream.compute(clear, [weir.write(data[100:200])], [0])),
                ("run a built-in kernel", from_end_to_end,
                 lambda: stream.compute(clear, operands, [0])),
                ("run a function of Python", from_end_to_end,
                 lambda: stream.compute(nothing, operands)),
                ("enqueue, and wait for the event", from_end_to_end,
                 lambda: stream.compute(clear, operands, [0]).wait())):
            print(f"{name:40} {measure(stream, count, enqueue):8.2f} us")
        for name, graph in (("run a built-in kernel in a graph", record(stream, clear, operands, [0])),
                            ("run a function of Python in a graph", record(stream, nothing, operands))):
            print(f"{name:40} {from_end_to_end(stream, count // CALLS, graph.launch) / CALLS:8.2f} us")


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:2]))
