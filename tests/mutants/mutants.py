#!/usr/bin/env python3
"""Puts one defect after the other into a copy of the tree and sees whether the tests notice.

  mutants.py --check            every mutant's text occurs once: they follow the sources
  mutants.py --run              all mutants; prints the table of kills (about an hour on two cores)
  mutants.py --run --trees 1    one after the other, in one copy of the tree; usually one each core
  mutants.py --run --only TEXT  those whose name contains TEXT
  mutants.py --run --resume     those that a run which was cut short has not come to

Each result is kept at once, in results.jsonl of the folder. The programs that mutants name are built
and run without a mutant first; what a mutant has changed of the build is then put back, not built
again.
"""

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from table import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 5_000
TEST_SECONDS = 900


def text_of(mutant, root=ROOT):
    return (root / mutant.file).read_text()


def check():
    wrong = 0
    for mutant in MUTANTS:
        times = text_of(mutant).count(mutant.find)
        if times != 1:
            print(f"'{mutant.name}': its text occurs {times} times in {mutant.file}")
            wrong += 1
    names = [mutant.name for mutant in MUTANTS]
    for name in sorted({name for name in names if names.count(name) > 1}):
        print(f"'{name}' is the name of several mutants")
        wrong += 1
    print(f"{len(MUTANTS)} mutants, {wrong} do not apply")
    return wrong == 0


def parts_of(test):
    """Divides "NAME=VALUE ... PROGRAM ARGUMENT ..." into {NAME: VALUE}, PROGRAM and ARGUMENTs."""
    words = test.split()
    settings = list(itertools.takewhile(lambda word: "=" in word, words))
    return [dict(each.split("=", 1) for each in settings), *words[len(settings):]]


def files_in(folder):
    """Returns the status of the files below a folder by their names there."""
    return {path.relative_to(folder): path.stat() for path in folder.rglob("*") if path.is_file()}


