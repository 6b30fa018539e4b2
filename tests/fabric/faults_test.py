#!/usr/bin/python3
"""Kills and stops a rank, and checks that the others go on and the launcher ends.

    faults_test.py PROGRAM shm
    faults_test.py PROGRAM openmpi|mpich MPIRUN [ARGUMENTS]
"""

import os
import signal
import subprocess
import sys
import threading

PATIENCE_S = 120
RANKS = 3
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def end(process):
    """Ends a group of processes: the launcher, which may have given ranks groups of their own, gets
    the signal first."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def run(command):
    """Runs a command in a group of its own, which has ended when it returns."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=ENVIRONMENT)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, output, errors
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(command)}: still runs after {PATIENCE_S} s")
    finally:
        end(process)


def survivors(command):
    _, output, errors = run(command)
    found = sorted(line for line in output.splitlines() if line.startswith("survivor"))
    if found != [f"survivor {rank}" for rank in range(RANKS - 1)]:
        sys.exit(f"{' '.join(command)}: {found} are left\n{output}{errors}")
    return output


def check_shm(program):
    for what, status in (("kill", 128 + signal.SIGKILL), ("stop", 128 + signal.SIGKILL),
                         ("exit", 7)):
        output = survivors([program, "shm", str(RANKS), what])
        if f"status {status}" not in output.splitlines():
            sys.exit(f"{what}: the launcher should say status {status}:\n{output}")
        print(f"shm {what}: the others went on")


def survivors_of_stopped(command):
    """mpirun waits for a rank that is stopped; the others do not."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, start_new_session=True,
                               env=ENVIRONMENT)
    watchdog = threading.Timer(PATIENCE_S, end, [process])
    watchdog.start()
    found = set()
    for line in process.stdout:
        if line.startswith("survivor"):
            found.add(line.strip())
        if len(found) == RANKS - 1:
            break
    watchdog.cancel()
    end(process)
    if len(found) != RANKS - 1:
        sys.exit(f"{' '.join(command)}: {sorted(found)} are left")


def check_mpi(program, name, mpirun):
    """What each launcher lets live: docs/concepts/fabric.md has the same table."""
    start = mpirun + ["-n", str(RANKS), program]
    go_on = "--enable-recovery" if name == "openmpi" else "-disable-auto-cleanup"
    what = "kill" if name == "openmpi" else "exit"
    survivors(mpirun + [go_on, "-n", str(RANKS), program, what])
    print(f"{name} {what}: the others went on")
    # A rank that has lost another one ends without MPI_Finalize(): Open MPI's mpirun then ends all.
    keep_others = [go_on] if name == "openmpi" else []
    survivors_of_stopped(mpirun + keep_others + ["-n", str(RANKS), program, "stop"])
    print(f"{name} stop: the others went on")
    # Hydra of MPICH 4.2 returns 0 at times, when it learns of the end before it learns how.
    if all(run(start + ["kill"])[0] == 0 for _ in range(3)):
        sys.exit(f"{name}: mpirun reports nothing of a killed rank")
    print(f"{name} kill: without {go_on} mpirun ends all")


def main(program, name, *mpirun):
    if name == "shm":
        check_shm(program)
    else:
        check_mpi(program, name, list(mpirun))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
