"""The streaming core on the processor: overheads, tiled algorithms, overlap, tracing, memory."""

from dataclasses import replace

from harness.command import Command, Figure
from harness.row import Row, at_most, ratio_at_least

TASK_PEERS = (
    ("straw man", "tasks_straw_man"),
    ("libgomp", "tasks_openmp"),
    ("oneTBB", "tasks_tbb"),
    ("StarPU", "tasks_starpu"),
)
# Enough to outlast a warm-up, few enough for the slowest peer.
WEIR_ACTIONS, PEER_ACTIONS, STARPU_ACTIONS = 200_000, 50_000, 20_000


# Title, shape, targets. Bounds that were measured with lists: 2.5 and 2.9 ns.
LAUNCHES = (("one chain", "chain", at_most(10)), ("independent", "independent", None),
            ("Cholesky-shaped", "cholesky", at_most(15)))


def groups(quick):
    """Rows that are measured together, round by round."""
    made = [
        empty_actions("independent", "independent", at_most(100)),
        empty_actions("independent, an operand each", "operands", at_most(100), actions=10_000),
        empty_actions("one chain", "chain", at_most(60)),
        empty_actions("two streams, an event every 10", "cross", at_most(80)),
        empty_actions("Cholesky-shaped, 8 streams", "cholesky", at_most(140)),
        *(launches(*shape) for shape in LAUNCHES),
        [four_places()],
        matmul(4096),
        cholesky(4096, 1.10),
    ]
    if not quick:
        made.append(cholesky(8192, 1.00))
    made += [overlap(), event_waits((512,) if quick else (256, 512, 1024)), tracing(), memory()]
    return made


def empty_actions(title, shape, target, actions=None):
    """One row for each peer; the first two carry the absolute target.

    weir runs on its default domain, a worker on each core beside the calling thread, and once with
    as many threads as the straw man and libgomp have: one worker and the calling thread.
    """
    name, count = f"empty actions: {title}", actions or WEIR_ACTIONS
    ours = task_figure("tasks_weir", shape, count)
    one_worker = task_figure("tasks_weir", shape, count, "--domains", "host:cores=1")
    rows = []
    for peer_name, program in TASK_PEERS:
        if shape == "operands" and program == "tasks_tbb":
            continue  # it infers nothing
        count = actions or (STARPU_ACTIONS if program == "tasks_starpu" else PEER_ACTIONS)
        peer = task_figure(program, shape, count)
        bound = target if not rows else peer_target(shape, peer_name)
        rows.append(Row(name, "ns/action", ours, peer, peer_name, bound))
    first = rows[0]
    rows.insert(1, replace(first, name=f"{name}, one worker", ours=one_worker))
    return rows


def launches(title, shape, target):
    """Launches of a graph of empty calls, beside the queue and a static graph that is run again."""
    name = f"empty calls of a graph: {title}"
    ours = task_figure("tasks_weir_queue", shape, PEER_ACTIONS, "--replay", 1)
    queue = task_figure("tasks_weir_queue", shape, PEER_ACTIONS)
    taskflow = task_figure("tasks_taskflow", shape, PEER_ACTIONS)
    return [Row(name, "ns/call", ours, queue, "weir, queue", target),
            Row(name, "ns/call", ours, taskflow, "Taskflow, run again")]


def peer_target(shape, peer_name):
    """The targets against those that infer dependences, on the program that needs it most."""
    if shape != "cholesky" or peer_name == "oneTBB":
        return None
    return ratio_at_least(25 if peer_name == "StarPU" else 1)


def task_figure(program, shape, actions, *more):
    return Figure(Command.of(program, shape, "--actions", actions, *more))


def four_places():
    four, two = (
        Figure(Command.of("tasks_weir", "cholesky", "--places", places)) for places in (4, 2)
    )
    return Row(
        "four places on two cores: Cholesky-shaped",
        "ns/action",
        four,
        two,
        "weir, two places",
        ratio_at_least(round(1 / 1.3, 3)),
    )


def weir_app(app, n):
    command = Command.of("weir", "run", app, "--n", n, "--repeat", 3, "--json")
    return Figure(command, "rate.value")


def tile_figure(program, app, n, tiles):
    return Figure(Command.of(program, app, "--n", n, "--tiles", tiles))


def matmul(n):
    ours = weir_app("matmul", n)
    one_call = tile_figure("tiles_openblas", "matmul", n, 0)
    tasks = tile_figure("tiles_openmp", "matmul", n, 512)
    return [
        gflops(f"matmul {n}", ours, one_call, "OpenBLAS, one call", ratio_at_least(0.97)),
        gflops(f"matmul {n}", ours, tasks, "OpenMP tiles", None),
    ]


def cholesky(n, bound):
    ours = weir_app("cholesky", n)
    one_call = tile_figure("tiles_openblas", "cholesky", n, 0)
    rows = [gflops(f"cholesky {n}", ours, one_call, "OpenBLAS, one call", ratio_at_least(bound))]
    for peer_name, program in (("StarPU tiles", "tiles_starpu"), ("OpenMP tiles", "tiles_openmp")):
        tasks = tile_figure(program, "cholesky", n, "256,512")
        rows.append(gflops(f"cholesky {n}", ours, tasks, peer_name, ratio_at_least(1.10)))
    return rows


def gflops(name, ours, peer, peer_name, target):
    return Row(name, "GFLOP/s", ours, peer, peer_name, target)


def overlap():
    cases = (
        ("16 blocks, compute 3/4 of transfer", 16, 8, 75),
        ("64 blocks, compute equal to transfer", 64, 4, 100),
    )
    rows = []
    for name, blocks, mib, percent in cases:
        command = Command.of(
            "overlap", "--blocks", blocks, "--mib", mib, "--balance-percent", percent
        )
        peer_name = "full overlap, by the model"
        rows.append(paired(f"overlap: {name}", "ms", command, peer_name, 1 / 1.05))
    return rows


def event_waits(tiles):
    rows = []
    for tile in tiles:
        name = f"waits in streams: matmul 4096, tile {tile}"
        command = Command.of("event_waits", "--tile", tile)
        rows.append(paired(name, "s", command, "waits on the host", 1.45))
    return rows


def tracing():
    cases = (
        ("tracing: stopped, empty actions", "off", 0.99),
        ("tracing: on, actions of 10 us", "on", 1 / 1.05),
    )
    return [
        paired(name, "ns/action", Command.of("trace_cost", verb), "never started", bound)
        for name, verb, bound in cases
    ]


def paired(name, unit, command, peer_name, bound):
    """A program that measures both sides itself, in turn."""
    target = ratio_at_least(round(bound, 3))
    return Row(name, unit, Figure(command), Figure(command, "peer"), peer_name, target)


def memory():
    in_flight = Figure(Command.of("memory", "in-flight"))
    allocations = Figure(Command.of("memory", "allocations"))
    return [
        Row("memory: 1 M actions in flight", "MB", in_flight, target=at_most(512)),
        Row("memory: 1 M actions in steady state", "allocations", allocations, target=at_most(100)),
    ]
