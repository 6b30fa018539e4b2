#!/usr/bin/python3
"""Runs a program by Slurm on two hosts that are network namespaces of this machine: two_hosts.py.

    slurm_hosts.py [-n RANKS] [--mbit RATE] pmix|pmi2 PROGRAM [ARGUMENT ...]

Starts munged, slurmctld and a slurmd on each host in a temporary folder, and calls srun. Exit
status: that of srun; 77, with the reason, where this cannot be done: it needs root, iproute2 and
Debian's slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and munge.
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

from two_hosts import CANNOT, UCX, CannotBeMade, Hosts, run_to_end

TOOLS = ("ip", "nsenter", "unshare", "munged", "slurmctld", "slurmd", "srun", "sinfo")
PATIENCE_S = 30  # for the daemons

CONFIGURATION = """\
ClusterName=weir
SlurmctldHost={first}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=FORCE State=UP
"""


class Cluster:
    """The daemons on two hosts, as long as the block lasts."""

    def __init__(self, hosts, folder, cpus):
        self.hosts, self.folder, self.daemons = hosts, Path(folder), []
        self.settings = self.folder / "slurm.conf"
        self.variables = {**UCX, "SLURM_CONF": str(self.settings)}
        nodes = "\n".join(f"NodeName={name} NodeAddr={address} CPUs={cpus} State=UNKNOWN"
                          for name, address in zip(hosts.names, hosts.addresses))
        self.settings.write_text(CONFIGURATION.format(
            first=hosts.names[0], address=hosts.addresses[0], folder=folder, nodes=nodes))
        for name in ("munge", "state", "groups", *(f"{kind}.{name}" for kind in ("spool", "tmp")
                                         for name in hosts.names)):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        munge = self.folder / "munge"
        self.begin(0, "munged", "--foreground", "--force", f"--socket={munge}/socket",
                   f"--key-file={munge}/key", f"--pid-file={munge}/pid", f"--log-file={munge}/log",
                   f"--seed-file={munge}/seed")
        self.await_that(lambda: (munge / "socket").exists(), "munged")
        self.begin(0, "slurmctld", "-D", "-f", self.settings)
        for number, name in enumerate(self.hosts.names):
            self.begin(number, "slurmd", "-D", "-f", self.settings, "-N", name)
        self.await_that(self.idle, "the nodes")

    def begin(self, number, *words):
        log = (self.folder / f"{words[0]}.{number}.out").open("wb")
        self.daemons.append(subprocess.Popen(self.inside(number, *words), stdout=log, stderr=log,
                                             env={**os.environ, **self.variables},
                                             start_new_session=True))

    def inside(self, number, *words):
        name = self.hosts.names[number]
        # /sys has the network devices of the host, for UCX, and the control groups, for slurmd.
        groups = self.folder / "groups"
        enter = (f"hostname {name} && mount --rbind /sys/fs/cgroup {groups} && "
                 f"mount -t sysfs none /sys && mount --rbind {groups} /sys/fs/cgroup && "
                 'exec "$0" "$@"')
        return ["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "--mount", "sh", "-c",
                enter, *map(str, words)]

    def idle(self):
        said = subprocess.run(self.inside(0, "sinfo", "-h", "-o", "%D %t"), capture_output=True,
                              text=True, check=False, env={**os.environ, **self.variables}).stdout
        return said.strip() == "2 idle"

    def await_that(self, done, what):
        """Waits until the daemons are ready, or the last of them has ended, or PATIENCE_S."""
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            try:
                self.daemons[-1].wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
            logs = [f"{log.name}: {lines[-1]}" for log in sorted(self.folder.glob("*.log"))
                    if (lines := log.read_text(errors="replace").splitlines())]
            raise CannotBeMade("; ".join([f"{what} did not start within {PATIENCE_S} s", *logs]))

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()


def run(hosts, interface, ranks, program):
    """Returns the status of srun."""
    with tempfile.TemporaryDirectory(prefix="weir-slurm-") as folder:
        os.chmod(folder, 0o755)
        with Cluster(hosts, folder, cpus=(ranks + 1) // 2) as cluster:
            # The hosts have one table of processes, by which ranks would find each other's memory.
            variables = {"WEIR_NODE_SIZE": str((ranks + 1) // 2)}
            words = ("srun", f"--mpi={interface}", "-N2", f"-n{ranks}", "--distribution=block")
            return run_to_end(cluster.inside(0, *words, *program),
                              {**cluster.variables, **variables})


def main(arguments):
    parser = argparse.ArgumentParser(prog="slurm_hosts.py", description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=2, help="ranks, in order on the two hosts")
    parser.add_argument("--mbit", type=int, help="most that each host sends, in Mbit/s")
    parser.add_argument("interface", choices=("pmix", "pmi2"),
                        help="pmix for Open MPI, pmi2 for MPICH")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if not options.program:
        parser.error("name the program")
    try:
        if os.geteuid() != 0:
            raise CannotBeMade("network namespaces need root")
        for tool in TOOLS:
            if shutil.which(tool) is None:
                raise CannotBeMade(f"{tool} is not installed")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        with Hosts(options.mbit, False) as hosts:
            return run(hosts, options.interface, options.n, options.program)
    except CannotBeMade as error:
        print(f"slurm_hosts: {error}", file=sys.stderr)
        return CANNOT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
