"""The layers of the sources, with the arrows of the table of tests/layers/check_layers.py."""

import ast
import fnmatch
from pathlib import Path

from drawing import Picture

TABLE = Path(__file__).resolve().parent.parent.parent / "tests/layers/check_layers.py"
GROUPS = {"src/backends/host": "host", "src/backends/null": "host", "src/backends/sim": "host",
          "src/backends/opencl": "opencl", "src/backends/cuda": "opencl"}
# Box: left edge, top, right edge, words, hue.
BOXES = {
    "capi": (16, 84, 844, "capi: the C interface", "green"),
    "runtime": (16, 148, 844, "runtime: owns all objects of a program", "blue"),
    "host": (16, 300, 126, "backends/host,\nnull, sim", "orange"),
    "kernels": (140, 224, 240, "kernels", "orange"),
    "opencl": (140, 300, 240, "backends/\nopencl, cuda", "orange"),
    "tasks": (256, 224, 320, "tasks", "blue"),
    "graph": (334, 224, 398, "graph", "blue"),
    "pipeline": (412, 224, 476, "pipeline", "blue"),
    "share": (490, 224, 554, "share", "blue"),
    "stream": (256, 300, 554, "stream: streams, places, domains", "blue"),
    "core": (256, 368, 554, "core: actions, dependences, memory", "blue"),
    "rank": (572, 300, 662, "backends/\nrank", "orange"),
    "conveyor": (690, 224, 762, "conveyor", "purple"),
    "grid": (774, 224, 844, "grid", "purple"),
    "fabric": (690, 368, 844, "fabric: ranks and ports", "purple"),
    "backend": (16, 436, 662, "backend: the driver interface", "orange"),
    "trace": (16, 500, 844, "trace: recorder, exports", "grey"),
    "base": (16, 560, 844, "base: errors, regions, configuration, threads, clock, topology", "grey"),
}
HEIGHT = 38
# Arrows that are not vertical.
BENT = {("share", "fabric"): [(554, 243), (676, 243), (676, 387), (688, 387)],
        ("rank", "fabric"): [(662, 319), (716, 319), (716, 366)]}


def name_of(folder):
    return GROUPS.get(folder, folder.rpartition("/")[2])


def arrows():
    """The pairs (layer, layer that it may include), without those that follow from others."""
    tree = ast.parse(TABLE.read_text(encoding="utf-8"))
    table = next(ast.literal_eval(node.value) for node in tree.body
                 if isinstance(node, ast.Assign) and node.targets[0].id == "LAYERS")
    layers = [folder for folder in table if folder.startswith("src/") and folder != "src/hstreams"]
    below = {name_of(folder): set() for folder in layers}
    for folder in layers:
        below[name_of(folder)] |= {name_of(each) for pattern in table[folder].split()
                                   for each in layers if fnmatch.fnmatch(each, pattern)} - {name_of(folder)}

    def reached(name):
        return below[name].union(*(reached(each) for each in below[name]))

    return sorted((name, each) for name, found in below.items() for each in found
                  if not any(each in reached(other) for other in found - {each}))


def layers():
    p = Picture(860, 652, "The layers of the sources",
                "Programs stand on the C interface, which stands on the runtime. Below are task queues, graphs, "
                "pipelines, shares, streams and the core, the backends, and the fabric with conveyors and grids; below all of them trace "
                "and base.")
    p.box(16, 20, 538, HEIGHT, "programs, apps, tools, examples, python, fortran", "grey", 12)
    p.box(572, 20, 272, HEIGHT, "hstreams: a library of its own", "grey", 12)
    p.arrow([(285, 58), (285, 82)])
    p.text(294, 70, "include/weir: weir.h, weir.hpp", 11.5, hue="grey")
    p.arrow([(708, 58), (708, 82)])
    p.text(716, 70, "public functions", 11.5, hue="grey")
    found = arrows()
    missing = {name for pair in found for name in pair} ^ set(BOXES)
    if missing:
        raise ValueError(f"{TABLE.name} and docs/pictures/layers.py differ in {sorted(missing)}")
    for name, (left_edge, top, right_edge, words, hue) in BOXES.items():
        p.box(left_edge, top, right_edge - left_edge, HEIGHT, words, hue, 12)
    for upper, lower in found:
        if (upper, lower) in BENT:
            p.arrow(BENT[upper, lower])
            continue
        a0, top, a1 = BOXES[upper][:3]
        b0, bottom, b1 = BOXES[lower][:3]
        x = (max(a0, b0) + min(a1, b1)) / 2
        if max(a0, b0) > min(a1, b1) or top > bottom:
            raise ValueError(f"docs/pictures/layers.py has no way for the arrow from {upper} to {lower}")
        p.arrow([(x, top + HEIGHT), (x, bottom - 2)])
    p.note(16, 616, "A layer may include those that its arrows reach; arrows that follow from others are not drawn. "
                    "All may include the public\nheaders. Names are folders of src. The arrows are those of "
                    "tests/layers/check_layers.py.")
    return p
