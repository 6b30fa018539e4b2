"""While the tool works, no process of it has a socket: it neither listens nor connects."""

import contextlib
import os
import socket
import subprocess
import sys
import time

from victim import ENDLESS, OTHERS, RUNS, TOOL

SECONDS = 1.0  # to watch each run for; those that end before are watched to their end
RANKS = 3
ON_RANKS = ("run", "scatter", "--n", "100000", *ENDLESS, "--ranks", str(RANKS))


def sockets(pid):
    """The sockets of a process: what /proc/net says of each, as far as it is one of the network."""
    owned = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed since
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    owned.add(target[len("socket:[") : -1])
    except (FileNotFoundError, PermissionError):  # the process has ended
        return []
    if not owned:
        return []
    known = {}
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        if not os.path.exists(f"/proc/{pid}/net/{protocol}"):
            continue
        with open(f"/proc/{pid}/net/{protocol}", encoding="ascii") as table:
            for line in list(table)[1:]:
                columns = line.split()
                known[columns[9]] = f"{protocol} {columns[1]} state {columns[3]}"
    return sorted(known.get(inode, "not of the network") for inode in owned)


def family(pid):
    """A process and those that it has started."""
    found = [pid]
    with contextlib.suppress(FileNotFoundError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:
                found += map(int, children.read().split())
    return found


def watch(arguments, processes=1):
    """Looks at a run again and again, until it has been seen with so many processes; returns how
    often."""
    looks = most = 0
    until = time.monotonic() + SECONDS
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    with subprocess.Popen([TOOL, *arguments], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and (time.monotonic() < until or most < processes):
            members = family(process.pid)
            most = max(most, len(members))
            found = [each for member in members for each in sockets(member)]
            if found:
                process.kill()
                raise AssertionError(f"{' '.join(arguments)}: {', '.join(found)}")
            looks += 1
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.002)
        process.kill()
    assert most >= processes, f"{' '.join(arguments)}: {most} processes, not {processes}"
    return looks


def check_the_check():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        found = sockets(os.getpid())
        port = f":{listener.getsockname()[1]:04X} state 0A"
        assert any(line.startswith("tcp ") and line.endswith(port) for line in found), found
    assert not sockets(os.getpid())


def main():
    check_the_check()
    runs = [RUNS[name] for name in ("host", "sim", "virtual", "matmul", "verification")]
    runs += OTHERS.values()
    looks = sum(watch(arguments) for arguments in runs)
    looks += watch(ON_RANKS, 1 + RANKS)
    assert looks > 100, f"looked only {looks} times"
    print(f"proof: {looks} looks at {len(runs) + 1} commands, one on {RANKS} ranks: no socket")


if __name__ == "__main__":
    sys.exit(main())
