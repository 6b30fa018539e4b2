"""Task Bench's patterns: the smallest task at which a runtime reaches half of the peak, METG(50 %).

The length of a task is wall time x cores / tasks. A program runs graphs of shorter and shorter tasks;
its efficiency is its rate divided by the best rate of the kernel alone in the same run."""

import math
import os
from dataclasses import dataclass
from statistics import median

from harness.command import Command, Failed, Unmeasured
from harness.row import Row, at_most, ratio_at_least

HALF = 0.5
PREFIX = "METG(50 %), "
CORES = len(os.sched_getaffinity(0))
CORES_OF_TARGETS = 2
GAUGE = ("--gauge", os.environ.get("WEIR_BENCH_GAUGE", "on"))

# Pattern, points for each core, radix; the first three run with --quick.
PATTERNS = (
    ("stencil_1d", 2, None), ("fft", 4, None), ("nearest", 4, 5), ("trivial", 2, None),
    ("no_comm", 2, None), ("stencil_1d_periodic", 2, None), ("dom", 2, None), ("tree", 4, None),
    ("all_to_all", 4, None), ("spread", 4, 5), ("random_nearest", 4, 5))
QUICK_PATTERNS = 3
QUICK_SAMPLES = ("--sample-us", 10_000)

# Title, options, and the sizes of a task where those of the program do not suit.
VARIANTS = (
    ("memory-bound", ("--kernel", "memory", "--iterations", ",".join(str(2**i) for i in range(11)))),
    ("imbalanced", ("--kernel", "imbalanced")),
    ("outputs of 4 KiB", ("--output-bytes", 4096)),
    ("4 graphs at once", ("--graphs", 4)))

HALVES = f"host:cores={max(CORES // 2, 1)},sim:cores={max(CORES // 2, 1)}"
QUEUE = ("metg_weir_queue",)
REPLAY = ("metg_weir_queue", "--replay", 1)
OTHER_FORMS = (  # title, program, target, peer
    ("replay", REPLAY, 0.4, "MPI, static"),
    ("replay", REPLAY, None, "Taskflow, run again"),
    ("queue, a place for each core", ("metg_weir_queue", "--places", CORES), 1.5, "libgomp tasks"),
    ("queue, host and a simulated device", ("metg_weir_queue", "--domains", HALVES), None,
     "libgomp tasks"),
    ("queue, two ranks", ("metg_weir_queue", "--ranks", 2), None, "MPI, static"),
    ("streams, one place", ("metg_weir_streams",), None, "libgomp tasks"))
TARGETS = {"stencil_1d": 0.8, "nearest": 1.2}

# Name, program, and how many times better the queue on one place has to be. What only runs a graph
# that is made before, and a program without a runtime, are comparisons.
PEERS = (
    ("libgomp tasks", ("metg_openmp",), 3),
    ("LLVM OpenMP tasks", ("metg_llvm",), 3),
    ("oneTBB flow graph", ("metg_tbb",), 3),
    ("StarPU", ("metg_starpu",), 3),
    ("oneTBB flow graph, run again", ("metg_tbb", "--build", "before"), None),
    ("Taskflow, run again", ("metg_taskflow",), None),
    ("MPI, static", ("metg_mpi",), None))


@dataclass(frozen=True)
class Metg:
    """METG(50 %) of a pattern in microseconds, from the sweep of one program."""

    label: str
    pattern: str
    sweep: Command
    peak: Command

    def commands(self):
        return [self.peak, self.sweep]

    def values(self, outputs):
        """Returns one value for each round, None for one that gave none. Raises what stopped a
        command, or Unmeasured when no round gave a value."""
        peak = peak_rate(outputs[self.peak])
        found = [smallest_task(points, peak) for points in self.rounds(outputs)]
        if all(value is None for value in found):
            raise Unmeasured(f"{self.label}: {why_none(self.rounds(outputs), peak)}")
        return found

    def rounds(self, outputs):
        """Returns the sizes of each round: what the program printed of the pattern."""
        given = outputs[self.sweep]
        if isinstance(given, Exception):
            raise given
        try:
            return [output["patterns"][self.pattern] for output in given]
        except (KeyError, TypeError) as missing:
            raise Failed(f"{self.sweep.program} printed no '{self.pattern}'") from missing

    def configuration(self, outputs):
        return outputs[self.sweep][-1].get("config")


def peak_rate(given):
    """Returns the best rate of all rounds."""
    if isinstance(given, Exception):
        raise given
    rates = [output["value"] for output in given if output["value"] is not None]
    if not rates:
        raise Unmeasured("the rate of the kernel alone is not known: a core was away in all samples")
    return max(rates)


def measured_sizes(points, peak):
    """Returns the pairs of length and efficiency of what was measured, the shortest tasks first."""
    points = sorted((p for p in points if p["rate"] is not None), key=lambda p: p["iterations"])
    return [(point["task_us"], point["rate"] / peak) for point in points]


