#!/usr/bin/env python3
"""Puts one defect after the other into a copy of the tree and sees whether the tests notice.

  mutants.py --check            every mutant's text occurs once: they follow the sources
  mutants.py --run              all mutants; prints the table of kills (about an hour on two cores)
  mutants.py --run --only TEXT  those whose name contains TEXT
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from table import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 10_000
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


class Tree:
    """A copy of the sources with a build folder of its own."""

    def __init__(self, folder, jobs):
        self.source, self.build, self.jobs = folder / "tree", folder / "build", jobs

    def prepare(self):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout.split("\n")
        for name in filter(None, listed):
            here, there = ROOT / name, self.source / name
            if not here.is_file():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            if not there.exists() or there.read_bytes() != here.read_bytes():
                shutil.copyfile(here, there)
                shutil.copymode(here, there)
        subprocess.run(
            ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
             "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1", "-DWEIR_BUILD_TOOLS=OFF",
             "-DWEIR_BUILD_EXAMPLES=OFF"],
            check=True, stdout=subprocess.DEVNULL)

    def make(self, target):
        done = subprocess.run(["cmake", "--build", self.build, "--target", target, "-j", self.jobs],
                              capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stdout[-2000:]

    def test(self, name):
        """Returns (whether it failed, how that showed)."""
        environment = dict(os.environ, WEIR_TEST_PROGRAMS=str(PROGRAMS), WEIR_TEST_SHRINK="0")
        try:
            done = subprocess.run([self.build / "bin" / name], env=environment, timeout=TEST_SECONDS,
                                  capture_output=True, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            return True, f"no end in {TEST_SECONDS} s"
        if done.returncode == 0:
            return False, ""
        seed = re.search(r"WEIR_TEST_SEED=(\d+)", done.stdout + done.stderr)
        how = f"program {seed.group(1)}" if seed else "its own tests"
        if "stuck after" in done.stderr or "has come to its end" in done.stderr:
            how += ", hang"
        elif done.returncode < 0:
            how += f", signal {-done.returncode}"
        return True, how


def kill(tree, mutant):
    """Returns how the mutant was found, '' when it was not."""
    path = tree.source / mutant.file
    original = path.read_text()
    path.write_text(original.replace(mutant.find, mutant.put))
    try:
        for name in mutant.by:
            trouble = tree.make(name)
            if trouble:
                return f"does not compile:\n{trouble}"
            failed, how = tree.test(name)
            if failed:
                return f"{name}: {how}"
        return ""
    finally:
        path.write_text(original)


def run(only, folder, jobs):
    chosen = [mutant for mutant in MUTANTS if only in mutant.name]
    tree = Tree(folder, jobs)
    tree.prepare()
    for name in sorted({name for mutant in chosen for name in mutant.by}):
        trouble = tree.make(name)
        failed, how = (True, trouble) if trouble else tree.test(name)
        if failed:
            sys.exit(f"without a mutant {name} fails already: {how}")
    survivors = 0
    for mutant in chosen:
        start = time.monotonic()
        how = kill(tree, mutant)
        alive = not how or how.startswith("does not compile")
        survivors += alive
        print(f"{'SURVIVED' if alive else 'killed':8} {mutant.name:48} {how or '-':50} "
              f"{time.monotonic() - start:4.0f} s", flush=True)
    print(f"proof: {len(chosen) - survivors} of {len(chosen)} mutants killed")
    return survivors == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only see whether the texts occur")
    parser.add_argument("--run", action="store_true", help="build and test each mutant")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with TEXT in their name")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    arguments = parser.parse_args()
    if arguments.run:
        return 0 if run(arguments.only, arguments.folder, arguments.jobs) else 1
    return 0 if check() else 1


if __name__ == "__main__":
    sys.exit(main())
