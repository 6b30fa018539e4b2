"""Plots of docs/measurements: values are read from its files when the picture is drawn."""

import json
import math
import re
from pathlib import Path

from drawing import Picture

MEASUREMENTS = Path(__file__).resolve().parent.parent / "measurements"


def suite_of(name):
    return json.loads((MEASUREMENTS / f"{name}.json").read_text(encoding="utf-8"))


def origin_of(suite):
    """Where and when the values were measured."""
    machine = suite["machine"]
    cpu = re.sub(r"\((R|TM)\)", "", machine["cpu"])
    return (f"{cpu}, {machine['cores']} cores, {machine['compiler']}, {suite['date']}. Medians; the line is the range of "
            f"the runs. docs/measurements/{suite['suite']}.json")


def value_of(suite, name, peer=None):
    """(median, least, most) of weir in the row of that name, or of a peer in it."""
    for row in suite["rows"]:
        if row["name"] == name and (peer is None or row["peer_name"] == peer):
            side = "ours" if peer is None else "peer"
            return (row[side], *row["spread"][side])
    raise ValueError(f"{suite['suite']}.json has no row '{name}' with the peer {peer!r}")


def in_words(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def dot_plot(title, description, groups, unit, better, origin, label=250, width=860, ticks=()):
    """Groups of rows (name, (median, least, most), bold); without ticks on a logarithmic axis."""
    choose = min if better == "less is better" else max
    best = [f"{name}: {(found := choose(rows, key=lambda row: row[1][0]))[0]}, {in_words(found[1][0])}"
            for name, rows in groups]
    description += " Best median of each group: " + "; ".join(best) + "."
    values = [each for _, rows in groups for _, value, _ in rows for each in value]
    low = ticks[0] if ticks else 10 ** math.floor(math.log10(min(values)))
    high = ticks[-1] if ticks else 10 ** math.ceil(math.log10(max(values)))
    if min(values) < low or max(values) > high:
        raise ValueError(f"{title}: {min(values)} to {max(values)} is not within {low} to {high}")
    scale = (lambda value: value) if ticks else math.log10
    height = 92 + sum(28 + 20 * len(rows) for _, rows in groups) + 30
    p = Picture(width, height, title, description)
    x0, span = label, width - label - 80

    def at(value):
        return x0 + (scale(value) - scale(low)) / (scale(high) - scale(low)) * span

    marks = [(tick, f"{tick:g}") for tick in ticks]
    decade = low
    while not ticks and decade <= high * 1.001:
        marks.append((decade, f"{decade:,.0f}" if decade >= 1 else f"{decade:g}"))
        decade *= 10
    p.text(16, 22, title, 14, bold=True)
    p.text(16, 44, f"{unit}; {better}" + ("" if ticks else "; logarithmic axis"), 12, hue="grey")
    bottom = height - 62
    p.axis(x0, bottom, span, 60, marks, "", at)
    y = 72
    for name, rows in groups:
        p.text(16, y, name, 12.5, bold=True, room=label + 260, halo=True)
        y += 20
        for row, (median, least, most), ours in rows:
            hue = "blue" if ours else "orange"
            p.text(x0 - 12, y, row, 12, "end", bold=ours, room=label - 20)
            p.line([(at(least), y), (at(most), y)], hue, width=3)
            p.dot(at(median), y, hue, 0 if ours else 3)
            p.text(max(at(most), at(median)) + 12, y, in_words(median), 12, bold=ours, halo=True)
            y += 20
        y += 8
    lines = origin.split(" docs/")
    p.note(16, height - 28, lines[0], 11, room=width - 24)
    p.note(16, height - 12, f"docs/{lines[1]}", 11)
    return p


def actions():
    suite = suite_of("core")
    cases = (("independent actions without operands", "empty actions: independent", ("libgomp", "oneTBB", "StarPU")),
             ("independent actions, an operand each", "empty actions: independent, an operand each",
              ("libgomp", "StarPU")),
             ("one chain", "empty actions: one chain", ("libgomp", "oneTBB", "StarPU")),
             ("two streams, an event every 10 actions", "empty actions: two streams, an event every 10",
              ("libgomp", "oneTBB", "StarPU")),
             ("as in a Cholesky factorisation, 8 streams", "empty actions: Cholesky-shaped, 8 streams",
              ("libgomp", "oneTBB", "StarPU")))
    groups = [(words, [("weir", value_of(suite, name), True)]
               + [(peer, value_of(suite, name, peer), False) for peer in peers]) for words, name, peers in cases]
    return dot_plot("Cost of an empty action", "For five shapes of dependences, the time for each empty action with weir, "
                    "libgomp, oneTBB and StarPU.", groups, "Nanoseconds for each action", "less is better",
                    origin_of(suite), 130)


def tasks():
    suite = suite_of("queue")
    cases = (("weir: one place of all cores", "empty tasks, Cholesky-shaped: one place of all cores"),
             ("weir: a place for each core", "empty tasks, Cholesky-shaped: a place for each core"),
             ("weir: host and a simulated device", "empty tasks, Cholesky-shaped: host and a simulated device"))
    groups = [("dependences of a Cholesky factorisation",
               [(words, value_of(suite, name), True) for words, name in cases]
               + [(peer, value_of(suite, cases[0][1], peer), False) for peer in ("libgomp", "oneTBB", "StarPU")])]
    return dot_plot("Cost of an empty task of a queue", "The time for each empty task of a queue with one place, with a "
                    "place for each core, and with a device, beside libgomp, oneTBB and StarPU.", groups,
                    "Nanoseconds for each task", "less is better", origin_of(suite), 270)


def pipelines():
    suite = suite_of("pipeline")
    cases = (("linear, no work", "linear, 0 ns of work, against ",
              ("chunks", "items", "graph", "queues")),
             ("recursive, no work", "recursive, 0 ns of work, against ", ("feeder", "graph", "queue")),
             ("linear, 200 ns of work an item", "linear, 200 ns of work, against ",
              ("chunks", "items", "graph", "queues")),
             ("recursive, 200 ns of work an item", "recursive, 200 ns of work, against ",
              ("feeder", "graph", "queue")))
    groups = []
    for words, prefix, peers in cases:
        rows = []
        for row in suite["rows"]:
            if row["name"].startswith(prefix) and row["name"].split()[-1] in peers:
                if not rows:
                    rows.append(("weir", value_of(suite, row["name"]), True))
                peer = row["peer_name"].replace(", memory without bound", "")
                rows.append((peer, value_of(suite, row["name"], row["peer_name"]), False))
        groups.append((words, rows))
    return dot_plot("Items through a pipeline", "Items for each second through linear and recursive pipelines, with weir, "
                    "with constructs of oneTBB, and with queues that are connected by hand.", groups,
                    "Millions of items for each second", "more is better", origin_of(suite), 300)


def puts():
    suite = suite_of("fabric")
    groups = []
    for words, name in (("between processes of one machine (shared memory)", "shared memory"),
                        ("over TCP loopback", "TCP loopback"), ("between two hosts, 8 Gbit/s", "8 Gbit/s")):
        row = f"64-byte puts, random, {name}"
        peers = [each["peer_name"] for each in suite["rows"] if each["name"] == row and each["peer_name"]]
        groups.append((words, [("weir conveyor", value_of(suite, row), True)]
                       + [(peer, value_of(suite, row, peer), False) for peer in peers]))
    return dot_plot("Puts of 64 bytes to random addresses of another rank", "Bandwidth of puts of 64 bytes over shared "
                    "memory, TCP loopback and a link of 8 Gbit/s: the conveyor, large messages of Open MPI, one message "
                    "or MPI_Put for each item.",
                    groups, "GB/s of payload", "more is better", origin_of(suite), 220)


def factorisations():
    suite = suite_of("core")
    groups = []
    for name in ("matmul 4096", "cholesky 4096", "cholesky 8192"):
        rows = [("weir, streams", value_of(suite, name), True)]
        for row in suite["rows"]:
            if row["name"] == name:
                rows.append((row["peer_name"], value_of(suite, name, row["peer_name"]), False))
        groups.append((name, rows))
    return dot_plot("Tiled linear algebra on the host", "GFLOP/s of a matrix product and of Cholesky factorisations in "
                    "tiles, with weir, OpenMP and StarPU, and of one call of OpenBLAS.", groups,
                    "GFLOP/s", "more is better", origin_of(suite), 180,
                    ticks=range(0, 201, 50))


def balance():
    suite = suite_of("balance")
    groups = {}
    for row in suite["rows"]:
        if found := re.fullmatch(r"makespan / ideal, 300 items, \w+ (.*)", row["name"]):
            rows = groups.setdefault(f"speeds {found[1]}",
                                     [("chunks learned (default)", value_of(suite, row["name"]), True)])
            rows.append((row["peer_name"], value_of(suite, row["name"], row["peer_name"]), False))
    return dot_plot("Sharing 300 items among unequal places", "The time of a share of 300 items over the ideal time, for "
                    "simulated devices of unequal speeds, with learned chunks and with four other chunk policies.",
                    list(groups.items()), "Makespan over the ideal one, virtual time", "less is better", origin_of(suite), 240,
                    ticks=(1, 1.5, 2, 2.5))


def tables_of(page):
    """The tables of a page: (heading, rows of cells)."""
    heading, rows = "", []
    for line in [*(MEASUREMENTS / page).read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("## "):
            heading = line[3:]
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            yield heading, rows
            rows = []


def papers():
    """Speedups of paper 001 and what `weir paper 001` measured, from the page that it wrote."""
    groups = []
    for heading, rows in tables_of("paper-001.md"):
        if rows[0][1:3] != ["paper", "here"]:
            continue
        found = [(row[0], float(row[1]), float(row[2])) for row in rows[2:]
                 if row[1] not in ("-", "") and row[0].endswith((" over HSW", " over IVB"))]
        if found:
            groups.append((heading.partition(":")[0], found))
    count = sum(len(rows) for _, rows in groups)
    width, x0, height = 860, 250, 128 + 22 * count + 30 * len(groups)
    p = Picture(width, height, "Speedups of paper 001 and of weir",
                "For matrix multiplication, Cholesky factorisation and a seismic stencil, on a host with one and two and "
                "on one and four coprocessors, the speedup over the host alone that the paper reports, and the one that weir has on simulated devices.")
    most = math.ceil(max(value for _, rows in groups for row in rows for value in row[1:]))

    def at(value):
        return x0 + value / most * (width - x0 - 100)

    p.text(16, 22, "Speedup over the host alone: paper 001 and weir on simulated devices", 14, bold=True)
    p.dot(22, 46, "orange", 3)
    p.text(34, 46, "paper (measured on devices)", 12)
    p.dot(232, 46, "blue")
    p.text(244, 46, "weir, virtual time", 12)
    p.axis(x0, height - 62, width - x0 - 100, 64, [(each, str(each)) for each in range(most + 1)], "", at)
    y = 78
    for name, rows in groups:
        p.text(16, y, name, 12.5, bold=True)
        y += 22
        for words, paper, here in rows:
            p.text(x0 - 12, y, words.replace(" over HSW", "").replace(" over IVB", ""), 12, "end")
            p.line([(at(paper), y), (at(here), y)], width=1)
            p.dot(at(paper), y, "orange", 3)
            p.dot(at(here), y, "blue")
            p.text(at(max(paper, here)) + 12, y, f"{paper:g} / {here:g}", 12, halo=True)
            y += 22
        y += 8
    p.note(16, height - 28, "Hosts: HSW is host:hsw-e5-2697v3, IVB is host:ivb-e5-2697v2; KNC is sim:knc-7120 (weir info "
                            "--presets).", 11)
    p.note(16, height - 12, "docs/measurements/paper-001.md, written by weir paper 001. The labels are paper / weir.", 11)
    return p
