#!/usr/bin/python3
"""Builds and runs a program with fpm and the package in fortran/. Skipped without fpm.

    fpm_test.py SOURCE_DIR LIBRARY_DIR
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MANIFEST = """name = "consumer"
version = "0.1.0"
[dependencies]
weir = { path = "weir" }
"""


def main(source, libraries):
    fpm = source / "build/venv/bin/fpm"
    if not fpm.exists():
        print("fpm is not installed: scripts/setup.sh test")
        return 77
    with tempfile.TemporaryDirectory(prefix="weir-fpm-") as scratch:
        project = Path(scratch)
        (project / "fpm.toml").write_text(MANIFEST)
        (project / "weir").symlink_to(source / "fortran")
        (project / "app").mkdir()
        shutil.copy(source / "tests/install/consumer.f90", project / "app/main.f90")
        environment = {**os.environ, "FPM_CFLAGS": f"-I{source / 'include'}",
                       "FPM_LDFLAGS": f"-L{libraries} -Wl,-rpath,{libraries}"}
        done = subprocess.run([fpm, "run"], cwd=project, env=environment, text=True,
                              capture_output=True)
    print(done.stdout + done.stderr)
    return 0 if done.returncode == 0 and "vector[999] = 1998" in done.stdout else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*(Path(each) for each in sys.argv[1:])))
