"""Load balancing: shares beside equal parts, and the kernel of asian-option beside others."""

from dataclasses import replace

from harness.command import Command, Figure
from harness.row import Row, at_most, ratio_at_least
from harness.hosts import TWO_HOSTS_OWN_CORES

NETWORKS = {"shm": "shared memory", "hosts": "8 Gbit/s"}
ITEM_US = 2000
DEVICES = (("1 : 2", "1,2", 1), ("1 : 2 : 4", "1,2,4", 1), ("1 : 2, then 1 : 0.2", "1,2", 10))


def groups(quick):
    """Rows that are measured together, round by round."""
    return [
        *[makespan(*devices) for devices in DEVICES],
        [grain(count) for count in (1, 3, 10, 30)],
        [visit(chunks) for chunks in ("one", "learned")],
        over_ranks("shm", 300 if quick else 600),
        over_ranks("hosts", 300 if quick else 600),
        rank_visit(1000 if quick else 100000),
        paths(1 if quick else 4),
    ]


def shared(speeds, slow_by, chunks, field="value"):
    return Figure(Command.of("shares_weir", "makespan", "--speeds", speeds, "--slow-by", slow_by,
                             "--chunks", chunks), field)


def makespan(title, speeds, slow_by):
    """Virtual time: the same on every machine."""
    ours = shared(speeds, slow_by, "learned")
    peers = ("static", "guided", "factoring", "weighted-factoring")
    return [
        Row(f"makespan / ideal, 300 items, devices {title}", "ratio", ours,
            shared(speeds, slow_by, chunks), f"chunks {chunks}", at_most(1.02))
        for chunks in peers
    ]


def grain(count):
    """Figure 10 of paper 004: the larger the chunks, the more idle are the devices in the end."""
    return Row(f"idle share of devices 1 : 2, chunks of {count}", "share",
               shared("1,2", 1, f"fixed:{count}", "idle"), shared("1,2", 1, "learned", "idle"),
               "chunks learned")


def visit(chunks):
    return Row(f"a visit, chunks {chunks}", "ns",
               Figure(Command.of("shares_weir", "visits", "--chunks", chunks)), target=at_most(300))


class Ranks:
    """Two ranks, the second of which computes twice as fast, and half way slows down by a factor."""

    def __init__(self, network, items, slow_by):
        self.network, self.items, self.slow_by = network, items, slow_by

    def name(self):
        speeds = "1 : 2" if self.slow_by == 1 else f"1 : 2, then 1 : {2 / self.slow_by:g}"
        return f"makespan / ideal, {self.items} items, ranks {speeds}, {NETWORKS[self.network]}"

    def figure(self, program, *arguments):
        command = Command.of(program, *arguments)
        if self.network == "hosts":
            command = replace(command, under=TWO_HOSTS_OWN_CORES)
        return Figure(command)

    def weir(self, chunks, scheduler="onesided"):
        return self.figure("shares_weir", "ranks", "--network", self.network, *self.problem(),
                           "--chunks", chunks, "--scheduler", scheduler)

    def mpi(self, by, chunk):
        return self.figure("shares_mpi", "makespan", "--network", self.network, *self.problem(),
                           "--by", by, "--chunk", chunk)

    def coarrays(self, chunk):
        arguments = ("makespan", self.items, ITEM_US, chunk, self.slow_by)
        if self.network == "hosts":
            return self.figure("shares_caf_images", *arguments)
        return self.figure("shares_caf", 2, *arguments)

    def problem(self):
        return "--items", self.items, "--item-us", ITEM_US, "--slow-by", self.slow_by


def over_ranks(network, items):
    """Figure 11 of paper 004, on one machine and on two, with what others do for that."""
    rows = []
    for slow_by in (1, 10):
        ranks = Ranks(network, items, slow_by)
        peers = [
            ("chunks static", ranks.weir("static")),
            ("coarrays, one at a time", ranks.coarrays(1)),
            ("Open MPI, MPI_Fetch_and_op", ranks.mpi("window", 1)),
        ]
        if slow_by == 1:
            peers += [
                ("coarrays, chunks of 4", ranks.coarrays(4)),
                ("a master, one at a time", ranks.weir("one", "master")),
                ("Open MPI, a master that polls", ranks.mpi("messages", 1)),
            ]
        # Of what is slowed down an item takes 3 % of the makespan.
        most = at_most(1.02 if network == "shm" and slow_by == 1 else 1.05)
        ours = ranks.weir("learned")
        rows += [Row(ranks.name(), "ratio", ours, peer, name, most) for name, peer in peers]
    return rows


def rank_visit(visits):
    """The owner of the counter computes."""
    ours = Figure(Command.of("shares_weir", "rank-visits", "--visits", visits))
    peers = {
        "coarrays": Command.of("shares_caf", 2, "visits", visits, 1, 1, 1),
        "Open MPI, MPI_Fetch_and_op": Command.of("shares_mpi", "visits", "--visits", visits),
    }
    return [Row("a visit to the counter of another rank", "ns", ours, Figure(peer), name,
                at_most(1000)) for name, peer in peers.items()]


def priced(shape, options):
    return Figure(Command.of("weir", "run", "asian-option", "--n", 16 * options, "--domains",
                             "host:cores=1", "--shape", shape, "--repeat", 2, "--json"),
                  "share.path_steps_per_s")


def paths(options):
    """Figure 9 of paper 004, on one core, and other programs that price such options."""
    loop = Figure(Command.of("paths_openmp", "--options", options))
    quantlib = Figure(Command.of("paths_quantlib"))
    return [
        Row("paths, mo", "steps/s", priced("mo", options), priced("mt", options), "mt"),
        Row("paths, mo", "steps/s", priced("mo", options), loop, "C++, OpenMP, libmvec",
            ratio_at_least(0.9)),
        Row("paths, mo", "steps/s", priced("mo", options), quantlib, "QuantLib",
            ratio_at_least(5)),
    ]
