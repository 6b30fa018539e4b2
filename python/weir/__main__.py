"""`python -m weir` and the command `weir` of a wheel: the command line tool."""

import os
import shutil
import sys
from pathlib import Path


def tool() -> str:
    """The tool beside this package, else the one in PATH."""
    own = Path(__file__).resolve().parent / "bin" / "weir"
    found = str(own) if own.exists() else shutil.which("weir")
    if found is None:
        sys.exit("weir: the command line tool is not installed: apt install weir-tools, or "
                 "pip install weir-runtime")
    return found


def main() -> None:
    found = tool()
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    main()
