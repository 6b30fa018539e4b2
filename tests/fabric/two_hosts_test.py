#!/usr/bin/python3
"""Runs applications on two hosts with a network between them, and sees that they use it.

    two_hosts_test.py openmpi|mpich WEIR

The hosts are network namespaces: scripts/two_hosts.py. Where they cannot be made the test is
skipped and says why.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HOSTS = Path(__file__).resolve().parents[2] / "scripts" / "two_hosts.py"
SKIPPED = 77
PATIENCE_S = 250

# Arguments of `weir run`, and the least number of bytes that must go over.
N, ITERATIONS, KEYS = 48, 10, 50_000
RUNS = {
    "laplacian": (("--n", N, "--iterations", ITERATIONS), 2 * (ITERATIONS - 1) * N * N * 8),
    "laplacian, blocking": (("--n", N, "--iterations", ITERATIONS, "--transform", "off"),
                            2 * (ITERATIONS - 1) * N * N * 8),
    "scatter": (("--n", KEYS), KEYS),
}


def run(mpi, weir, what, options):
    """Returns what the program reports and how many bytes went over."""
    command = [sys.executable, HOSTS, mpi, weir, "run", what.split(",")[0], *options, "--domains",
               "host:cores=1", "--repeat", 1, "--verify", "--json"]
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("WEIR_")}
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # takes the hosts away
        output, errors = process.communicate()
        sys.exit(f"{what}: still runs after {PATIENCE_S} s\n{output}{errors}")
    if process.returncode == SKIPPED:
        print(errors.strip())
        sys.exit(SKIPPED)
    if process.returncode != 0:
        sys.exit(f"{what}: status {process.returncode}\n{output}{errors}")
    over = re.search(r"two_hosts: (\d+) bytes went over", errors)
    return json.loads(output), int(over.group(1))


def main(mpi, weir):
    for what, (options, least) in RUNS.items():
        report, over = run(mpi, weir, what, options)
        ranks = report.get("ranks", report.get("scatter", {}).get("ranks"))
        if report["verified"] is not True or ranks != 2 or over < least:
            sys.exit(f"{what}: verified {report['verified']}, {ranks} ranks, {over} bytes went over "
                     f"where {least} must:\n{report}")
        print(f"{what} with {mpi}: verified on two hosts, {over} bytes went over")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
