"""Devices: what weir costs beside the same work written by hand for the device."""

from harness.command import Command, Figure
from harness.row import Row, ratio_at_least

ACTIONS = 10_000
MIB = 1 << 20
PROBLEMS = (("saxpy", "GB/s"), ("stencil", "GB/s"), ("reduce", "GB/s"), ("multiply", "GFLOP/s"))


def groups(quick):
    """Rows that are measured together, round by round."""
    sizes = (MIB,) if quick else (64 * 1024, MIB, 64 * MIB)
    return [
        small_kernels("one chain", "chain", "OpenCL, one in-order queue"),
        small_kernels("independent", "independent", "OpenCL, one out-of-order queue"),
        source_kernels("one chain", "chain", "OpenCL, one in-order queue"),
        source_kernels("independent", "independent", "OpenCL, one out-of-order queue"),
        *[portable(problem, unit) for problem, unit in PROBLEMS],
        *[transfers(direction, size) for size in sizes for direction in ("h2d", "d2h")],
        *[strided(row) for row in (1024, 8192)],
    ]


def small_kernels(title, shape, peer_name):
    ours = Figure(
        Command.of("tasks_weir", shape, "--actions", ACTIONS, "--domains", "opencl:0,alias=off")
    )
    raw = Figure(Command.of("opencl_raw", shape, "--actions", ACTIONS))
    name = f"opencl: small kernels, {title}"
    return [Row(name, "ns/action", ours, raw, peer_name, ratio_at_least(round(1 / 1.10, 3)))]


def source_kernels(title, shape, peer_name):
    """Kernels that the driver compiles."""
    ours = Figure(Command.of("kernels_weir", shape, "--actions", ACTIONS))
    raw = Figure(Command.of("opencl_raw", shape, "--actions", ACTIONS, "--kernel", "source"))
    known = Figure(Command.of("opencl_raw", shape, "--actions", ACTIONS, "--kernel", "source",
                              "--ends", "known"))
    name = f"opencl: small kernels of the driver, {title}"
    return [
        Row(name, "ns/action", ours, raw, peer_name, ratio_at_least(round(1 / 1.10, 3))),
        Row(name, "ns/action", ours, known, "OpenCL, that knows how each ended"),
    ]


def portable(problem, unit):
    """One text on two devices, each beside the same problem in its own language."""
    target = ratio_at_least(round(1 / 1.15, 3))

    def row(domain, program, peer_name):
        ours = Figure(Command.of("kernels_weir", problem, "--domains", domain))
        peer = Figure(Command.of(program, problem))
        return Row(f"{domain}: portable {problem}", unit, ours, peer, peer_name, target)

    return [
        row("opencl:0", "opencl_kernels", "OpenCL C, one in-order queue"),
        row("host", "host_kernels", "C++, OpenMP"),
    ]


def transfers(direction, size):
    count = max(4, min(1000, 256 * MIB // size))
    arguments = (direction, "--bytes", size, "--count", count)
    ours = Figure(Command.of("copies_weir", *arguments))
    raw = Figure(Command.of("opencl_raw", *arguments))
    name = f"opencl: {direction} of {size // 1024} KiB"
    return [Row(name, "GB/s", ours, raw, "OpenCL, one in-order queue", ratio_at_least(0.95))]


def strided(row):
    """Half of every two rows of a matrix, against as many bytes in one piece."""
    size = 4 * MIB
    arguments = ("h2d", "--bytes", size, "--count", 64)
    ours = Figure(Command.of("copies_weir", *arguments, "--row", row))
    whole = Figure(Command.of("copies_weir", *arguments))
    tile = f"tile of rows of {row} bytes"
    by_hand = [Figure(Command.of("rows_openmp", "copy", "--bytes", size, *rows))
               for rows in (("--row", row), ())]
    return [
        Row(f"opencl: {tile}", "GB/s", ours, whole, "weir, contiguous", ratio_at_least(0.8)),
        Row(f"OpenMP, memcpy: {tile}", "GB/s", by_hand[0], by_hand[1], "OpenMP, contiguous"),
    ]
