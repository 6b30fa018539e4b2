#!/usr/bin/python3
"""Runs applications on two hosts with a network between them, and sees that they use it.

    two_hosts_test.py openmpi|mpich WEIR

A link that drops for a while costs time only; one that drops for longer than WEIR_LOST_AFTER_MS is an
error on both ranks that names the other and what connected them.

The hosts are network namespaces: scripts/two_hosts.py. Where they cannot be made the test is
skipped and says why.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HOSTS = Path(__file__).resolve().parents[2] / "scripts" / "two_hosts.py"
DEVICE = "weir0"  # of two_hosts.py
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


def start(mpi, weir, what, options, **variables):
    command = [sys.executable, HOSTS, mpi, weir, "run", what.split(",")[0], *options, "--domains",
               "host:cores=1", "--repeat", 1, "--verify", "--json"]
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("WEIR_")} | variables
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def run(mpi, weir, what, options):
    """Returns what the program reports and how many bytes went over."""
    process = start(mpi, weir, what, options)
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


def ends_within(process, seconds):
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def drop_link(mpi, weir, seconds, **variables):
    """Returns the status and the errors of a program whose link is down for a while."""
    iterations = 2_000
    process = start(mpi, weir, "laplacian", ("--n", N, "--iterations", iterations), **variables)
    host = f"weir-{process.pid}-0"
    sent = f"/sys/class/net/{DEVICE}/statistics/tx_bytes"

    def on_host(*command):
        return subprocess.run(["ip", "netns", "exec", host, *command], capture_output=True,
                              text=True, check=False).stdout

    deadline = time.monotonic() + PATIENCE_S
    while int(on_host("cat", sent) or 0) < 20 * N * N * 8:  # it does not compute yet
        if ends_within(process, 0.02) or time.monotonic() > deadline:
            process.terminate()
            sys.exit(f"no traffic: {process.communicate()}")
    on_host("ip", "link", "set", DEVICE, "down")
    ends_within(process, seconds)
    on_host("ip", "link", "set", DEVICE, "up")
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


def check_drops(mpi, weir):
    status, errors = drop_link(mpi, weir, 3)
    if status != 0:
        sys.exit(f"a link that dropped for 3 s: status {status}\n{errors}")
    status, errors = drop_link(mpi, weir, 6, WEIR_LOST_AFTER_MS="2000")
    for rank in (0, 1):
        if not re.search(rf"rank {rank}: rank {1 - rank} has not answered for \d+ ms over \w+ ", errors):
            sys.exit(f"a link that dropped for 6 s: nothing of rank {rank}, status {status}\n{errors}")
    print("a link that drops for a while costs time, for long it is an error on both ranks")


def main(mpi, weir):
    for what, (options, least) in RUNS.items():
        report, over = run(mpi, weir, what, options)
        ranks = report.get("ranks", report.get("scatter", {}).get("ranks"))
        if report["verified"] is not True or ranks != 2 or over < least:
            sys.exit(f"{what}: verified {report['verified']}, {ranks} ranks, {over} bytes went over "
                     f"where {least} must:\n{report}")
        print(f"{what} with {mpi}: verified on two hosts, {over} bytes went over")
    check_drops(mpi, weir)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
