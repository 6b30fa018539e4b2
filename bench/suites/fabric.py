"""The fabric: small items for another rank, beside plain MPI, over shared memory and TCP."""

from harness.command import Command, Figure
from harness.row import Row, at_least, ratio_at_least

# GB/s of 64-byte items in one machine; the link decides elsewhere.
SHARED_MEMORY = {"stream": 6.0, "random": 3.5, "repeat": 8.0}
NETWORKS = {"shm": "shared memory", "tcp": "TCP loopback"}


def groups(quick):
    """Rows that are measured together, round by round."""
    items = 1 << 14 if quick else 1 << 20
    return [
        puts(pattern, network, items) for network in NETWORKS for pattern in SHARED_MEMORY
    ] + [each(items)]


def figure(program, pattern, network, items, *more):
    return Figure(Command.of(program, pattern, "--network", network, "--items", items,
                             "--lines", items, *more))


def puts(pattern, network, items):
    """64-byte puts through a conveyor, beside those who send each item by itself."""
    ours = figure("puts_weir", pattern, network, items)
    target = at_least(SHARED_MEMORY[pattern]) if network == "shm" else ratio_at_least(2)
    rows = []
    for peer_name, by in (("Open MPI, a message each", "send"), ("Open MPI, MPI_Put each", "put")):
        peer = figure("puts_mpi", pattern, network, items, "--by", by)
        name = f"64-byte puts, {pattern}, {NETWORKS[network]}"
        rows.append(Row(name, "GB/s", ours, peer, peer_name, None if rows else target))
    return rows


def each(items):
    """What coalescing brings."""
    ours = figure("puts_weir", "random", "shm", items)
    alone = figure("puts_weir", "random", "shm", items, "--block-items", 1)
    return [Row("64-byte puts, random, shared memory: coalesced", "GB/s", ours, alone,
                "weir, a block for each", ratio_at_least(2))]
