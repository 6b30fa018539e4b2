#!/usr/bin/python3
"""Makes the documentation site and checks that its reference has every function of the library.

    check_site.py ROOT      exit status 77 where Doxygen or Sphinx are missing

Doxygen's and Sphinx' warnings are errors, links among the pages included.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("doxygen", "sphinx-build")
MODULES = ("breathe", "myst_parser", "furo")


def missing():
    return ([each for each in PROGRAMS if not shutil.which(each)]
            + [each for each in MODULES if importlib.util.find_spec(each) is None])


def main(root):
    if missing():
        print(f"skipped: {', '.join(missing())} missing (scripts/setup.sh docs installs all)")
        return 77
    functions = (root / "tests/symbols/weir.symbols").read_text().split()
    with tempfile.TemporaryDirectory(prefix="weir-site-") as folder:
        made = subprocess.run([root / "scripts/docs.sh", folder], text=True, capture_output=True)
        if made.returncode:
            print(made.stderr)
            return 1
        page = (Path(folder) / "html/docs/reference/c.html").read_text()
    absent = [each for each in functions if f'id="c.{each}"' not in page]
    for each in absent:
        print(f"docs/reference/c.md: {each}() is not there: name its header")
    print(f"site: {len(functions)} functions, {len(absent)} absent")
    return 1 if absent or not functions else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