def smallest_task(points, peak):
    """Returns the length at which the efficiency is one half: between the smallest size that reaches
    it and the next smaller one, in logarithms. None when there are no such two sizes."""
    sizes = measured_sizes(points, peak)
    reached = [index for index, (_, efficiency) in enumerate(sizes) if efficiency >= HALF]
    if not reached or reached[0] == 0:
        return None
    (short, low), (long, high) = sizes[reached[0] - 1], sizes[reached[0]]
    part = math.log(HALF / low) / math.log(high / low)
    return short * (long / short) ** part


def why_none(rounds, peak):
    sizes = [measured_sizes(points, peak) for points in rounds]
    efficiencies = [efficiency for each in sizes for _, efficiency in each]
    if not efficiencies:
        return "a core was away in all samples"
    if max(efficiencies) < HALF:
        return f"no size of a task reaches half of the peak, the best is {max(efficiencies):.1%}"
    return "the smallest tasks that were measured reach half of the peak"


def groups(quick):
    """Rows that are measured together, round by round."""
    if quick:
        return [rows_of(PATTERNS[:QUICK_PATTERNS], options=QUICK_SAMPLES)]
    variants = [rows_of(PATTERNS[:1], f", {title}", options) for title, options in VARIANTS]
    return [rows_of(PATTERNS), *variants]


def words_of(pattern, points, radix):
    """Returns the pattern as the programs take it, and as a row names it."""
    width = points * CORES
    if radix is None:
        return f"{pattern}:{width}", f"{pattern}, width {width}"
    return f"{pattern}:{width}:{radix}", f"{pattern} {radix}, width {width}"


def rows_of(patterns, variant="", options=()):
    words = [words_of(*each) for each in patterns]
    everything = ",".join(word for word, _ in words)
    memory = ("--kernel", "memory") if "memory" in options else ()
    peak = Command.of("metg_peak", *memory, *GAUGE)

    def figure(label, program, word):
        sweep = Command.of(program[0], everything, *program[1:], *options, *GAUGE)
        return Metg(label, word, sweep, peak)

    rows = []
    for (pattern, _, _), (word, title) in zip(patterns, words):
        name = f"{PREFIX}{title}{variant}"
        target = None if variant else TARGETS.get(pattern)
        queue = figure("weir queue, one place", QUEUE, word)
        rows.append(Row(f"{name}: queue, one place", "us", queue, target=on_two_cores(target)))
        for peer_name, program, bound in PEERS:
            wanted = ratio_at_least(bound) if bound else None
            peer = figure(peer_name, program, word)
            rows.append(Row(f"{name}: queue, one place", "us", queue, peer, peer_name, wanted))
        programs = {peer_name: program for peer_name, program, _ in PEERS}
        for form, program, bound, peer_name in OTHER_FORMS:
            ours, peer = figure(f"weir {form}", program, word), figure(peer_name, programs[peer_name], word)
            target = on_two_cores(None if variant else bound)
            rows.append(Row(f"{name}: {form}", "us", ours, peer, peer_name, target))
    return rows


def on_two_cores(bound):
    return at_most(bound) if bound and CORES == CORES_OF_TARGETS else None


def complete(report, measured_groups):
    """Adds the curves to the report, and a note about refused samples. measured_groups: pairs of rows
    and of what their commands printed."""
    curves, sizes = {}, {}
    for number, (rows, outputs) in enumerate(measured_groups):
        for row in rows:
            title = row.name.removeprefix(PREFIX).split(":")[0]
            for figure in (side for side in (row.ours, row.peer) if side):
                points = curve(figure, outputs)
                if points:
                    curves.setdefault(title, {})[figure.label] = points
                if not isinstance(outputs[figure.sweep], Exception):
                    sizes[number, figure.sweep, figure.pattern] = figure.rounds(outputs)
    report["curves"] = curves
    report["notes"] = [note_of([size for rounds in sizes.values() for each in rounds for size in each])]


def note_of(sizes):
    if GAUGE[1] != "on":
        return "No sample was refused: the gauge was off, so a core may have been away."
    refused, accepted = (sum(size[kind] for size in sizes) for kind in ("refused", "samples"))
    return f"{refused} of {refused + accepted} samples were refused because a core was away."


def curve(figure, outputs):
    """Returns [length, efficiency] of each size, the medians of the rounds; nothing when the program
    or the peak gave none."""
    try:
        peak, rounds = peak_rate(outputs[figure.peak]), figure.rounds(outputs)
    except Exception:  # what stopped a command is in its rows
        return []
    sizes = {}
    for size in (size for points in rounds for size in points if size["rate"] is not None):
        sizes.setdefault(size["iterations"], []).append((size["task_us"], size["rate"] / peak))
    return [[median(pair[side] for pair in sizes[iterations]) for side in (0, 1)]
            for iterations in sorted(sizes)]