class Tree:
    """A copy of the sources with a build folder of its own."""

    def __init__(self, folder, jobs):
        self.source, self.build, self.jobs = folder / "source", folder / "build", jobs
        self.pristine = folder / "pristine"
        self.seconds = {}  # of the tests without a mutant

    def prepare(self):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout.split("\n")
        names = [name for name in listed if name and (ROOT / name).is_file()]
        for name in names:
            here, there = ROOT / name, self.source / name
            there.parent.mkdir(parents=True, exist_ok=True)
            if not there.exists() or there.read_bytes() != here.read_bytes():
                shutil.copyfile(here, there)
                shutil.copymode(here, there)
        for name in files_in(self.source).keys() - set(map(Path, names)):
            (self.source / name).unlink()
        packages = self.source / "build" / "venv"  # CUDA's headers are sought there
        packages.parent.mkdir(exist_ok=True)
        packages.unlink(missing_ok=True)
        packages.symlink_to(ROOT / "build" / "venv")
        subprocess.run(
            ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
             "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1", "-DWEIR_BUILD_TOOLS=OFF",
             "-DWEIR_BUILD_EXAMPLES=OFF", "-DWEIR_BUILD_PYTHON=OFF", "-DWEIR_BUILD_FORTRAN=OFF",
             "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16"],  # a mutant compiles one batch again
            check=True, stdout=subprocess.DEVNULL)

    def make(self, tests):
        targets = sorted({parts_of(test)[1] for test in tests})
        done = subprocess.run(
            ["cmake", "--build", self.build, "-j", self.jobs, "--target", *targets],
            capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stdout[-2000:]

    def test(self, test):
        """Returns (whether it failed, how that showed)."""
        settings, program, *arguments = parts_of(test)
        limit = min(TEST_SECONDS, 60 + 5 * self.seconds.get(test, TEST_SECONDS))
        environment = dict(os.environ, WEIR_TEST_SHRINK="0", GTEST_FAIL_FAST="1",
                           XDG_CACHE_HOME=str(self.build / "cache" / program))
        if not program.startswith("unit_"):  # of these random programs are a small part
            environment["WEIR_TEST_PROGRAMS"] = str(PROGRAMS)
        environment |= settings
        try:
            done = subprocess.run([self.build / "bin" / program, *arguments], env=environment,
                                  timeout=limit, capture_output=True, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            return True, f"no end in {limit:.0f} s"
        if done.returncode == 0:
            return False, ""
        seed = re.search(r"WEIR_TEST_SEED=(\d+)", done.stdout + done.stderr)
        how = f"program {seed.group(1)}" if seed else "its own tests"
        if "stuck after" in done.stderr or "has come to its end" in done.stderr:
            how += ", hang"
        elif done.returncode < 0:
            how += f", signal {-done.returncode}"
        return True, how

    def pass_without_mutants(self, tests):
        """Builds and runs tests that are to pass, and keeps the build as it is then."""
        trouble = self.make(tests)
        if trouble:
            sys.exit(f"it does not build without a mutant:\n{trouble}")
        for test in tests:
            start = time.monotonic()
            failed, how = self.test(test)
            if failed:
                sys.exit(f"without a mutant {test} fails already: {how}")
            self.seconds[test] = time.monotonic() - start
        shutil.rmtree(self.pristine, ignore_errors=True)
        shutil.copytree(self.build, self.pristine, symlinks=True)

    def restore(self):
        """Puts back what has changed in the build, with its times: nothing is built again."""
        now, before = files_in(self.build), files_in(self.pristine)
        for name in now.keys() - before.keys():
            (self.build / name).unlink()
        for name, status in before.items():
            changed = now.get(name)
            if changed is None or changed.st_mtime_ns != status.st_mtime_ns:
                (self.build / name).unlink(missing_ok=True)  # a rank may still run it
                (self.build / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.pristine / name, self.build / name)


def kill(tree, mutant):
    """Returns how the mutant was found, '' when it was not."""
    path = tree.source / mutant.file
    original, status = path.read_text(), path.stat()
    path.write_text(original.replace(mutant.find, mutant.put))
    try:
        for test in mutant.by:
            trouble = tree.make([test])
            if trouble:
                return f"does not compile:\n{trouble}"
            failed, how = tree.test(test)
            if failed:
                return f"{test}: {how}"
        return ""
    finally:
        tree.restore()  # first: a run that is cut short here finds the mutant, and builds it anew
        path.write_text(original)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


class Results:
    """What has been found, in a file that grows with each mutant."""

    def __init__(self, file, resume):
        self.file, self.known = file, {}
        file.parent.mkdir(parents=True, exist_ok=True)
        if resume and file.exists():
            for line in file.read_text().splitlines():
                result = json.loads(line)
                self.known[json.dumps(result["mutant"])] = result
        else:
            file.write_text("")

    def of(self, mutant):
        """The result of that very mutant, if there is one."""
        return self.known.get(json.dumps(asdict(mutant)))

    def keep(self, mutant, how, seconds):
        result = {"mutant": asdict(mutant), "how": how, "seconds": seconds}
        with self.file.open("a") as file:
            file.write(json.dumps(result) + "\n")
        return result


class Work:
    """The mutants that are left, of which several trees take one at a time."""

    def __init__(self, mutants, results):
        self.left, self.results = list(reversed(mutants)), results
        self.survivors = 0
        self.lock = threading.Lock()

    def take(self):
        with self.lock:
            return self.left.pop() if self.left else None

    def give(self, mutant, how, seconds):
        with self.lock:
            self.survivors += show(self.results.keep(mutant, how, seconds))

    def do(self, tree):
        while (mutant := self.take()) is not None:
            start = time.monotonic()
            self.give(mutant, kill(tree, mutant), time.monotonic() - start)


def show(result):
    """Prints a line of the table. Returns whether the mutant is alive."""
    how = result["how"]
    alive = not how or how.startswith("does not compile")
    print(f"{'SURVIVED' if alive else 'killed':8} {result['mutant']['name']:48} {how or '-':50} "
          f"{result['seconds']:4.0f} s", flush=True)
    return alive


def run(only, folder, trees, resume):
    chosen = [mutant for mutant in MUTANTS if only in mutant.name]
    results = Results(folder / "results.jsonl", resume)
    left = [mutant for mutant in chosen if results.of(mutant) is None]
    survivors = sum(show(results.of(mutant)) for mutant in chosen if mutant not in left)
    work = Work(left, results)
    trees = min(trees, len(left))
    jobs = str(max(1, os.cpu_count() // max(1, trees)))
    tests = sorted({test for mutant in left for test in mutant.by})

    def do(number):
        tree = Tree(folder / f"tree-{number}", jobs)
        tree.prepare()
        tree.pass_without_mutants(tests)
        work.do(tree)

    with ThreadPoolExecutor(max(1, trees)) as pool:
        list(pool.map(do, range(trees)))
    survivors += work.survivors
    print(f"proof: {len(chosen) - survivors} of {len(chosen)} mutants killed")
    return survivors == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only see whether the texts occur")
    parser.add_argument("--run", action="store_true", help="build and test each mutant")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with TEXT in their name")
    parser.add_argument("--resume", action="store_true", help="keep the results that there are")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--trees", type=int, default=os.cpu_count(), metavar="N",
                        help="copies of the tree that are built and tested side by side")
    arguments = parser.parse_args()
    if arguments.run:
        passed = run(arguments.only, arguments.folder, max(1, arguments.trees), arguments.resume)
        return 0 if passed else 1
    return 0 if check() else 1


if __name__ == "__main__":
    sys.exit(main())
