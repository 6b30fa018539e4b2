#!/usr/bin/python3
"""Ranks of `weir run`: their messages say which one speaks, ps names them after the program, and
what mpirun passes on to something that is not a terminal has no colours.

    speakers_test.py WEIR
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

RANKS = 3
PATIENCE_S = 60
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("WEIR_", "OMPI_", "PMIX_", "CLICOLOR"))} | {
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "TERM": "xterm"}


def variables(process):
    entries = Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def ranks_of(launcher):
    """The processes of its ranks, by rank, once all are there."""
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        try:
            children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
            found = {int(variables(child)["WEIR_RANK"]): int(child) for child in children}
        except (KeyError, OSError):  # one that has not begun, or is over
            continue
        if len(found) == RANKS:
            return found
    sys.exit("the ranks do not start")


def check_processes(weir):
    """Kills a rank at work."""
    launcher = subprocess.Popen([weir, "run", "laplacian", "--ranks", str(RANKS), "--n", "16",
                                 "--repeat", "1000000"], stdout=subprocess.DEVNULL, text=True,
                                stderr=subprocess.PIPE, env=ENVIRONMENT)
    ranks = ranks_of(launcher.pid)
    name = os.path.basename(os.path.realpath(weir))
    for process in ranks.values():
        shown = Path(f"/proc/{process}/comm").read_text().strip()
        command = Path(f"/proc/{process}/cmdline").read_text().split("\0")[0]
        if shown != name or os.path.basename(command) != name:
            sys.exit(f"ps names a rank {shown} and {command}, not {name}")
    os.kill(ranks[RANKS - 1], signal.SIGKILL)
    _, errors = launcher.communicate(timeout=PATIENCE_S)
    said = sorted(line[:len("weir: rank 0: ")] for line in errors.splitlines())
    if said != [f"weir: rank {rank}: " for rank in range(RANKS - 1)]:
        sys.exit(f"the survivors do not say which they are:\n{errors}")


def check_colours(weir, name, more):
    mpirun = shutil.which(f"mpirun.{name}")
    if mpirun is None:
        return
    done = subprocess.run([mpirun, *more, "-n", "2", weir, "info"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False, env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0 or "Machine" not in done.stdout or "\x1b" in done.stdout + done.stderr:
        sys.exit(f"{name}: status {done.returncode}\n{done.stdout!r}\n{done.stderr!r}")
    print(f"{name}: no colours")


def main(weir):
    check_processes(weir)
    check_colours(weir, "openmpi", ["--oversubscribe"])
    check_colours(weir, "mpich", [])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
