"""Streaming measured and tuned: overlap, what applications gain by streams, kernels of the host,
the tuner and the report."""

from harness.command import Command, Figure, Formula
from harness.row import Row, at_most, ratio_at_least

# Two cores of a host behind a link, as in docs/adr/0035: in virtual time, the same everywhere.
DEVICE = ("sim:clock=virtual,cores=2,gbps=6,latency_us=10,gflops=70,memory_gbps=28,kernels=skip")
# The device on which the tuner is tested, with 56 cores.
MANY_CORES = ("sim:clock=virtual,cores=56,gbps=6,duplex=half,latency_us=2,gflops=0.5,launch_us=5,"
              "kernels=skip")
NON_STREAMED = ("--streams", 1, "--tiles", 1)

# The averages of Fang et al., section 6.1.
GAINS = {"matmul": 1.08, "cholesky": 1.24, "kmeans": 1.24, "nn": 1.09, "dct": 1.05,
         "prefixsum": 1.10, "dotproduct": 1.06}
# Iterations that do not overlap, and that the transformation makes overlap.
TRANSFORMED = {"hotspot": (1.0, 1.05), "srad": (1.0, 1.05)}
# What can overlap in kmeans: the first iteration with the upload, see kmeans_bound().
KMEANS_SHARE = 0.97

# Small, as all pairs are measured, and with tiles for some of the places only.
TUNED = {"matmul": ("--n", 256, "--most-tiles", 8), "cholesky": ("--n", 256, "--most-tiles", 8),
         "kmeans": ("--n", 3000, "--iterations", 5, "--most-tiles", 28),
         "hotspot": ("--n", 256, "--iterations", 5, "--most-tiles", 8),
         "nn": ("--n", 30000, "--most-tiles", 28),
         "srad": ("--n", 256, "--iterations", 5, "--most-tiles", 8),
         "dct": ("--n", 256, "--most-tiles", 28),
         "prefixsum": ("--n", 65536, "--most-tiles", 28),
         "dotproduct": ("--n", 100000, "--most-tiles", 28)}
TUNED_QUICK = ("matmul", "nn", "hotspot")

# Kernels that memory limits, with problems that no cache holds, in tiles that suit memory: those of
# the prefix sums fit a core's cache, those of grids have long rows.
STREAMING = {"dotproduct": ("--n", 20_000_000), "prefixsum": ("--n", 1 << 24, "--tiles", 256),
             "hotspot": ("--n", 4096, "--iterations", 20, "--aspect", 16),
             "srad": ("--n", 4096, "--iterations", 10, "--tile", 512, "--aspect", 16)}


def groups(quick):
    """Rows that are measured together, round by round."""
    return [
        [overlap(title, domains, target) for title, domains, target in OVERLAPS],
        *[[gain(app, target)] for app, target in GAINS.items()],
        kmeans_share(),
        *[transformed(app, *targets) for app, targets in TRANSFORMED.items()],
        *[[streaming(app, options)] for app, options in STREAMING.items()],
        [kmeans_kernels(quick)],
        [dct_kernels(quick)],
        *[tuned(app) for app in (TUNED_QUICK if quick else TUNED)],
        report(quick),
    ]


OVERLAPS = (
    ("simulated device", DEVICE, at_most(1.05)),
    ("simulated device, half duplex", f"{DEVICE},duplex=half", at_most(1.05)),
    ("PoCL", "opencl:0,alias=off", None),
    ("CUDA", "cuda:0", None),
)


def overlap(title, domains, target):
    """The worst of the sweep."""
    command = Command.of("weir", "bench", "overlap", "--domains", domains, "--json",
                         once=domains.startswith(DEVICE))
    return Row(f"overlap, {title}: measured / ideal", "ratio",
               Figure(command, "results.0.worst_ratio"), target=target)


def run(app, *options):
    return Command.of("weir", "run", app, "--size", "small", "--domains", DEVICE, "--repeat", 1,
                      "--json", *options, once=True)


def gain(app, target):
    seconds = "seconds.median"
    return Row(f"{app}: streamed", "s", Figure(run(app), seconds),
               Figure(run(app, *NON_STREAMED), seconds), "one stream, one tile",
               ratio_at_least(target))


def transformed(app, plain, overlapping):
    seconds = "seconds.median"
    alone = Figure(run(app, *NON_STREAMED, "--transform", "off"), seconds)
    return [
        Row(f"{app}: streamed, {words}", "s", Figure(run(app, "--transform", switch), seconds),
            alone, "one stream, one tile", ratio_at_least(target))
        for words, switch, target in (("as it is", "off", plain),
                                      ("transformed", "on", overlapping))
    ]


def kmeans_bound(report):
    """The least time that the dependences of Lloyd's iteration allow, from a run that does not
    overlap. The second iteration needs the centres that all points made: only the first one, two of
    its passes over the points, can hide, behind the upload."""
    passes = 2 * report["params"]["iterations"] + 1
    compute_s, transfer_s = (report["overlap"][name] for name in ("compute_s", "transfer_s"))
    return max(transfer_s, 2 / passes * compute_s) + (passes - 2) / passes * compute_s


def kmeans_share():
    return [Row("kmeans: streamed, beside what its dependences allow", "s",
                Figure(run("kmeans"), "seconds.median"),
                Formula(run("kmeans", *NON_STREAMED), formula=kmeans_bound), "lower bound",
                ratio_at_least(KMEANS_SHARE))]


def streaming(app, options):
    """Bytes that the algorithm must move, however often the kernels do."""
    ours = Command.of("weir", "run", app, *options, "--repeat", 4, "--json")
    return Row(f"{app} on the host", "GB/s", Figure(ours, "traffic.value"),
               Figure(Command.of("stream_openmp")), "STREAM triad, OpenMP", ratio_at_least(0.8))


def kmeans_kernels(quick):
    size = ("--n", 20_000 if quick else 200_000, "--iterations", 20)
    return Row("kmeans on the host", "GFLOP/s",
               Figure(Command.of("weir", "run", "kmeans", *size, "--repeat", 4, "--json"),
                      "rate.value"),
               Figure(Command.of("kmeans_sklearn", *size)), "scikit-learn, Lloyd",
               ratio_at_least(1.0))


def dct_kernels(quick):
    size = ("--n", 2048 if quick else 8192)
    return Row("dct on the host", "s",
               Figure(Command.of("weir", "run", "dct", *size, "--repeat", 4, "--json"),
                      "seconds.median"),
               Figure(Command.of("dct_scipy", *size)), "scipy.fft.dctn", ratio_at_least(1.0))


def tuned(app):
    command = Command.of("tuner_search", app, "--domains", MANY_CORES, *TUNED[app], once=True)
    chosen = Figure(command)
    return [
        Row(f"tune {app}: the time chosen", "s", chosen, Figure(command, "best"),
            "best of all pairs", ratio_at_least(round(1 / 1.05, 3))),
        Row(f"tune {app}: the time chosen", "s", chosen, Figure(command, "default"), "default",
            ratio_at_least(1.0)),
        Row(f"tune {app}: divisions measured", "divisions", Figure(command, "measured"),
            Figure(command, "tenth"), "a tenth of all", ratio_at_least(1.0)),
    ]


def report(quick):
    actions = 100_000 if quick else 1_000_000
    name, size = f"report of {actions} actions", ("--actions", actions)
    return [
        Row(name, "s", Figure(Command.of("report_time", *size)), target=at_most(3)),
        Row(f"{name}: a tenth of it opened in Chromium", "s",
            Figure(Command.of("report_time", *size, "--open", once=True))),
    ]
