#!/usr/bin/python3
"""Programs of ranks that end in all kinds of ways, also without closing the fabric.

    ends_test.py PROGRAM shm
    ends_test.py PROGRAM openmpi|mpich MPIRUN [ARGUMENTS]
"""

import os
import re
import signal
import subprocess
import sys

PATIENCE_S = 100
RANKS = 3
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SUM = "sum 6"
ENDED = "has ended without closing the fabric"


def told(ranks, message):
    return [SUM] + [f"rank {rank} told: {message}" for rank in ranks]


def failed(what):
    return told((0, 1), f"sum of 1 int64 to all ranks failed: rank 2 {what}")


# Way to end -> exit status, lines of standard output in any order.
WAYS = {
    "return": (0, [SUM]),
    "local": (0, [SUM]),
    "static": (0, [SUM]),
    "global": (0, [SUM]),
    "handler": (0, [SUM]),
    "thread": (0, [SUM]),
    "fork": (0, [SUM, SUM]),
    "runtime": (0, [SUM]),
    "ranks": (0, told((1, 2), f"rank 0 {ENDED}")),
    "early-return": (0, failed(ENDED)),
    "early-close": (0, failed("has left the fabric")),
    "early-fail": (3, failed(ENDED)),
}


def run(command):
    """Runs a command in a group of its own, which has ended when it returns."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=ENVIRONMENT)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, output, errors
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        output, errors = process.communicate()
        return f"none within {PATIENCE_S} s", output, errors


def main(program, launcher, *mpirun):
    start = [program, "shm", str(RANKS)] if launcher == "shm" else [*mpirun, "-n", str(RANKS), program]
    failures = 0
    for way, (status, lines) in WAYS.items():
        code, output, errors = run(start + [way])
        # Which of two ranks first notices a third that has left is open, and it tells the other.
        output = re.sub("failed: rank [01] has given up: ", "failed: ", output)
        if code != status or sorted(output.splitlines()) != sorted(lines):
            print(f"{way}: status {code}, not {status} and {lines}:\n{output}{errors}")
            failures += 1
    print(f"{launcher}: {len(WAYS)} ways to end, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
