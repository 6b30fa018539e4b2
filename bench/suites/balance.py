"""Load balancing: shares beside equal parts, and the kernel of asian-option beside others."""

from harness.command import Command, Figure
from harness.row import Row, at_most, ratio_at_least

CARDS = (("1 : 2", "1,2", 1), ("1 : 2 : 4", "1,2,4", 1), ("1 : 2, then 1 : 0.2", "1,2", 10))


def groups(quick):
    """Rows that are measured together, round by round."""
    return [
        *[makespan(*cards) for cards in CARDS],
        [grain(count) for count in (1, 3, 10, 30)],
        [visit(chunks) for chunks in ("one", "learned")],
        over_ranks(100 if quick else 600),
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
        Row(f"makespan / ideal, 300 items, cards {title}", "ratio", ours,
            shared(speeds, slow_by, chunks), f"chunks {chunks}", at_most(1.02))
        for chunks in peers
    ]


def grain(count):
    """Figure 10 of paper 004: the larger the chunks, the more idle are the cards in the end."""
    return Row(f"idle share of cards 1 : 2, chunks of {count}", "share",
               shared("1,2", 1, f"fixed:{count}", "idle"), shared("1,2", 1, "learned", "idle"),
               "chunks learned")


def visit(chunks):
    return Row(f"a visit, chunks {chunks}", "ns",
               Figure(Command.of("shares_weir", "visits", "--chunks", chunks)), target=at_most(300))


def ranks(items, chunks, scheduler="onesided"):
    return Figure(Command.of("shares_weir", "ranks", "--items", items, "--chunks", chunks,
                             "--scheduler", scheduler))


def coarrays(verb, items, microseconds, chunk):
    return Figure(Command.of("shares_caf", 2, verb, items, microseconds, chunk))


def over_ranks(items):
    """Figure 11 of paper 004: two processes, the second of which computes twice as fast."""
    name, ours = f"makespan / ideal, {items} items, two ranks 1 : 2", ranks(items, "learned")
    return [
        Row(name, "ratio", ours, coarrays("makespan", items, 1000, 1), "coarrays, one at a time",
            at_most(1.02)),
        Row(name, "ratio", ours, coarrays("makespan", items, 1000, 4), "coarrays, chunks of 4"),
        Row(name, "ratio", ours, ranks(items, "static"), "chunks static"),
        Row(name, "ratio", ours, ranks(items, "one", "master"), "a master, one at a time"),
    ]


def rank_visit(visits):
    """The owner of the counter computes."""
    ours = Figure(Command.of("shares_weir", "rank-visits", "--visits", visits))
    return [Row("a visit to the counter of another rank", "ns", ours,
                coarrays("visits", visits, 1, 1), "coarrays", at_most(1000))]


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
