#!/usr/bin/python3
"""Runs applications by Slurm on two hosts with a network between them: scripts/slurm_hosts.py.

    slurm_test.py WEIR ENGINE

ENGINE is what connects ranks of different hosts: ucx or mpi. Where Slurm is not installed the test
is skipped and says why.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

HOSTS = Path(__file__).resolve().parents[2] / "scripts" / "slurm_hosts.py"
SKIPPED = 77
PATIENCE_S = 100
RANKS = 4


def start(interface, *program):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("WEIR_", "SLURM_"))}
    return subprocess.Popen([sys.executable, HOSTS, "-n", str(RANKS), interface,
                             *map(str, program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=environment)


def run(interface, *program):
    process = start(interface, *program)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, errors = process.communicate()
        sys.exit(f"{program}: still runs after {PATIENCE_S} s\n{output}{errors}")
    if process.returncode == SKIPPED:
        print(errors.strip())
        sys.exit(SKIPPED)
    if process.returncode != 0:
        sys.exit(f"{program}: status {process.returncode}\n{output}{errors}")
    return output


def check_links(weir, interface, engine):
    """Two ranks share the memory of each host."""
    said = run(interface, weir, "info", "--ranks")
    links = re.findall(r"^ +(\d) +\d+ +(.*)$", said, re.M)
    for rank, link in links:
        near = int(rank) ^ 1
        if f"shm to {near}" not in link or engine not in link:
            sys.exit(f"rank {rank} by {interface}: {link}\n{said}")
    if len(links) != RANKS:
        sys.exit(f"{len(links)} ranks instead of {RANKS}:\n{said}")
    print(f"{RANKS} ranks on two hosts by srun --mpi={interface}, connected by shm and {engine}")


def check_application(weir):
    report = json.loads(run("pmix", weir, "run", "laplacian", "--n", 32, "--iterations", 5,
                            "--domains", "host:cores=1", "--repeat", 1, "--verify", "--json"))
    if report["verified"] is not True or report["ranks"] != RANKS:
        sys.exit(f"laplacian: {report}")
    print("laplacian: verified")


def check_signal(weir):
    """srun passes SIGTERM on: all ranks end, and none remains on a host."""
    endless = f'echo $$; exec "{weir}" run laplacian --n 32 --iterations 100000000 --repeat 1'
    process = start("pmix", "sh", "-c", f"{endless} --domains host:cores=1")
    ranks = []
    while len(ranks) < RANKS:
        line = process.stdout.readline()
        if not line:
            sys.exit(f"the ranks have not started: {process.stderr.read()}")
        ranks.append(os.pidfd_open(int(line)))  # the hosts share the numbers of processes
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    for rank in ranks:
        if not select.select([rank], [], [], PATIENCE_S)[0]:
            sys.exit("a rank remains")
        os.close(rank)
    print("SIGTERM: all ranks have ended")


def main(weir, engine):
    for interface in ("pmix", "pmi2"):
        check_links(weir, interface, engine)
    check_application(weir)
    check_signal(weir)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
