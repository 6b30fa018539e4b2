#!/usr/bin/python3
"""Checks that build files name every source: one that none names is compiled nowhere and tests nothing.

    check_sources.py ROOT         check the tree at ROOT
    check_sources.py --self-test  check that the check finds such a source

A CMakeLists.txt in the folder of a source, or above it, has to have its path from there as a word.
"""

import re
import sys
import tempfile
from pathlib import Path

# Folders whose sources are named whole; other folders make names from those of tests and programs.
FOLDERS = ("src", "apps", "tools", "python", "fuzz", "bench/forms", "bench/metg", "tests/unit",
           "tests/conformance", "tests/forms", "tests/bench", "tests/relacy")
SOURCES = {".c", ".cpp"}


def names_of(build_file, cache):
    if build_file not in cache:
        cache[build_file] = (set(re.split(r"[\s()\"]+", build_file.read_text()))
                             if build_file.exists() else set())
    return cache[build_file]


def is_named(root, source, cache):
    for folder in source.parents:
        if source.relative_to(folder).as_posix() in names_of(folder / "CMakeLists.txt", cache):
            return True
        if folder == root:
            return False
    return False


def unnamed(root):
    """Returns the sources that no build file names, relative to the root."""
    cache = {}
    return [path.relative_to(root).as_posix()
            for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
            if path.suffix in SOURCES and not is_named(root, path, cache)]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path in ("src/core/a.cpp", "src/core/b.cpp", "apps/x/a.cpp", "apps/x/b.c"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("")
        (root / "src/core/CMakeLists.txt").write_text("target_sources(weir PRIVATE\n  a.cpp)\n")
        (root / "apps/CMakeLists.txt").write_text("add_library(apps x/a.cpp b.c)\n")
        found = unnamed(root)
    wanted = ["src/core/b.cpp", "apps/x/b.c"]
    if found != wanted:
        print(f"self-test: found {found} instead of {wanted}")
    return found != wanted


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--self-test":
        return self_test()
    found = unnamed(Path(sys.argv[1]).resolve())
    for path in found:
        print(f"{path}: no CMakeLists.txt names it: add it to the list of its folder")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
