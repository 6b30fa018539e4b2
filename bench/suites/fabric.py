"""The fabric: small items for another rank, beside plain MPI, over shared memory, TCP and a link of
8 Gbit/s between two hosts; halos and the Laplacian; ranks as domains."""

from dataclasses import replace

from harness.command import Command, Figure
from harness.hosts import TWO_HOSTS
from harness.row import Row, at_least, at_most, ratio_at_least
from suites._laplacian import groups as laplacian_groups
from suites.queue import app_figure

# GB/s of 64-byte items in one machine; the link decides elsewhere.
SHARED_MEMORY = {"stream": 6.0, "random": 3.5, "repeat": 8.0}
NETWORKS = {"shm": "shared memory", "tcp": "TCP loopback", "hosts": "8 Gbit/s"}
OF_THE_LINK = 0.9  # of what large messages reach, where the link decides


def groups(quick):
    """Rows that are measured together, round by round."""
    items = 1 << 17 if quick else 1 << 20
    return [
        *(puts(pattern, network, items) for network in NETWORKS for pattern in SHARED_MEMORY),
        each(items),
        strategies(items, quick),
        one_thing(quick),
        *(collective(*what, ranks) for ranks in (2, 4) for what in collectives(quick)),
        cholesky(2048 if quick else 8192),
        *laplacian_groups(quick),
    ]


def figure(program, pattern, network, items, *more):
    command = Command.of(program, pattern, "--network", network, "--items", items, "--lines", items,
                         *more)
    return Figure(replace(command, under=TWO_HOSTS) if network == "hosts" else command)


def puts(pattern, network, items):
    """64-byte puts through a conveyor, beside those who send each item by itself."""
    ours = figure("puts_weir", pattern, network, items)
    name = f"64-byte puts, {pattern}, {NETWORKS[network]}"
    rows = []
    if network == "shm":
        rows.append(Row(name, "GB/s", ours, target=at_least(SHARED_MEMORY[pattern])))
        by_mpirun = figure("puts_weir", pattern, "mpirun", items)
        rows.append(Row(f"{name}, ranks of mpirun", "GB/s", by_mpirun, ours, "ranks of weir",
                        ratio_at_least(0.95)))
    for peer_name, by, target in (
        ("Open MPI, large messages", "large",
         None if network == "shm" else ratio_at_least(OF_THE_LINK)),
        ("Open MPI, a message each", "send", ratio_at_least(2)),
        ("Open MPI, MPI_Put each", "put", None),
    ):
        peer = figure("puts_mpi", pattern, network, items, "--by", by)
        rows.append(Row(name, "GB/s", ours, peer, peer_name, target))
    if network == "tcp" and pattern != "repeat":
        # Two cores are this link: what they have to do for items in place is its bound.
        bound = figure("puts_mpi", pattern, network, items, "--by", "blocks")
        rows.append(Row(name, "GB/s", ours, bound, "Open MPI, blocks by hand",
                        ratio_at_least(OF_THE_LINK)))
    return rows


def each(items):
    """What coalescing brings."""
    ours = figure("puts_weir", "random", "shm", items)
    alone = figure("puts_weir", "random", "shm", items, "--block-items", 1)
    return [Row("64-byte puts, random, shared memory: coalesced", "GB/s", ours, alone,
                "weir, a block for each", ratio_at_least(2))]


def strategies(items, quick):
    """What it is worth that threads which wait move the fabric on, and a thread when none does."""
    def row(name, unit, command):
        ours, peer = (
            Figure(replace(command, under=("env", f"WEIR_PROGRESS={by}")))
            for by in ("hybrid", "thread")
        )
        return Row(f"{name}: progress by callers or a thread", unit, ours, peer, "by a thread")

    return [
        row("64-byte puts, random, shared memory", "GB/s",
            figure("puts_weir", "random", "shm", items).command),
        row("empty action on another rank, median", "us",
            Command.of("remote_weir", "action", "--count", 1_000 if quick else 10_000)),
    ]


def one_thing(quick):
    """What a single operation on another process of this machine costs."""
    def row(name, verb, count, most, *peer, network="shm"):
        figure = Figure(Command.of("remote_weir", verb, "--count", count // 10 if quick else count,
                                   "--network", network))
        return Row(name, "us", figure, *peer, target=at_most(most))

    def between_hosts(quick):
        command = Command.of("remote_weir", "fetch-add", "--count", 500 if quick else 5_000,
                             "--network", "hosts")
        ours, over_mpi = (Figure(replace(command, under=("env", f"WEIR_UCX={ucx}", *TWO_HOSTS)))
                          for ucx in (1, 0))
        return Row("fetch-and-add on a rank of another host that computes, 8 Gbit/s, median", "us",
                   ours, over_mpi, "weir over Open MPI", ratio_at_least(2))

    by_mpi = Figure(Command.of("fetch_add_mpi", "--count", 2_000 if quick else 20_000))
    return [
        row("fetch-and-add on a rank that computes, median", "fetch-add", 20_000, 2, by_mpi,
            "Open MPI, MPI_Fetch_and_op"),
        row("fetch-and-add on a rank of mpirun that computes, median", "fetch-add", 20_000, 2,
            network="mpirun"),
        between_hosts(quick),
        row("empty action on another rank, one by one, median", "action", 10_000, 5),
        row("empty actions on another rank, each", "actions", 100_000, 1),
        row("8 bytes from a stream to one of another rank, each after the other", "message", 10_000, 20),
    ]


MPIS = {"Open MPI": ("openmpi", "mpirun.openmpi", "--oversubscribe"), "MPICH": ("mpich", "mpirun.mpich")}


def collectives(quick):
    """Operations of all ranks, and their bytes."""
    return [("barrier", 0), *((verb, size) for verb in ("broadcast", "reduce")
                              for size in ((8,) if quick else (8, 1 << 12, 1 << 16, 1 << 20)))]


def collective(verb, size, ranks):
    """An operation of ranks that share memory, beside both MPIs."""
    ours = Figure(Command.of("collectives_weir", verb, "--bytes", size, "--ranks", ranks))
    name = f"{verb}{f' of {size} B' if size else ''}, {ranks} ranks, shared memory"
    rows = []
    for mpi, (program, *launcher) in MPIS.items():
        peer = Command.of(f"collectives_{program}", verb, "--bytes", size)
        under = ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", *launcher,
                 "-n", str(ranks))
        rows.append(Row(name, "us", ours, Figure(replace(peer, under=under)), mpi, ratio_at_least(1)))
    return rows


def cholesky(n):
    """A factorisation by two processes of one core each, beside one that has both."""
    options = ("--n", n, "--repeat", 3)
    two = app_figure("cholesky", *options, "--ranks", 2, "--domains",
                     "host:cores=1,rank:*/host:cores=1")
    one = app_figure("cholesky", *options, "--domains", "host:cores=2")
    return [Row(f"cholesky {n} on 2 ranks of 1 core", "GFLOP/s", two, one, "1 rank of 2 cores",
                ratio_at_least(0.90))]
