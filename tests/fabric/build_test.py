#!/usr/bin/env python3
"""A library for MPI that is not of this build is refused before it is used.

    build_test.py PROGRAM LIBWEIR PLUGIN VARIABLE

The plugin gets another build, and lies beside a copy of the library. The variable is one that the
MPI's mpirun sets.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

program, library, plugin, variable = sys.argv[1:]

with tempfile.TemporaryDirectory() as folder:
    beside = pathlib.Path(folder)
    shutil.copy(library, beside / "libweir.so.0")
    code = pathlib.Path(plugin).read_bytes()
    other, builds = re.subn(rb"(weir \d+\.\d+\.\d+ )[0-9a-f]{16}", rb"\g<1>0123456789abcdef", code)
    assert builds == 1, f"{plugin} names {builds} builds"
    (beside / pathlib.Path(plugin).name).write_bytes(other)
    environment = os.environ | {"LD_LIBRARY_PATH": folder, variable: "1"}
    ended = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1, ended
    assert "0123456789abcdef, the library of weir" in ended.stderr, ended.stderr
