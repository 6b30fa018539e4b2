#!/usr/bin/python3
"""Runs a program of MPI on two hosts that are network namespaces of this machine.

    two_hosts.py [--mbit RATE] [--own-cores] openmpi|mpich PROGRAM [ARGUMENT ...]

The hosts have names and loopbacks of their own, and reach each other by a pair of veth devices
alone, each of which sends at most RATE Mbit/s when that is given. One rank runs on each, on half of
the cores when each host is to have its own. The last line on standard error says how many bytes
went over. Exit status: the program's; 77, with the
reason, where such hosts cannot be made: they need root, iproute2 and that mpirun.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CANNOT = 77
NETWORK = "198.18.0"  # RFC 2544: for tests of networks
DEVICE = "weir0"  # the same name on both hosts

# What mpirun calls in place of ssh: [OPTION ...] HOST COMMAND ...
AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
shift
exec {enter} 'hostname {name}; exec sh -c "$0"' "$*"
"""


class CannotBeMade(Exception):
    """Says what is missing."""


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise CannotBeMade(f"{' '.join(words)}: {reason[0]}")
    return done.stdout


class Hosts:
    """Two namespaces and what joins them, as long as the block lasts."""

    def __init__(self, mbit, own_cores):
        self.mbit = mbit
        cores = sorted(os.sched_getaffinity(0))
        half = len(cores) // 2
        self.cores = [cores[:half], cores[half:]] if own_cores and half > 0 else [cores, cores]
        self.names = [f"weir-{os.getpid()}-{number}" for number in range(2)]
        self.addresses = [f"{NETWORK}.{number + 1}" for number in range(2)]
        self.made = []

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        for name in self.names:
            call("ip", "netns", "add", name)
            self.made.append(name)
        first, second = self.names
        call("ip", "link", "add", DEVICE, "netns", first, "type", "veth", "peer", "name", DEVICE,
             "netns", second)
        for name, address in zip(self.names, self.addresses):
            call("ip", "-n", name, "address", "add", f"{address}/24", "dev", DEVICE)
            call("ip", "-n", name, "link", "set", "lo", "up")
            call("ip", "-n", name, "link", "set", DEVICE, "up")
            if self.mbit:
                call("tc", "-n", name, "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate",
                     f"{self.mbit}mbit", "burst", "1mb", "latency", "10ms")

        self.await_carrier()

    def enter(self, number):
        """Returns the words that run a command on a host, on its cores."""
        cores = ",".join(map(str, self.cores[number]))
        return ["ip", "netns", "exec", self.names[number], "taskset", "-c", cores, "unshare",
                "--uts", "sh", "-c"]

    def await_carrier(self):
        """A device that has been set up works a moment later."""
        deadline = time.monotonic() + 10
        while any(self.read(name, "operstate") != "up" for name in self.names):
            if time.monotonic() > deadline:
                raise CannotBeMade(f"{DEVICE} does not come up")
            time.sleep(0.02)

    def read(self, name, what):
        """Returns what a host says about its device."""
        return call("ip", "netns", "exec", name, "cat", f"/sys/class/net/{DEVICE}/{what}").strip()

    def sent_bytes(self):
        return sum(int(self.read(name, "statistics/tx_bytes")) for name in self.names)

    def __exit__(self, *_):
        for name in self.made:
            left = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True,
                                  check=False).stdout.split()
            for process in left:
                try:
                    os.kill(int(process), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["ip", "netns", "delete", name], check=False)


# Of MPICH and of weir. Sockets alone, as for Open MPI.
UCX = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": DEVICE}


def openmpi(hosts, agent):
    """Sockets alone: processes of one machine would find its memory."""
    network = f"{NETWORK}.0/24"
    settings = {"plm_rsh_agent": agent, "pml": "ob1", "btl": "tcp,self", "osc": "^sm,ucx,monitoring",
                "btl_tcp_if_include": network, "oob_tcp_if_include": network}
    words = [word for name, value in settings.items() for word in ("--mca", name, value)]
    places = ",".join(f"{address}:1" for address in hosts.addresses)
    # Each host would take the first core for its rank.
    return ["mpirun.openmpi", *words, "--bind-to", "none", "-host", places, "-n", "2"], {
        **UCX, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpich(hosts, agent):
    return ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", agent, "-iface", DEVICE, "-hosts",
            ",".join(hosts.addresses), "-n", "2"], {**UCX, "FI_PROVIDER": "tcp"}


LAUNCHERS = {"openmpi": openmpi, "mpich": mpich}


def check_machine(mpi, mbit):
    if os.geteuid() != 0:
        raise CannotBeMade("network namespaces need root")
    for tool in ("ip", "taskset", "unshare", f"mpirun.{mpi}", *(("tc",) if mbit else ())):
        if shutil.which(tool) is None:
            raise CannotBeMade(f"{tool} is not installed")


def run_to_end(words, variables):
    """Returns the status of a program, which has ended then, also after an exception."""
    process = subprocess.Popen(words, env={**os.environ, **variables})
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def run(hosts, mpi, program):
    """Returns the status of the program."""
    with tempfile.TemporaryDirectory(prefix="weir-hosts-") as folder:
        agent = Path(folder, "agent")
        agent.write_text(AGENT.format(enter=" ".join(hosts.enter(1)), name=hosts.names[1]),
                         encoding="ascii")
        agent.chmod(0o755)
        words, variables = LAUNCHERS[mpi](hosts, str(agent))
        name = hosts.names[0]
        inside = [*hosts.enter(0), f'hostname {name}; exec "$0" "$@"']
        # The hosts have one table of processes, by which ranks would find the memory of each other.
        alone = {"WEIR_NODE_SIZE": "1"}
        return run_to_end([*inside, *words, *program], {**alone, **variables})


def main(arguments):
    parser = argparse.ArgumentParser(prog="two_hosts.py", description=__doc__.splitlines()[0])
    parser.add_argument("--mbit", type=int, help="most that each host sends, in Mbit/s")
    parser.add_argument("--own-cores", action="store_true", help="half of the cores for each host")
    parser.add_argument("mpi", choices=LAUNCHERS)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if not options.program:
        parser.error("name the program")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        check_machine(options.mpi, options.mbit)
        with Hosts(options.mbit, options.own_cores) as hosts:
            before = hosts.sent_bytes()
            status = run(hosts, options.mpi, options.program)
            print(f"two_hosts: {hosts.sent_bytes() - before} bytes went over", file=sys.stderr)
            return status
    except CannotBeMade as missing:
        print(f"two_hosts: skipped: {missing}", file=sys.stderr)
        return CANNOT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
