#!/usr/bin/python3
"""Runs weir on a machine that lacks something, in a private mount namespace.

    machine_without_test.py TOOL PYTHON_PATH CASE

PYTHON_PATH: the folder of the Python package; "" if there is none. Each command works and says what
is missing where the user can do something about it. Ends with 77 where namespaces are not allowed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
HIDE_SYS = "mount -t tmpfs none /sys"
HIDE_PROC = "mount -t tmpfs none /proc"
# A /dev with the files that every system has, and nothing else.
LITTLE_DEV = """mkdir "$F/dev"
for file in null zero full random urandom tty; do
  [ ! -e /dev/$file ] || { : >"$F/dev/$file" && mount --bind /dev/$file "$F/dev/$file"; }
done
mount --rbind "$F/dev" /dev"""
READ_ONLY = """mkdir "$F/home"
mount --bind "$F/home" "$F/home"
mount -o remount,bind,ro "$F/home" """

PROGRAM = """import weir
with weir.Runtime("host:cores=1,sim:cores=1") as runtime:
    stream = runtime.domain("sim").place().stream()
    data = runtime.buffer(4096)
    stream.upload(data)
    stream.download(data)
    stream.synchronize()
print(weir.__version__)"""


class Failure(Exception):
    pass


class Case:
    """A machine: how it is made, its environment, the checks of the doctor that are not ok, and what a check finds."""

    def __init__(self, setup="", warns=(), finds=None, launcher=(), **environment):
        self.setup, self.warns, self.finds = setup, set(warns), finds or {}
        self.launcher, self.environment = list(launcher), environment


def cases():
    allowed = sorted(os.sched_getaffinity(0))
    scattered = allowed[::2] if len(allowed) > 2 else allowed[-1:]
    return {
        "sys": Case(HIDE_SYS, ["sys", "backend opencl"], {"sys": "not mounted"}),
        "proc": Case(HIDE_PROC, ["proc"], {"proc": "not mounted"}),
        "sys_and_proc": Case(f"{HIDE_PROC}\n{HIDE_SYS}", ["proc", "sys"]),
        "dev": Case(LITTLE_DEV, ["shared memory"], {"shared memory": "No such file or directory"}),
        "writable_shm": Case("mount -t tmpfs -o ro none /dev/shm", ["shared memory"],
                    {"shared memory": "Read-only file system"}),
        "room_in_shm": Case("mount -t tmpfs -o size=16k none /dev/shm", ["shared memory"],
                            {"shared memory": "little for MPI"}),
        "writable_home": Case(READ_ONLY, ["cache"], {"cache": "Read-only file system"}, HOME="$F/home", XDG_CACHE_HOME=""),
        "writable_cache": Case(READ_ONLY, ["cache"], {"cache": "Read-only file system"}, XDG_CACHE_HOME="$F/home/cache"),
        "anything": Case(f"{LITTLE_DEV}\n{READ_ONLY}\n{HIDE_PROC}\n{HIDE_SYS}",
                         ["proc", "sys", "shared memory", "cache"], HOME="$F/home", XDG_CACHE_HOME=""),
        "second_core": Case(launcher=["taskset", "-c", str(allowed[0])]),
        "adjacent_cores": Case(launcher=["taskset", "-c", ",".join(map(str, scattered))]),
        "second_core_of_hwloc": Case(warns=["topology"], HWLOC_SYNTHETIC="core:1 pu:1"),
        "adjacent_cores_of_hwloc": Case(warns=["topology"],
                                        HWLOC_SYNTHETIC="node:2 core:3 pu:2(indexes=2*6:6*1)"),
    }


def namespace():
    """The command that makes a private mount namespace; none if that is not allowed."""
    if shutil.which("unshare") is None:
        return None
    for options in (["-m"], ["-U", "-r", "-m"]):
        command = ["unshare", *options]
        tried = subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/sys"], capture_output=True, check=False)
        if tried.returncode == 0:
            return command
    return None


class Machine:
    def __init__(self, tool, python_path, case, space, folder):
        self.tool, self.python_path, self.case, self.space = tool, python_path, case, space
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        self.environment |= {name: value.replace("$F", folder) for name, value in case.environment.items()}
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.script = f'set -eu\n{case.setup}\nexec "$@"\n'

    def run(self, *command):
        """Returns the standard output. The folder is new for each command: its mounts end with it."""
        with tempfile.TemporaryDirectory(dir=self.folder) as inner:
            environment = {name: value.replace(f"{self.folder}/home", f"{inner}/home")
                           for name, value in self.environment.items()}
            done = subprocess.run([*self.space, "sh", "-c", self.script, "sh", *self.case.launcher, *command],
                                  env={**environment, "F": inner}, capture_output=True, text=True, timeout=100,
                                  check=False)
        if done.returncode != 0 or "[hwloc" in done.stderr:
            raise Failure(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def check_doctor(self):
        found = json.loads(self.run(self.tool, "doctor", "--json"))["checks"]
        by_name = {check["check"]: check for check in found}
        for name in self.case.warns:
            check = by_name.get(name)
            if check is None or check["level"] != "warning" or not check["fix"]:
                raise Failure(f"weir doctor does not warn of {name}: {json.dumps(found, indent=1)}")
        for name, words in self.case.finds.items():
            if words not in by_name[name]["found"]:
                raise Failure(f"'{words}' is not in {by_name[name]}")

    def check_runs(self):
        run = ("run", "cholesky", "--n", "256", "--tile", "64", "--repeat", "1", "--verify", "--json")
        for more in (("--domains", "host,sim:cores=1"), ("--ranks", "2", "--domains", "rank:*")):
            report = json.loads(self.run(self.tool, *run, *more))
            if not report["verified"]:
                raise Failure(f"{run} {more} is wrong: {report}")

    def check(self):
        if "Machine" not in self.run(self.tool, "info"):
            raise Failure("weir info does not describe the machine")
        self.check_doctor()
        self.check_runs()
        if not Path(self.run(self.tool, "--prefix").strip()).samefile(Path(self.tool).resolve().parent.parent):
            raise Failure("weir --prefix is wrong")
        if self.python_path:
            self.environment["PYTHONPATH"] = self.python_path
            self.run(sys.executable, "-c", PROGRAM)


def main(tool, python_path, name):
    case = cases()[name]
    space = namespace() if case.setup else []
    if space is None:
        print("machine_without: this user may not make mount namespaces")
        return SKIPPED
    if case.launcher and shutil.which(case.launcher[0]) is None:
        print(f"machine_without: {case.launcher[0]} is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="weir-machine-") as folder:
        try:
            Machine(tool, python_path, case, space, folder).check()
        except Failure as failure:
            print(f"machine_without: {name}: FAILED\n{failure}")
            return 1
    print(f"machine_without: {name}: ok")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
