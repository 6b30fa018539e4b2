#!/usr/bin/python3
"""Builds a client program with pkg-config hstreams and runs it.

    client_test.py CLIENT PKG_CONFIG_PATH C_COMPILER CXX_COMPILER [SANITIZERS]

A C client is built as C and as C++. Each program runs on the host and one simulated card, which is
what a machine without devices has, and on two simulated cards. NAME_client_X.c becomes the sink
library NAME_client_X.so beside the program. A line "build: FLAGS" at the top adds flags. A program
that ends with 77 says what it misses: the test is skipped.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
SECONDS = 60
SKIPPED = 77
PLATFORMS = {"host": {}, "two devices": {"WEIR_SIM_CARDS": "2"}}
OURS = ("WEIR_", "SINK_LD", "MIC_", "HOST_SINK")


class Failure(Exception):
    pass


def run(command, what, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                          timeout=SECONDS, **options)
    if done.returncode == SKIPPED:
        print(f"{what} is skipped: {done.stdout}", end="")
        sys.exit(SKIPPED)
    if done.returncode != 0:
        raise Failure(f"{what} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(source, compiler, folder, told, extra):
    language = ["-x", "c++"] if compiler.name == "cxx" else []
    command = [compiler.path, *FLAGS, *extra]
    for library in HERE.glob(f"{source.stem}_*.c"):
        run([*command, "-shared", "-fPIC", *language, library, "-o",
             folder / f"{library.stem}.so", *told], f"compiling {library.name}")
    program = folder / source.stem
    run([*command, *language, source, "-o", program, *told, "-lm", "-pthread"],
        f"compiling {source.name} as {compiler.name}")
    return program


class Compiler:
    def __init__(self, name, path):
        self.name, self.path = name, path


def main(client, pkg_config_path, cc, cxx, sanitizers=""):
    source = HERE / client
    told = run(["pkg-config", "--cflags", "--libs", "hstreams"], "pkg-config",
               env={**os.environ, "PKG_CONFIG_PATH": pkg_config_path}).split()
    wanted = re.match(r"/\* build: (.*) \*/", source.read_text())
    extra = wanted[1].split() if wanted else []
    extra += [f"-fsanitize={sanitizers}"] if sanitizers else []
    compilers = [Compiler("cxx", cxx)] + [Compiler("c", cc)] * (source.suffix == ".c")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    for compiler in compilers:
        with tempfile.TemporaryDirectory(prefix="weir-hstreams-") as folder:
            program = build(source, compiler, Path(folder), told, extra)
            for platform, variables in PLATFORMS.items():
                run([program], f"{client} as {compiler.name} on {platform}", cwd=folder,
                    env={**clean, **variables})
                print(f"{client} as {compiler.name} on {platform}: ok")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Failure as failure:
        sys.exit(str(failure))
