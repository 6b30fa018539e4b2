"""The Laplacian on a grid: a sweep by hand, ranks that wait, cards whose halos travel."""

from dataclasses import replace

from harness.row import Row, ratio_at_least
from harness.command import Command, Figure
from suites.fabric import TWO_HOSTS_APART
from suites.queue import app_figure

OF_IDEAL = 1 / 1.10  # of the rate without a link
CARD = "sim:clock=virtual,gflops=35,memory_gbps=14,gbps=1,latency_us=10,kernels=skip"


def groups(quick):
    """Rows that are measured together, round by round."""
    n, iterations = (64, 4) if quick else (256, 20)
    return [
        sweep_by_hand(n, iterations),
        faces(n),
        two_ranks(n, iterations),
        two_hosts(n, iterations),
        two_cards(n, iterations),
    ]


def laplacian(n, iterations, *options):
    return app_figure("laplacian", "--n", n, "--iterations", iterations, "--repeat", 4, *options)


def sweep_by_hand(n, iterations):
    by_hand = Figure(Command.of("sweep_openmp", "--n", n, "--iterations", iterations))
    ours, fused = laplacian(n, iterations), laplacian(n, iterations, "--fuse", 4)
    name, other = f"laplacian {n}^3", "OpenMP, AVX-512 by hand"
    return [
        Row(name, "GFLOP/s", ours, by_hand, other, ratio_at_least(1.0)),
        Row(f"{name}, 4 steps fused", "GFLOP/s", fused, by_hand, other, ratio_at_least(1.3)),
        Row(f"{name}, 4 steps fused", "GFLOP/s", fused, ours, "one by one", None),
    ]


def faces(n):
    """Halos with one cell on each line of the cache, against contiguous ones."""
    packed, contiguous = (
        Figure(Command.of("halo_weir", "--n", n, "--face", face)) for face in ("x", "z")
    )
    name = f"halo of {n} x {n} cells, packed"
    return [Row(name, "MB/s", packed, contiguous, "contiguous", ratio_at_least(0.8))]


def two_ranks(n, iterations):
    """Two processes of this machine, whose halos travel behind the interior or before it."""
    hidden, blocking = (
        laplacian(n, iterations, "--ranks", 2, "--domains", "host:cores=1", "--transform", switch)
        for switch in ("on", "off")
    )
    return [Row(f"laplacian {n}^3 on 2 ranks", "GFLOP/s", hidden, blocking, "blocking", None)]


def two_hosts(n, iterations):
    """The same on two hosts with a link of 8 Gbit/s, each of which has cores of its own."""
    hidden, blocking = (
        laplacian(n, iterations, "--domains", "host:cores=1", "--transform", switch)
        for switch in ("on", "off")
    )
    hidden, blocking = (
        replace(figure, command=replace(figure.command, under=TWO_HOSTS_APART))
        for figure in (hidden, blocking)
    )
    name = f"laplacian {n}^3 on 2 hosts, 8 Gbit/s"
    ideal = laplacian(n, iterations, "--domains", "host:cores=2")
    return [
        Row(name, "GFLOP/s", hidden, blocking, "blocking", ratio_at_least(1.3)),
        Row(name, "GFLOP/s", hidden, ideal, "both cores in one process", ratio_at_least(OF_IDEAL)),
    ]


def two_cards(n, iterations):
    """Cards behind a link of 8 Gbit/s, in virtual time."""
    options = ("--blocks", "1x1x2", "--domains", ",".join([CARD] * 2))
    hidden, blocking = (
        laplacian(n, iterations, *options, "--transform", switch) for switch in ("on", "off")
    )
    name = f"laplacian {n}^3 on 2 cards, 8 Gbit/s"
    return [Row(name, "GFLOP/s", hidden, blocking, "blocking", ratio_at_least(1.3))]
