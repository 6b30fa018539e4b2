"""The Laplacian on a grid, for the suite fabric: a sweep by hand, ranks that wait, devices whose
halos travel."""

from dataclasses import replace

from harness.command import Command, Figure
from harness.hosts import TWO_HOSTS, TWO_HOSTS_OWN_CORES
from harness.row import Row, ratio_at_least
from suites.queue import app_figure

OF_IDEAL = 1 / 1.10  # of the rate without a link
LINE = 8  # cells on a line of the cache
DEVICE = "sim:clock=virtual,gflops=35,memory_gbps=14,gbps=1,latency_us=10,kernels=skip"


def groups(quick):
    """Rows that are measured together, round by round."""
    n, iterations = (64, 4) if quick else (256, 20)
    return [
        sweep_by_hand(n, iterations),
        faces(256),
        two_ranks(n, iterations),
        two_hosts(n, iterations),
        two_devices(n, iterations),
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
    """Halos that are not contiguous against those that are: one cell on each line of the cache over
    a link, and lines of the cache within a machine, where memory is not faster than the link."""
    return [
        halo(n, 1, "hosts", "8 Gbit/s", ratio_at_least(0.8)),
        halo(n, LINE, "shm", "shared memory", ratio_at_least(0.8)),
        halo(n, 1, "shm", "shared memory", None),
    ]


def halo(n, width, network, where, target):
    def exchange(face):
        command = Command.of("halo_weir", "--n", n, "--face", face, "--width", width, "--network",
                             network)
        return Figure(replace(command, under=TWO_HOSTS) if network == "hosts" else command)

    name = f"halo of {width} x {n} x {n} cells, {where}: packed"
    return Row(name, "MB/s", exchange("x"), exchange("z"), "contiguous", target)


def two_ranks(n, iterations):
    """Two processes of this machine, whose halos travel behind the interior or before it."""
    hidden, blocking = (
        laplacian(n, iterations, "--ranks", 2, "--domains", "host:cores=1", "--transform", switch)
        for switch in ("on", "off")
    )
    return [Row(f"laplacian {n}^3 on 2 ranks", "GFLOP/s", hidden, blocking, "blocking", None)]


def two_hosts(n, iterations):
    """The same on two hosts with a link of 8 Gbit/s, each of which has cores of its own. Steps that
    are fused exchange once in four."""
    fuse = ("--fuse", 4)
    hidden, blocking, fused = (
        laplacian(n, iterations, "--domains", "host:cores=1", *how)
        for how in (("--transform", "on"), ("--transform", "off"), fuse)
    )
    hidden, blocking, fused = (
        replace(figure, command=replace(figure.command, under=TWO_HOSTS_OWN_CORES))
        for figure in (hidden, blocking, fused)
    )
    name, other = f"laplacian {n}^3 on 2 hosts, 8 Gbit/s", "both cores in one process"
    ideal, ideal_fused = (
        laplacian(n, iterations, "--domains", "host:cores=2", *how) for how in ((), fuse)
    )
    return [
        Row(name, "GFLOP/s", hidden, blocking, "blocking", ratio_at_least(1.3)),
        Row(name, "GFLOP/s", hidden, ideal, other, ratio_at_least(OF_IDEAL)),
        Row(f"{name}, 4 steps fused", "GFLOP/s", fused, blocking, "blocking, one by one",
            ratio_at_least(1.3)),
        Row(f"{name}, 4 steps fused", "GFLOP/s", fused, ideal_fused, other, None),
    ]


def two_devices(n, iterations):
    """Devices behind a link of 8 Gbit/s, in virtual time."""
    options = ("--blocks", "1x1x2", "--domains", ",".join([DEVICE] * 2))
    hidden, blocking = (
        laplacian(n, iterations, *options, "--transform", switch) for switch in ("on", "off")
    )
    name = f"laplacian {n}^3 on 2 devices, 8 Gbit/s"
    return [Row(name, "GFLOP/s", hidden, blocking, "blocking", ratio_at_least(1.3))]
