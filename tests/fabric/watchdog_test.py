#!/usr/bin/python3
"""Ranks that wait for each other for ever: with WEIR_WATCHDOG_S each says what all wait for.

    watchdog_test.py PROGRAM shm
    watchdog_test.py PROGRAM openmpi|mpich MPIRUN [ARGUMENTS]
"""

import os
import re
import signal
import subprocess
import sys
import threading

PATIENCE_S = 100
RANKS = 3
SAYS = re.compile(r"weir: rank (\d): nothing has come for \d+\.\d s: all ranks wait for each other: "
                  r"ranks 0, 2 wait for a barrier, rank 1 waits for a message$")


def end(process):
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def main(program, launcher, *mpirun):
    start = [program, "shm", str(RANKS)] if launcher == "shm" else [*mpirun, "-n", str(RANKS), program]
    environment = os.environ | {"WEIR_WATCHDOG_S": "0.2", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    process = subprocess.Popen([*start, "deadlock"], stdout=subprocess.DEVNULL, text=True,
                               stderr=subprocess.PIPE, start_new_session=True, env=environment)
    patience = threading.Timer(PATIENCE_S, end, [process])
    patience.start()
    lines, speakers = [], set()
    for line in process.stderr:
        lines.append(line)
        said = SAYS.match(line.rstrip())
        if said:
            speakers.add(int(said[1]))
        if len(speakers) == RANKS:
            break
    patience.cancel()
    if process.poll() is None:
        end(process)
    if len(speakers) < RANKS:
        sys.exit(f"{launcher}: only {sorted(speakers)} have said it:\n{''.join(lines)}")
    print(f"{launcher}: {RANKS} ranks say what all wait for")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
