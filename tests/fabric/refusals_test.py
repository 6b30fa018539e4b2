#!/usr/bin/python3
"""Commands that ranks cannot follow: one of them says why, and all end.

    refusals_test.py WEIR
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

RANKS = 3
PATIENCE_S = 60
USAGE, BAD_INPUT, UNAVAILABLE = 2, 3, 4

# Arguments of `weir run`, exit status, words of the message.
WRONG = (
    ("laplacian --n 4 --blocks 5x1x1", BAD_INPUT, "5 blocks do not fit 4 cells"),
    ("cholesky --domains rank:* --input none.mtx", BAD_INPUT, "none.mtx: cannot be read"),
    ("rtm --domains rank:* --n 32", BAD_INPUT, "does not run on domains of other ranks: choose"),
    ("laplacian --domains rank:* --n 8", BAD_INPUT, "each rank computes its own part, remove --domains"),
    ("cholesky --domains rank:9 --n 64", BAD_INPUT, "there is no rank 9: the fabric has 3"),
)
ALONE = ("cholesky --domains rank:* --n 64", UNAVAILABLE, "rank 0 is the only one")
TOO_MANY = 1025


def environment(folder):
    """Without settings of the user that change what a launcher does."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("WEIR_", "OMPI_", "PMIX_"))}
    return clean | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "TMPDIR": folder}  # a short name: there are sockets in it


def run(command, **more):
    with tempfile.TemporaryDirectory(prefix="w", dir="/tmp") as folder:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False, cwd=folder,
                              env=environment(folder), **more)
    said = [line for line in done.stderr.splitlines() if line.startswith("weir: ")]
    return done.returncode, said, done.stdout + done.stderr


def expect_refusal(command, status, words):
    code, said, output = run(command)
    if code != status or len(said) != 1 or words not in said[0]:
        sys.exit(f"{' '.join(map(str, command))}: status {code}, not {status} and once '{words}':"
                 f"\n{output}")


def check_mpi(weir, name, more):
    """Returns why there are no ranks of this MPI, "" when there are."""
    mpirun = shutil.which(f"mpirun.{name}")
    if mpirun is None:
        return "is not installed"
    code, _, output = run([mpirun, "-n", 1, weir, "run", "laplacian", "--n", 4, "--repeat", 1])
    if "weir was built without" in output:
        return "is not in this build"
    if code != 0:
        sys.exit(f"{name} starts nothing:\n{output}")
    for arguments, status, words in WRONG:
        expect_refusal([mpirun, *more, "-n", RANKS, weir, "run", *arguments.split()], status, words)
    arguments, status, words = ALONE
    expect_refusal([mpirun, "-n", 1, weir, "run", *arguments.split()], status, words)
    if name == "openmpi":  # MPICH has no slots on one machine
        code, said, output = run([mpirun, "-n", 100 * os.cpu_count(), weir, "run", "laplacian"])
        if code == 0 or said or "slots" not in output:
            sys.exit(f"more ranks than slots: status {code}\n{output}")
    return ""


def main(weir):
    for arguments, status, words in WRONG:
        expect_refusal([weir, "run", *arguments.split(), "--ranks", RANKS], status, words)
    expect_refusal([weir, "run", "laplacian", "--ranks", TOO_MANY], USAGE, str(TOO_MANY))
    # What starts weir may hand that on.
    code, _, output = run([weir, "run", "laplacian", "--n", 4, "--repeat", 1, "--ranks", 2],
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    if code != 0:
        sys.exit(f"SIGCHLD ignored: status {code}\n{output}")
    for name, more in (("openmpi", ["--oversubscribe"]), ("mpich", [])):
        missing = check_mpi(weir, name, more)
        print(f"{name} {missing or 'refuses, too'}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
