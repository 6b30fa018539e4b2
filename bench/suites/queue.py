"""Task queues: cost of a task, and programs over places of different speed, beside peers."""

import atexit
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.command import Command, Figure, Formula, Sum
from harness.row import Row, at_least, at_most, ratio_at_least
from suites.core import PEER_ACTIONS, STARPU_ACTIONS, TASK_PEERS, tile_figure

DEVICE = "sim:clock=virtual,gflops={},gbps=8,latency_us=10,kernels=skip"
SLOW, FAST = DEVICE.format(35), DEVICE.format(70)
SPEEDS = (("1 : 1", (SLOW, SLOW)), ("1 : 0.5", (FAST, SLOW)), ("1 : 2", (SLOW, FAST)))
SHARE_OF_SUM = {"matmul": 0.95, "cholesky": 0.90}
SHARE_OF_SUM_AT_FIRST = 0.85


def groups(quick):
    """Rows that are measured together, round by round."""
    n = 2048 if quick else 4096
    made = [
        empty_tasks("one place of all cores", at_most(200)),
        empty_tasks("a place for each core", None, "--places", 2),
        empty_tasks("host and a simulated device", None, "--domains", "host:cores=1,sim:cores=1"),
        small_tiles(n),
        beside_streams(n),
    ]
    made += [form_sizes(app) for app in ("cholesky", "matmul", "lu", "sparse-cholesky")]
    for app in SHARE_OF_SUM:
        made += [several_devices(app, 4096, *speeds) for speeds in SPEEDS]
    rates = DEVICE_RATES[:1] if quick else DEVICE_RATES
    order = n if quick else 6144  # tiles of 384 are fast, and enough for two places
    for problem in (("matmul", n, n // 8), ("cholesky", order, order // 16)):
        made += [host_and_device(*problem, rate) for rate in rates]
    made += [out_of_core(*case) for case in OUT_OF_CORE]
    made += [policies(n, tile) for n in (4096, 8192) for tile in ((256,) if quick else (128, 256, 512))]
    return made + [wave_on_host(quick), wave_overlap(), wave_on_devices(2), wave_on_devices(4)]


def empty_tasks(title, target, *options):
    """Tasks of a Cholesky factorisation that do nothing, beside runtimes that infer dependences."""
    ours = Figure(Command.of("tasks_weir_queue", "cholesky", *options))
    rows = []
    for peer_name, program in TASK_PEERS:
        if program == "tasks_straw_man":
            continue
        actions = STARPU_ACTIONS if program == "tasks_starpu" else PEER_ACTIONS
        peer = Figure(Command.of(program, "cholesky", "--actions", actions))
        name = f"empty tasks, Cholesky-shaped: {title}"
        rows.append(Row(name, "ns/task", ours, peer, peer_name, None if rows else target))
    return rows


def app_figure(app, *options, fresh=False, field="rate.value"):
    command = Command.of("weir", "run", app, *options, "--json")
    return Figure(Command(command.program, command.arguments, fresh), field)


def by_queue(app, n, *options, **more):
    return app_figure(app, "--n", n, "--policy", "finish", "--repeat", 4, *options, **more)


def small_tiles(n):
    ours, whole = (by_queue("cholesky", n, "--tile", tile) for tile in (128, 256))
    name = f"cholesky {n} by tasks: tile 128"
    return [Row(name, "GFLOP/s", ours, whole, "weir, tile 256", ratio_at_least(0.95))]


def beside_streams(n):
    ours = by_queue("cholesky", n)
    rows = [("weir, streams", app_figure("cholesky", "--n", n, "--repeat", 4), 0.97)]
    tiles = "256,512"
    rows += [(f"StarPU tiles, {name}", starpu_tiles(n, tiles, name), 1.0) for name in ("lws", "dmdas")]
    rows.append(("OpenMP tiles", tile_figure("tiles_openmp", "cholesky", n, tiles), 1.0))
    rows.append(("OpenBLAS, one call", tile_figure("tiles_openblas", "cholesky", n, 0), 1.0))
    name = f"cholesky {n} by tasks"
    return [
        Row(name, "GFLOP/s", ours, peer, peer_name, ratio_at_least(bound))
        for peer_name, peer, bound in rows
    ]


def starpu_tiles(n, tiles, scheduler):
    figure = tile_figure("tiles_starpu", "cholesky", n, tiles)
    return replace(figure, command=replace(figure.command, under=("env", f"STARPU_SCHED={scheduler}")))


def form_sizes(app):
    """Lines of code and calls of an application by tasks, beside those of streams bound by hand."""
    rows = []
    for what in ("lines", "calls"):
        tasks, streams = (
            Figure(Command.of("form_size", what, app, form, once=True)) for form in ("tasks", "streams")
        )
        rows.append(Row(f"{app} by tasks: {what}", what, tasks, streams, "weir, streams"))
    return rows


def several_devices(app, n, title, devices):
    """Devices in virtual time, against the sum of each alone; learned, and at first."""

    def figure(domains, repeats, fresh):
        options = ("--n", n, "--tile", 256, "--policy", "finish", "--repeat", repeats)
        return app_figure(app, *options, "--domains", domains, fresh=fresh)

    alone = Sum(tuple(figure(device, 4, False) for device in devices))
    name = f"{app} {n} by tasks, devices {title}"
    together = ",".join(devices)
    return [
        Row(title, "GFLOP/s", ours, alone, "sum of the devices alone", ratio_at_least(bound))
        for title, ours, bound in (
            (name, figure(together, 4, False), SHARE_OF_SUM[app]),
            (f"{name}, first run", figure(together, 1, True), SHARE_OF_SUM_AT_FIRST),
        )
    ]


# About the rate of a core of the host, half of that, and twice.
DEVICE_RATES = (60, 30, 120)


def host_and_device(app, n, tile, rate):
    """A core of the host and a device in real time, against the sum of what each reaches alone. The
    device only lets time pass, and the matrix is such that this does no harm."""
    domains = ("host:cores=1", f"sim:gflops={rate},gbps=8,latency_us=10,kernels=skip")
    size = ("--n", n) if app == "matmul" else ("--input", diagonal_matrix(n))

    def figure(used, repeats, fresh):
        options = ("--tile", tile, "--policy", "finish", "--repeat", repeats, "--domains", used)
        return app_figure(app, *size, *options, fresh=fresh)

    rows = []
    for title, repeats, fresh, bound in (
        ("", 4, False, SHARE_OF_SUM[app]),
        (", first run", 1, True, SHARE_OF_SUM_AT_FIRST),
    ):
        alone = Sum(tuple(figure(used, repeats, fresh) for used in domains))
        name = f"{app} {n} by tasks, a core and a device of {rate} GFLOP/s, real time{title}"
        ours = figure(",".join(domains), repeats, fresh)
        rows.append(Row(name, "GFLOP/s", ours, alone, "sum of both alone", ratio_at_least(bound)))
    return rows


@cache
def diagonal_matrix(n):
    """Writes a matrix that stays positive definite whatever part of it is factored."""
    folder = tempfile.TemporaryDirectory(prefix="weir-bench-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / f"diagonal-{n}.mtx"
    entries = "\n".join(f"{i} {i} 4096" for i in range(1, n + 1))
    path.write_text(f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {n}\n{entries}\n")
    return path


# A quarter of the three matrices of matmul, and of the lower triangle of cholesky.
OUT_OF_CORE = (("matmul", 4096, 512, 96), ("cholesky", 4096, 256, 17))


def out_of_core(app, n, tile, mib):
    """Time beside the larger of transfers and computing, and bytes beside what the order needs."""
    options = ("--n", n, "--tile", tile, "--policy", "finish", "--repeat", 2)
    domains = f"{SLOW},memory={mib}MiB"
    measured, ideal = (
        app_figure(app, *options, "--domains", domains, field=f"overlap.{field}")
        for field in ("measured_s", "ideal_s")
    )
    moved = Formula(measured.command, formula=lambda run: sum(run["bytes"].values()) / 1e6)
    least = Command.of("tile_traffic", app, "--n", n, "--tile", tile, "--mib", mib, once=True)
    name = f"{app} {n} by tasks in {mib} MiB of a device"
    peer_name = "the larger of transfers and computing"
    return [
        Row(name, "s", measured, ideal, peer_name, ratio_at_least(round(1 / 1.15, 3))),
        Row(f"{name}: moved", "MB", moved, Figure(least), "eviction of the furthest next use",
            ratio_at_least(round(1 / 1.3, 3))),
    ]


def policies(n, tile):
    """The default policy beside the best other one, where that is worst: matmul and Cholesky on all
    modelled machines, in virtual time. The program prints the whole table to standard error."""
    command = Command.of("policies_weir", "--n", n, "--tile", tile, once=True)
    name = f"policy finish by the best other, {n}, tile {tile}, worst of all machines"
    return [Row(name, "share", Figure(command, "least_ratio"), target=at_least(0.97))]


def wave_figure(devices, *options):
    device = "sim:clock=virtual,gflops=35,gbps=6,latency_us=10,kernels=skip"
    wave = ("--n", 192, "--steps", 40, "--repeat", 2, "--domains", ",".join([device] * devices))
    return app_figure("wave", *wave, *options)


def wave_on_host(quick):
    """The host's kernel, against what memory allows it: a plain loop with the same traffic."""
    ours = app_figure("wave", "--n", 256, "--steps", 20 if quick else 60, "--repeat", 3)
    allowed = Figure(Command.of("update_openmp", "--n", 256))
    name = "wave 256 on the host"
    return [Row(name, "GFLOP/s", ours, allowed, "bandwidth of memory", ratio_at_least(0.6))]


def wave_overlap():
    on, off = (wave_figure(4, "--overlap", switch) for switch in ("on", "off"))
    return [Row("wave on 4 devices, 6 GB/s", "GFLOP/s", on, off, "no overlap",
                ratio_at_least(1.10))]


def wave_on_devices(devices):
    name = f"wave on {devices} devices, beside one"
    alone = Sum((wave_figure(1),) * devices)
    return [Row(name, "GFLOP/s", wave_figure(devices), alone, f"{devices} x one",
                ratio_at_least(0.9))]
