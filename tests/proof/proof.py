#!/usr/bin/env python3
"""Runs the proof that any program equals its sequential execution and that no fault does harm.

  proof.py gate          what `make test` runs
  proof.py long          the amounts for a night; --scale 0.1 for a tenth of them
  proof.py long --only TEXT --save FILE

Each test prints `proof: AMOUNT`; this prints one table of them: test, amount, result, time.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Item:
    """A test of ctest in the build folder of a preset, and what makes it long."""
    name: str
    build: str
    test: str
    gate: bool = True
    amount: dict = field(default_factory=dict)  # environment of the long run; numbers are scaled
    arguments: tuple = ()  # of the program of the test's name, which then runs without ctest
    command: tuple = ()  # instead of a test


ITEMS = [  # those that take longest first
    Item("random programs, thread sanitizer", "tsan", "random_programs",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("failing resources", "release", "fault_injection", arguments=("--all",)),
    Item("random programs", "release", "random_programs", amount={"WEIR_TEST_PROGRAMS": 10**7}),
    Item("random programs of tasks", "release", "queue_programs",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random programs of tasks, thread sanitizer", "tsan", "queue_programs",
         amount={"WEIR_TEST_PROGRAMS": 10**5}),
    Item("random programs on the scheduler", "release", "scheduled_programs",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random pipelines on the scheduler", "release", "scheduled_pipelines",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random shares on the scheduler", "release", "scheduled_shares",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("weak memory (Relacy)", "release", "relacy", arguments=(10**7,)),
    Item("cards that break", "release", "device_faults"),
    Item("code that throws", "release", "throwing"),
    Item("traces without a disk", "release", "cli_trace_disk"),
    *(Item(f"bad {what}", "release", f"fuzz_{name}",
           arguments=("--seeds", f"tests/corpus/{name}", "--count", 10**6, *more))
      for name, what, more in (("matrix_market", "Matrix Market files", ()),
                               ("npy", ".npy files", ()), ("csv", "tables", ()),
                               ("image", "pictures", ()), ("book", "books of options", ()),
                               ("fasta", "sequences of genes", ()), ("cascade", "cascades", ()),
                               ("trace", "recordings", ()), ("models", "performance models", ()),
                               ("wisdom", "files of the tuner", ()),
                               ("item_block", "blocks of conveyors", ()),
                               ("frames", "packets of a fabric", ("--all",)), ("domains", "domain specifications", ()),
                               ("environment", "environments", ()),
                               ("arguments", "command lines", ()),
                               ("api_calls", "sequences of calls", ("--all",)),
                               ("flow_calls", "sequences of tasks, shares and pipelines", ("--all",)))),
    Item("readers against SciPy and NumPy", "release", "apps_readers_against_scipy"),
    Item("signals", "release", "endings_signals", amount={"WEIR_TEST_MOMENTS": 1000}),
    Item("kill -9 while tracing", "release", "endings_kills", amount={"WEIR_TEST_KILLS": 1000}),
    Item("runtimes come and go", "release", "endings_cycles"),
    Item("dlopen and dlclose", "release", "endings_unload"),
    Item("no listeners", "release", "endings_listeners"),
    Item("links, masks and names", "release", "endings_paths"),
    Item("hardening", "release", "endings_hardening"),
    Item("mutants", "", "", gate=False, command=("tests/mutants/mutants.py", "--run")),
    Item("whole suite, address and undefined-behaviour sanitizers", "", "", gate=False,
         command=("make", "asan")),
    Item("whole suite, thread sanitizer", "", "", gate=False, command=("make", "tsan")),
]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                            text=True).stdout.strip()
    return (f"{os.cpu_count()} cores ({processor()}), {memory:.0f} GiB, {platform.system()} "
            f"{platform.release()}, {time.strftime('%Y-%m-%d')}, commit {commit or 'unknown'}")


def scaled(value, scale):
    return str(max(1, int(value * scale)) if isinstance(value, int) else value)


def command_of(item, long, scale):
    if item.command:
        return list(item.command)
    folder = ROOT / "build" / item.build
    if long and item.arguments:
        return [folder / "bin" / item.test] + [scaled(word, scale) for word in item.arguments]
    return ["ctest", "--test-dir", folder, "-R", f"^{item.test}$", "--verbose", "--no-tests=error",
            "--timeout", "86400" if long else "1500"]


def run(item, long, scale):
    """Returns (amount, result, seconds, output)."""
    environment = dict(os.environ)
    if long:
        environment |= {name: scaled(value, scale) for name, value in item.amount.items()}
    command = command_of(item, long, scale)
    start = time.monotonic()
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True,
                          errors="replace")
    seconds = time.monotonic() - start
    output = done.stdout + done.stderr
    amounts = re.findall(r"proof: (.+)", output)
    if done.returncode != 0:
        result = "FAILED"
    elif not amounts:
        result = "skipped" if "Skipped" in output else "FAILED: no amount"
    else:
        result = "passed"
    return "; ".join(amounts) or "-", result, seconds, output


def table(rows):
    lines = ["| test | amount | result | seconds |", "| --- | --- | --- | ---: |"]
    lines += [f"| {name} | {amount} | {result} | {seconds:.0f} |"
              for name, amount, result, seconds in rows]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["gate", "long"])
    parser.add_argument("--scale", type=float, default=1.0, help="of the long amounts")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests with TEXT in their name")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the table there, too")
    arguments = parser.parse_args()
    long = arguments.part == "long"
    items = [item for item in ITEMS if arguments.only in item.name and (long or item.gate)]
    start = time.monotonic()

    def perform(item):
        amount, result, seconds, output = run(item, long, arguments.scale)
        print(f"{item.name}: {result}, {seconds:.0f} s", flush=True)
        if result.startswith("FAILED"):
            print(output[-20000:], flush=True)
        return item.name, amount, result, seconds

    # Most wait as much as they compute. What looks at the whole machine has it for itself.
    alone = [item for item in items if item.command or item.test.startswith("endings")]
    with ThreadPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(perform, (item for item in items if item not in alone)))
    rows += [perform(item) for item in alone]
    failed = any(result.startswith("FAILED") for _, _, result, _ in rows)
    total = time.monotonic() - start
    text = f"{table(rows)}\n\n{total:.0f} seconds in all, on {machine()}.\n"
    print(f"\n{text}")
    if arguments.save:
        arguments.save.write_text(f"# Measurements: the proof\n\n{text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
