#!/usr/bin/python3
"""Ranks that cannot be: each is one clear line and exit status 1.

    errors_test.py PROGRAM      PROGRAM opens the fabric and prints why it cannot
"""

import os
import signal
import subprocess
import sys

# Environment -> words of the message.
WRONG = (
    ("WEIR_TRANSPORT=xyz", "WEIR_TRANSPORT is 'xyz': choose from auto, self, shm, mpi, ucx"),
    ("WEIR_TRANSPORT=mpi", "not started by mpirun"),
    ("WEIR_TRANSPORT=inproc", "WEIR_TRANSPORT is 'inproc': choose from auto, self, shm, mpi, ucx"),
    ("WEIR_TRANSPORT=shm", "WEIR_RANKS is ''"),
    ("WEIR_SEGMENT=0 WEIR_RANK=0 WEIR_RANKS=2", "descriptor 0 is not a segment of a fabric of 2 ranks"),
    ("WEIR_SEGMENT=x WEIR_RANK=0 WEIR_RANKS=2", "WEIR_SEGMENT is 'x'"),
    ("WEIR_SEGMENT=0 WEIR_RANK=2 WEIR_RANKS=2", "WEIR_RANK is 2: there are 2 ranks"),
    ("WEIR_NODE_SIZE=0", "WEIR_NODE_SIZE is '0': expected a number of ranks, at least 1"),
    ("WEIR_PROGRESS=never", "WEIR_PROGRESS is 'never': choose from thread, caller, hybrid"),
    ("WEIR_LOST_AFTER_MS=0", "expected a number of milliseconds, from 1 to 2147483647"),
    ("WEIR_CHECK=halo,frame", "WEIR_CHECK is 'halo,frame': choose from halo, frames, or halo,frames"),
)


def check_lost_statuses(program):
    """A launcher that gets no status of a child ends, and says why."""
    done = subprocess.run([program, "shm", "2"], text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=100,
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    if done.returncode == 1 and "how rank 0 of" in done.stderr and "SIGCHLD" in done.stderr:
        return 0
    print(f"SIGCHLD ignored: status {done.returncode}\n{done.stdout}{done.stderr}")
    return 1


def main(program):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    failures = check_lost_statuses(program)
    for settings, words in WRONG:
        environment = clean | dict(each.split("=") for each in settings.split())
        result = subprocess.run([program], env=environment, text=True, capture_output=True,
                                stdin=subprocess.DEVNULL, timeout=100, check=False)
        lines = result.stderr.splitlines()
        if result.returncode != 1 or len(lines) != 1 or words not in lines[0]:
            print(f"{settings}: status {result.returncode}, not '{words}' but:\n{result.stderr}")
            failures += 1
    print(f"errors: {len(WRONG)} settings, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
