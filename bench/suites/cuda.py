"""CUDA: what weir costs on a GPU beside the driver and its libraries used by hand."""

import os

from harness.command import Command, Difference, Figure
from harness.row import Row, at_most, ratio_at_least

GPU = f"cuda:{os.environ.get('WEIR_BENCH_CARD', '0')}"
ACTIONS = 10_000
MIB = 1 << 20


def groups(quick):
    """Rows that are measured together, round by round."""
    sizes = (MIB,) if quick else (64 * 1024, MIB, 64 * MIB)
    order = 1024 if quick else 16384
    return [
        launches("one chain", "chain", "one stream"),
        launches("independent", "independent", "four streams"),
        *[graphs(nodes) for nodes in (20, 1000)],
        [places()],
        *[transfers(way, size) for size in sizes for way in ("h2d", "d2h")],
        *[[strided(row)] for row in (1024, 8192)],
        *[[portable(problem)] for problem in ("saxpy", "stencil", "reduce", "multiply")],
        [overlap(quick)],
        cholesky(order),
    ]


def launches(title, shape, peer_name):
    ours = Figure(Command.of("kernels_weir", shape, "--actions", ACTIONS, "--domains", GPU))
    raw = Figure(Command.of("cuda_raw", shape, "--actions", ACTIONS))
    name = f"cuda: small kernels, {title}"
    return [
        Row(name, "ns/action", ours, raw, f"launches, {peer_name}"),
        Row(f"{name}, above a launch", "ns/action", Difference(ours, raw), None, None,
            at_most(1300)),
    ]


def graphs(nodes):
    """Whether graphs would be worth it: by hand, against launches by hand and against weir."""
    arguments = ("--nodes", nodes, "--actions", ACTIONS)
    replay = Figure(Command.of("cuda_raw", "replay", *arguments))
    raw = Figure(Command.of("cuda_raw", "chain", "--actions", ACTIONS))
    ours = Figure(Command.of("kernels_weir", "chain", "--actions", ACTIONS, "--domains", GPU))
    making = Figure(Command.of("cuda_raw", "capture", *arguments))
    return [
        Row(f"cuda: graph of {nodes} kernels, by hand", "ns/action", replay, raw,
            "launches, one stream"),
        Row(f"cuda: one chain beside graphs of {nodes} kernels", "ns/action", ours, replay,
            "graphs by hand"),
        Row(f"cuda: a graph of {nodes} kernels made for one launch, by hand", "ns/action", making,
            raw, "launches, one stream"),
    ]


def places():
    def figure(count):
        return Figure(Command.of("kernels_weir", "independent", "--actions", ACTIONS, "--domains",
                                 GPU, "--places", count))

    return Row("cuda: small kernels in 4 green contexts", "ns/action", figure(4), figure(1),
               "weir, one place", ratio_at_least(2))


def transfers(way, size):
    count = max(4, min(1000, 256 * MIB // size))

    def row(memory, bound):
        arguments = (way, "--bytes", size, "--count", count, "--memory", memory)
        ours = Figure(Command.of("copies_weir", *arguments, "--domains", GPU))
        raw = Figure(Command.of("cuda_raw", *arguments))
        return Row(f"cuda: {way} of {size // 1024} KiB, {memory} memory", "GB/s", ours, raw,
                   "the driver", ratio_at_least(bound))

    return [row("pinned", 0.95), row("pageable", 1.5)]


def strided(row):
    """Half of every two rows of a matrix, against as many bytes in one piece."""
    arguments = ("h2d", "--bytes", 4 * MIB, "--count", 64, "--memory", "pinned", "--domains", GPU)
    ours = Figure(Command.of("copies_weir", *arguments, "--row", row))
    whole = Figure(Command.of("copies_weir", *arguments))
    return Row(f"cuda: tile of rows of {row} bytes", "GB/s", ours, whole, "weir, contiguous",
               ratio_at_least(0.8))


def portable(problem):
    unit = "GFLOP/s" if problem == "multiply" else "GB/s"
    ours = Figure(Command.of("kernels_weir", problem, "--domains", GPU))
    return Row(f"cuda: portable {problem}", unit, ours)


def overlap(quick):
    """hBench: the worst of the sweep."""
    arguments = ("--repeat", 2, "--size", MIB) if quick else ()
    command = Command.of("weir", "bench", "overlap", "--domains", GPU, "--json", *arguments)
    figure = Figure(command, "results.0.worst_ratio")
    return Row("cuda: hBench overlap, measured / ideal", "ratio", figure, target=at_most(1.05))


def cholesky(order):
    """Beside cuSOLVER by hand, and beside weir with one tile, which is one call of it."""

    def figure(domains, *tile):
        return Figure(Command.of("weir", "run", "cholesky", "--n", order, "--domains", domains,
                                 "--repeat", 3, *tile, "--json"), "rate.value")

    def by_hand(copies):
        return Figure(Command.of("cuda_raw", "cholesky", "--n", order, "--copies", copies))

    gpu, both = figure(GPU), figure(f"host,{GPU}")
    return [
        Row(f"cuda: cholesky {order}", "GFLOP/s", gpu, by_hand("on"),
            "cuSOLVER by hand, page-locked memory", ratio_at_least(0.9)),
        Row(f"cuda: cholesky {order} beside what is on the GPU", "GFLOP/s", gpu, by_hand("off"),
            "cuSOLVER by hand, without copies"),
        Row(f"cuda: cholesky {order} beside one tile", "GFLOP/s", gpu,
            figure(GPU, "--tile", order), "weir, one call of cuSOLVER"),
        Row(f"cuda: cholesky {order}, host and GPU", "GFLOP/s", both, gpu, "weir, GPU",
            ratio_at_least(1)),
        Row(f"cuda: cholesky {order}, host and GPU beside the host", "GFLOP/s", both,
            figure("host"), "weir, host", ratio_at_least(1)),
    ]
