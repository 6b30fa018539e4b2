#!/usr/bin/env python3
"""Compares the default policy on several modelled machines with what no policy can pass, in virtual time.

    bounds.py [--build DIR] [--only TEXT] [--save FILE.md]

A row is a problem on a machine: `weir run APP --n N --policy finish` with nothing chosen by hand. The page
that --save writes says what the columns are.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HOSTS = {
    "HSW": "host:hsw-e5-2697v3",
    "IVB": "host:ivb-e5-2697v2",
    "host": "host:clock=virtual,cores=16,gflops=50",
}
DEVICES = {
    "KNC": "sim:knc-7120",
    "31SP": "sim:phi-31sp",
    "K40x": "sim:k40x",
    "H100": "sim:h100-pcie",
    **{f"device 1:{speed}": f"sim:clock=virtual,cores=16,gflops={50 * speed},gbps=12,duplex=half,latency_us=15"
       for speed in (1, 2, 4)},
}
MACHINES = [("HSW", "KNC", 1), ("HSW", "KNC", 2), ("IVB", "KNC", 1), ("IVB", "KNC", 2),
            ("IVB", "31SP", 1), ("HSW", "K40x", 1), ("HSW", "H100", 1), ("host", "device 1:1", 2),
            ("host", "device 1:2", 2), ("host", "device 1:4", 2)]
SIZES = (4096, 8192, 12288, 24576)
OTHER_POLICIES = ("steal", "locality", "static", "round-robin")
HOST_DIVISIONS = (4, 8, 12, 16)  # tiles a side
HOST_PLACES = (1, 2, 4)


@dataclass(frozen=True)
class Machine:
    host: str
    device: str
    count: int

    @property
    def name(self):
        return f"{self.host} + {self.count} {self.device}"

    @property
    def parts(self):
        """(processor's domain, how many of them there are)"""
        return ((HOSTS[self.host], 1), (DEVICES[self.device], self.count))

    @property
    def domains(self):
        return ",".join(f"{domain},kernels=skip" for domain, count in self.parts for _ in range(count))


class Tool:
    """Runs of `weir`, each with times of kernels of its own. Remembers results."""

    def __init__(self, build):
        self.weir = build / "bin" / "weir"
        self.known = {}

    def run(self, app, n, domains, *more):
        """Returns the report of a run, and the times of kernels that it measured."""
        key = (app, n, domains, more)
        if key not in self.known:
            with tempfile.TemporaryDirectory(prefix="weir-bounds-") as cache:
                environment = {**os.environ, "XDG_CACHE_HOME": cache}
                command = [self.weir, "run", app, "--n", str(n), "--domains", domains, "--json"]
                if "--policy" not in more:
                    command += ["--policy", "finish"]
                report = json.loads(self.output([*command, "--repeat", "4", *more], environment))
                models = json.loads(self.output([self.weir, "tune", "models", "--json"], environment))
            self.known[key] = (report, models["models"])
        return self.known[key]

    @staticmethod
    def output(command, environment):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bounds: {' '.join(map(str, command))}\n{done.stderr}")
        return done.stdout

    def rate(self, *run):
        return self.run(*run)[0]["rate"]["value"]


def tasks_of(app, tiles):
    """Returns the number of tasks by the last word of their kernel's name, and the longest chain."""
    if app == "matmul":  # a task is a tile of C
        return {"gemm": tiles**2}, {"gemm": 1}
    pairs = tiles * (tiles - 1) // 2
    return ({"potrf": tiles, "trsm": pairs, "syrk": pairs,
             "gemm": pairs * (tiles - 2) // 3},
            {"potrf": tiles, "trsm": tiles - 1, "syrk": tiles - 1})


def kernel_seconds(report, models, counts):
    """Returns the mean seconds of a task by kind, and the tasks that the processor runs at a time."""
    seconds = {}
    for kind, count in counts.items():
        sizes = sorted((model["bytes"], model["mean_ns"] * 1e-9) for model in models if kind in model["kernel"])
        tiles = round(count**0.5)
        if len(sizes) == 3 and len(counts) == 1:  # the last row and column of tiles are smaller
            weights = (1, 2 * (tiles - 1), (tiles - 1)**2)
        else:
            weights = (0,) * (len(sizes) - 1) + (1,)
        seconds[kind] = sum(weight * time for weight, (_, time) in zip(weights, sizes)) / sum(weights)
    cores = int(re.search(r"of (\d+) cores", models[0]["place"])[1])
    return seconds, len(report["shares"]) if models[0]["kernel"].endswith(".team") else cores


def shortest_seconds(kind, models):
    """Returns the least mean time of a whole tile, by one core or a team, on any processor."""
    times = [model for model in models if kind in model["kernel"]]
    largest = max(model["bytes"] for model in times)
    return min(model["mean_ns"] for model in times if model["bytes"] == largest) * 1e-9


def area_bound(counts, types):
    """Returns the seconds in which processors of one or two types can run all tasks.

    `types` has ({kind: seconds of a task}, tasks at a time). With two types the first takes the kinds
    in which it is ahead most, and one kind is cut: the optimum of the linear program.
    """
    (first, first_width), (second, second_width) = types
    order = sorted(counts, key=lambda kind: first[kind] / second[kind])
    on_first, on_second = 0.0, sum(counts[kind] * second[kind] for kind in order) / second_width
    for kind in order:
        there, here = counts[kind] * second[kind] / second_width, counts[kind] * first[kind] / first_width
        if on_first + here <= on_second - there:
            on_first, on_second = on_first + here, on_second - there
            continue
        share = (on_second - on_first) / (here + there)
        return on_first + share * here
    return on_first


def nominal_rate(models):
    found = re.search(r"of (\d+) cores(?: with \d+ threads each)? of ([\d.]+) GFLOP/s", models[0]["place"])
    return int(found[1]) * float(found[2])


def best_host_rate(tool, app, n, host):
    """The rate of the host alone: the best of the default and of the divisions above."""
    domain = f"{host},kernels=skip"
    rates = [tool.rate(app, n, domain)]
    for tiles, places in itertools.product(HOST_DIVISIONS, HOST_PLACES):
        tile = -(-n // tiles)
        rates.append(tool.rate(app, n, domain, "--tile", str(tile), "--places", str(places)))
    return max(rates)


def row(tool, app, n, machine):
    report, all_models = tool.run(app, n, machine.domains)
    rate = report["rate"]["value"]
    tile = str(report["params"]["tile"])
    counts, chain = tasks_of(app, -(-n // report["params"]["tile"]))
    alone, nominal, types = 0.0, 0.0, []
    for domain, count in machine.parts:
        domain += ",kernels=skip"
        alone += count * tool.rate(app, n, domain)
        same_tile, models = tool.run(app, n, domain, "--tile", tile)
        nominal += count * nominal_rate(models)
        seconds, width = kernel_seconds(same_tile, models, counts)
        all_models = all_models + models
        types.append((seconds, width * count))
    flops = rate * report["seconds"]["median"]
    path = sum(times * shortest_seconds(kind, all_models) for kind, times in chain.items())
    bound = flops / max(area_bound(counts, types), path)
    others = max(tool.rate(app, n, machine.domains, "--policy", policy) for policy in OTHER_POLICIES)
    return {"problem": f"{app} {n}", "machine": machine.name, "tile": tile, "GFLOP/s": rate,
            "over the host": rate / best_host_rate(tool, app, n, HOSTS[machine.host]),
            "of the runs": rate / alone, "of the rates": rate / nominal, "of the bound": rate / bound,
            "of the policies": rate / others}


def words(value):
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


PAGE = """# Measurements: the default policy and its bounds

After this page you know how close task queues come to what a machine can do. Nothing is tuned: places, tiles and the
policy `finish` are those that weir chooses. All times are virtual and the same on every machine. `bench/bounds.py` writes
this page, in two minutes on 2 cores.

The papers' slides have 1.80 and 2.89 for matmul, 1.8 and 2.7 for Cholesky, on HSW and one and two KNC, of sizes that
they do not give. The design of weir asks at n = 8192, 12288 and 24576 for 1.85, 1.95 and 2.0 with one device and 2.65,
2.90 and 3.0 with two (matmul), and for 1.65, 1.8, 1.9 and 2.2, 2.4, 2.7 (Cholesky). No row reaches that; at 24576 the
rows are 1 to 4 % below. Tiles of one size are the reason that is known for matmul: places wait for each other at the
end, for up to a tile, and the kernels of the coprocessor need large tiles.

| column | is the rate divided by |
| --- | --- |
| over the host | the rate of the host alone, with the division that is best for the host |
| of the runs | the sum of the rates of the same program on each processor alone |
| of the rates | the sum of the rates of all cores |
| of the bound | the area bound: the rate if tasks could be cut, copies were free, and all processors ended together; or the bound of the longest chain of tasks, each on its fastest place, if that is lower. Tasks have the tile of the row and the times that weir measured |
| of the policies | the rate of the best other policy (`steal`, `locality`, `static`, `round-robin`) |
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--build", type=Path, default=root / "build" / "bench", help="build folder")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose problem and machine contain TEXT")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the page of the documents")
    arguments = parser.parse_args()
    tool = Tool(arguments.build)
    lines = []
    for app, n, machine in itertools.product(("matmul", "cholesky"), SIZES, itertools.starmap(Machine, MACHINES)):
        if arguments.only not in f"{app} {n} {machine.name}":
            continue
        values = row(tool, app, n, machine)
        if not lines:
            lines = ["| " + " | ".join(values) + " |", "| --- | --- |" + " ---: |" * (len(values) - 2)]
            print("\n".join(lines))
        lines.append("| " + " | ".join(map(words, values.values())) + " |")
        print(lines[-1], flush=True)
    if arguments.save:
        arguments.save.write_text(PAGE + "\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
