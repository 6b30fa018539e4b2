#!/usr/bin/env python3
"""Runs the proof that any program equals its sequential execution and that no fault does harm.

  proof.py gate          the amounts that each commit passes, and the checks of the sources (label
                         "sources"): what `make proof-gate` runs
  proof.py suite         all tests of the build, with a part of the proof: what `make test` runs
  proof.py long          the amounts for a night; --scale 0.1 for a tenth of them
  proof.py long --only TEXT --save FILE
  proof.py long --resume FILE  keeps each result there, and runs only what has no result yet, or failed;
                               a result holds until a file outside docs changes

Each test prints `proof: AMOUNT`; this prints one table of them: test, amount, result, time.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"


@dataclass(frozen=True)
class Item:
    """A test of ctest, and what makes it long."""
    name: str
    test: str
    gate: bool = True
    amount: dict = field(default_factory=dict)  # environment of the long run; numbers are scaled
    arguments: tuple = ()  # of the program of the test's name in the long run, instead of the test's
    command: tuple = ()  # instead of a test


LONGEST_S = 86400  # of a test in the long run, which goes on without it then

ITEMS = [
    Item("random programs, thread sanitizer", "random_programs_tsan",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("failing resources", "fault_injection", arguments=("--all",)),
    Item("random programs", "random_programs", amount={"WEIR_TEST_PROGRAMS": 10**7}),
    Item("random programs of tasks", "queue_programs",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random programs of tasks, thread sanitizer", "queue_programs_tsan",
         amount={"WEIR_TEST_PROGRAMS": 10**5}),
    Item("random programs on the scheduler", "scheduled_programs",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random pipelines on the scheduler", "scheduled_pipelines",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random programs of tasks on the scheduler", "scheduled_queues",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random graphs on the scheduler", "scheduled_graphs",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("random shares on the scheduler", "scheduled_shares",
         amount={"WEIR_TEST_PROGRAMS": 10**6}),
    Item("weak memory (Relacy)", "relacy", arguments=(10**7,)),
    Item("devices that break", "device_faults"),
    Item("code that throws", "throwing"),
    Item("traces without a disk", "cli_trace_disk"),
    *(Item(f"bad {what}", f"fuzz_{name}",
           arguments=("--seeds", f"tests/corpus/{name}", "--count", 10**6, *more))
      for name, what, more in (("matrix_market", "Matrix Market files", ()),
                               ("npy", ".npy files", ()), ("csv", "tables", ()),
                               ("image", "pictures", ()), ("book", "books of options", ()),
                               ("fasta", "sequences of genes", ()), ("cascade", "cascades", ()),
                               ("trace", "recordings", ()), ("models", "performance models", ()),
                               ("wisdom", "files of the tuner", ()),
                               ("kept_wisdom", "wisdom of programs", ()),
                               ("item_block", "blocks of conveyors", ()),
                               ("frames", "packets of a fabric", ("--all",)), ("domains", "domain specifications", ()),
                               ("environment", "environments", ()),
                               ("arguments", "command lines", ()),
                               ("api_calls", "sequences of calls", ("--all",)),
                               ("flow_calls", "sequences of tasks, shares and pipelines", ("--all",)),
                               ("fabric_calls", "sequences of calls on a fabric", ("--all",)))),
    Item("readers against SciPy and NumPy", "apps_readers_against_scipy"),
    Item("signals", "endings_signals", amount={"WEIR_TEST_MOMENTS": 1000}),
    Item("kill -9 while tracing", "endings_kills", amount={"WEIR_TEST_KILLS": 1000}),
    Item("runtimes come and go", "endings_cycles", amount={"WEIR_TEST_CYCLES": 10**4}),
    Item("dlopen and dlclose", "endings_unload"),
    Item("no listeners", "endings_listeners"),
    Item("links, masks and names", "endings_paths"),
    Item("hardening", "endings_hardening"),
    Item("mutants", "", gate=False, command=("tests/mutants/mutants.py", "--run")),
    Item("whole suite, address and undefined-behaviour sanitizers", "", gate=False,
         command=("make", "asan")),
    Item("whole suite, thread sanitizer", "", gate=False, command=("make", "tsan")),
]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{os.cpu_count()} cores ({processor()}), {memory:.0f} GiB, {platform.system()} "
            f"{platform.release()}, {time.strftime('%Y-%m-%d')}, commit {commit()}")


def scaled(value, scale):
    return str(max(1, int(value * scale)) if isinstance(value, int) else value)


def listed(*choice):
    """Returns what ctest knows of the tests of the build that are chosen."""
    command = ["ctest", "--test-dir", BUILD, *choice, "--no-tests=error", "--show-only=json-v1"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["tests"]


def words_of(name):
    """Returns what ctest runs as a test, and in which environment."""
    test, = listed("-R", f"^{name}$")
    properties = {each["name"]: each["value"] for each in test["properties"]}
    return test["command"], dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))


def amount_of(output):
    """Returns what a test says of itself; of a whole suite, how many tests passed."""
    suite = re.findall(r"100% tests passed, 0 tests failed out of (\d+)", output)
    return f"{suite[-1]} tests" if suite else "; ".join(re.findall(r"proof: (.+)", output))


def run(item, scale):
    """Runs the long form of an item. Returns (amount, result, seconds, output)."""
    environment = {"XDG_CACHE_HOME": str(BUILD / "cache")}
    if item.command:
        command = list(item.command)
    else:
        command, of_test = words_of(item.test)
        environment |= of_test
    environment |= {name: scaled(value, scale) for name, value in item.amount.items()}
    if item.arguments:
        command = [BUILD / "bin" / item.test] + [scaled(word, scale) for word in item.arguments]
    start = time.monotonic()
    done = subprocess.run(["timeout", "--kill-after=10", str(LONGEST_S), *command],
                          env=os.environ | environment, cwd=ROOT, capture_output=True, text=True,
                          errors="replace")
    seconds = time.monotonic() - start
    output = done.stdout + done.stderr
    amount = amount_of(output)
    if done.returncode == 77:
        result = "skipped"
    elif done.returncode != 0:
        result = "FAILED"
    else:
        result = "passed" if amount else "FAILED: no amount"
    return amount or "-", result, seconds, output


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                          text=True).stdout.strip() or "unknown"


def code():
    """Returns a hash of the committed files that can change a result: all outside docs."""
    listed = subprocess.run(["git", "ls-tree", "HEAD"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout
    trees = [line for line in listed.splitlines()
             if not re.search(r"\t(docs|.*\.md|\.git[^/]*)$", line)]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()[:12]


class Kept:
    """The rows of earlier runs of one code and one scale, in a file that grows with each."""

    def __init__(self, file, scale):
        self.file, self.of_run, self.rows = file, {"code": code(), "scale": scale}, {}
        if file and file.exists():
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            if lines and lines[0] != self.of_run:
                sys.exit(f"{file} has results of {lines[0]}, and this is {self.of_run}: "
                         "name another file, or remove it")
            self.rows = {row[0]: tuple(row) for row in lines[1:] if not row[2].startswith("FAILED")}
        elif file:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self.of_run) + "\n")

    def keep(self, row):
        if self.file:
            with self.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return row


def run_long(items, scale, kept):
    """Returns the rows of the table."""
    def perform(item):
        if item.name in kept.rows:
            return kept.rows[item.name]
        amount, result, seconds, output = run(item, scale)
        print(f"{item.name}: {result}, {seconds:.0f} s", flush=True)
        if result.startswith("FAILED"):
            print(output[-20000:], flush=True)
        return kept.keep((item.name, amount, result, seconds))

    # Most wait as much as they compute. What looks at the whole machine has it for itself.
    alone = [item for item in items if item.command or item.test.startswith("endings")]
    with ThreadPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(perform, (item for item in items if item not in alone)))
    return rows + [perform(item) for item in alone]


def begin_with_the_longest():
    """Tells ctest, which remembers how long tests took, of those that it has not run here yet."""
    known = BUILD / "Testing" / "Temporary" / "CTestCostData.txt"
    known.parent.mkdir(parents=True, exist_ok=True)
    costs, end, failed = (known.read_text() if known.exists() else "").partition("---\n")
    run = {line.split()[0] for line in costs.splitlines()}
    typical = [line.split() for line in (ROOT / "tests/proof/seconds.txt").read_text().splitlines()]
    costs += "".join(f"{test} 1 {seconds}\n" for test, seconds in typical if test not in run)
    known.write_text(costs + (end or "---\n") + failed)


def run_ctest(items, everything, more=()):
    """Runs the tests of the items and more, or all tests there are. Returns (rows, whether all passed)."""
    report = BUILD / "proof.xml"
    report.unlink(missing_ok=True)
    begin_with_the_longest()
    command = ["ctest", "--test-dir", BUILD, "--output-on-failure", "--no-tests=error",
               "--parallel", str(os.cpu_count() + 2),  # many wait as much as they compute
               "--output-junit", report, "--test-output-size-passed", "1000000"]
    if not everything:
        command += ["-R", f"^({'|'.join([item.test for item in items] + list(more))})$"]
    passed = subprocess.run(command, cwd=ROOT).returncode == 0
    cases = {}
    if report.exists():
        cases = {case.get("name"): case for case in xml.parse(report).getroot().iter("testcase")}
    if everything:  # the build decides how much of the proof is among them
        items = [item for item in items if item.test in cases]
    return [row_of(item, cases.get(item.test)) for item in items], passed


def row_of(item, case):
    if case is None:
        return item.name, "-", "FAILED: no such test", 0
    amount = amount_of(case.findtext("system-out", ""))
    skipped = case.find("skipped")
    if case.get("status") == "run":
        result = "passed" if amount else "FAILED: no amount"
    elif skipped is not None and "SKIP" in skipped.get("message", ""):
        result = "skipped"
    else:
        result = "FAILED"
    return item.name, amount or "-", result, float(case.get("time"))


def table(rows):
    lines = ["| test | amount | result | seconds |", "| --- | --- | --- | ---: |"]
    lines += [f"| {name} | {amount} | {result} | {seconds:.0f} |"
              for name, amount, result, seconds in rows]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["gate", "suite", "long"])
    parser.add_argument("--scale", type=float, default=1.0, help="of the long amounts")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests with TEXT in their name")
    parser.add_argument("--resume", type=Path, metavar="FILE",
                        help="of a long run: keep each result in FILE, and what is there already")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the table there, too")
    arguments = parser.parse_args()
    long = arguments.part == "long"
    items = [item for item in ITEMS if arguments.only in item.name and (long or item.gate)]
    if not items:
        parser.error(f"no test has '{arguments.only}' in its name")
    if arguments.resume and not long:
        parser.error("--resume is for a long run")
    start = time.monotonic()
    if long:
        kept = Kept(arguments.resume, arguments.scale)
        rows, passed = run_long(items, arguments.scale, kept), True
    else:
        suite = arguments.part == "suite"
        more = () if suite or arguments.only else [test["name"] for test in listed("-L", "^sources$")]
        rows, passed = run_ctest(items, suite, more)
    failed = not passed or any(result.startswith("FAILED") for _, _, result, _ in rows)
    total = time.monotonic() - start
    what = {"suite": "with all other tests", "gate": "with the checks of the sources"}.get(
        arguments.part, "in all")
    text = f"{table(rows)}\n\n{total:.0f} seconds {what}, on {machine()}.\n"
    print(f"\n{text}")
    if arguments.save:
        arguments.save.write_text(f"# Measurements: the proof\n\n{text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
