"""How the library and the programs are linked, and what they import.

usage: hardening_test.py [--fortify] FILE...

Each is position independent, has its relocations resolved and read-only before it starts, no stack
that can be executed and guards in its stack frames; with --fortify it calls checked functions of
the C library. None imports what opens a socket or starts another program, except as listed.
"""

import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN = set(
    "socket bind listen accept accept4 connect getaddrinfo gethostbyname system popen fork vfork "
    "execl execle execlp execv execve execvp execvpe fexecve posix_spawn posix_spawnp shm_open "
    "mktemp tmpnam tempnam gets strcpy strcat sprintf vsprintf".split())


# (start of a file's name, function): why it may.
EXCEPTIONS = {("libweir.so", "posix_spawnp"): "weir_fabric_launch() starts the program it is given",
              ("weir", "posix_spawn"): "weir bench balance runs itself once for each point; weir doctor asks mpirun, "
                                       "pkg-config, ldconfig and python3",
              ("weir", "fork"): "weir doctor opens other libraries in a process of its own",
              ("weir", "posix_spawnp"): "ffmpeg takes the pictures out of films"}


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True,
                          check=True).stdout


def imports(path):
    """The functions a file takes from others."""
    lines = [line.split() for line in readelf("--dyn-syms", path).splitlines()]
    return {line[7].split("@")[0] for line in lines if len(line) > 7 and line[6] == "UND"}


def complaints(path, fortify):
    headers, dynamic, needed = readelf("-hl", path), readelf("-d", path), imports(path)
    program = "INTERP" in headers
    stack = re.search(r"GNU_STACK.* (\S+)\s+0x\S+\n", headers)
    found = []
    if not re.search(r"Type:\s+DYN", headers) or program != bool(re.search(r"FLAGS_1.*PIE", dynamic)):
        found.append("is not position independent")
    if "GNU_RELRO" not in headers or not re.search(r"FLAGS_1.*NOW", dynamic):
        found.append("leaves its relocations writable")
    if stack is None or "E" in stack[1]:
        found.append("has a stack that can be executed")
    if "TEXTREL" in dynamic:
        found.append("writes to its code")
    if re.search(r"(RPATH|RUNPATH).*\[(?!/|\$ORIGIN)", dynamic):
        found.append("searches libraries in a relative folder")
    if "__stack_chk_fail" not in needed:
        found.append("has no guards in its stack frames")
    if fortify and not any(name.endswith("_chk") for name in needed):
        found.append("calls no checked functions of the C library")
    allowed = {name for start, name in EXCEPTIONS if Path(path).name.startswith(start)}
    found += [f"imports {name}()" for name in sorted(needed & FORBIDDEN - allowed)]
    return [f"{path} {complaint}" for complaint in found]


def main():
    files = [argument for argument in sys.argv[1:] if argument != "--fortify"]
    found = [line for path in files for line in complaints(path, "--fortify" in sys.argv)]
    print("\n".join(found) or f"proof: {len(files)} files hardened, none opens a socket, two start "
                              "programs: that which is given, itself, ffmpeg, and what the doctor asks")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
