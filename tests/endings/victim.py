"""Runs of the tool that are made to end, and what must be left of them: nothing."""

import contextlib
import os
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

from traces import actions_of

TOOL = os.environ["WEIR_TOOL"]

ENDLESS = ("--repeat", "1000000")
CHOLESKY = ("run", "cholesky", "--n", "768", "--tile", "64", *ENDLESS)

# Each may have a trace; the last of them hang in one kernel, or where nothing can be cancelled.
RUNS = {
    "host": (*CHOLESKY, "--domains", "host"),
    "host, two places": (*CHOLESKY, "--domains", "host", "--places", "2"),
    "sim": (*CHOLESKY, "--domains", "sim:cores=1,gbps=6"),
    "mixed": (*CHOLESKY, "--domains", "host:cores=1,sim:cores=1,gbps=6"),
    "small memory": (*CHOLESKY, "--domains", "sim:cores=1,memory=6MiB"),
    "virtual": (*CHOLESKY, "--domains", "sim:clock=virtual,kernels=skip,gflops=10"),
    "matmul": ("run", "matmul", "--n", "768", "--tile", "128", *ENDLESS),
    "slow link": ("run", "matmul", "--n", "512", "--domains", "sim:gbps=0.001", *ENDLESS),
    "long kernel": ("run", "matmul", "--n", "6000", "--tile", "6000", *ENDLESS),
    "verification": ("run", "matmul", "--n", "5000", "--verify", "--repeat", "1"),
}
OTHERS = {"info": ("info",), "doctor": ("doctor",)}


def leftovers(folder, expected):
    return sorted(set(os.listdir(folder)) - set(expected))


def words_of(process):
    """Returns what /proc says of a process behind its name, from its state on."""
    with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def members_of(group):
    """Returns the processes of a group, also those that have ended and have not been waited for."""
    members = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(words_of(process)[2]) == group:
                members.add(int(process))
    return members


def ends_within(process, seconds):
    """Returns whether a process of any parent ends in time."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def used_by_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Victim:
    """One run in a folder and a session of its own. A context: what is left of it is removed."""

    def __init__(self, arguments, trace=None, settings=None):
        self.trace = trace
        self.shared_before = set(os.listdir("/dev/shm"))
        self.folder = tempfile.mkdtemp(prefix="weir-ending-")
        command = [TOOL, *arguments, *(("--trace", trace) if trace else ())]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        environment.update(settings or {}, TMPDIR=self.folder)
        self.used_before = used_by_children()
        self.process = subprocess.Popen(
            command, cwd=self.folder, env=environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        shutil.rmtree(self.folder)

    def end(self, limit):
        """Waits for the end: (seconds it took, standard error). Raises when that does not come."""
        start = time.monotonic()
        _, message = self.process.communicate(timeout=limit)
        return time.monotonic() - start, message

    def live(self, seconds):
        """Returns when the run has ended, or after this time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def used(self):
        """Returns the processor time that it has used, in seconds; without children that live."""
        if self.process.returncode is not None:
            return used_by_children() - self.used_before
        return sum(map(int, words_of(self.process.pid)[11:15])) / os.sysconf("SC_CLK_TCK")

    def has_no_process(self, seconds):
        """Returns whether all of the group have ended in time, also orphans."""
        until = time.monotonic() + seconds
        ended = set()
        while members := members_of(self.process.pid) - ended:
            for member in members:
                if not ends_within(member, max(0, until - time.monotonic())):
                    return False
            ended |= members
        return True

    def path(self):
        return os.path.join(self.folder, self.trace)

    def check_remains(self):
        """Returns the number of actions in the trace, None: there is no trace."""
        assert self.has_no_process(10), "a process of the run is still there"
        expected = (self.trace,) if self.trace else ()
        left = leftovers(self.folder, expected)
        assert not left, f"left behind: {left}"
        shared = set(os.listdir("/dev/shm")) - self.shared_before
        assert not shared, f"left in /dev/shm: {sorted(shared)}"
        if not self.trace or not os.path.exists(self.path()):
            return None
        return actions_of(self.path())
