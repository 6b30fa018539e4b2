"""Where this installation is, and what is wrong with it when it cannot be loaded."""

import contextlib
import platform
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def check_owner() -> None:
    """Raises ImportError when the project `weir` of PyPI shares the folder with this package."""
    if any(PACKAGE.parent.glob("weir-[0-9]*.dist-info")):
        raise ImportError(
            "two packages share the folder 'weir': this one (weir-runtime) and the project 'weir' of PyPI. "
            "Run: pip uninstall -y weir weir-runtime && pip install weir-runtime")


# Architectures by their numbers in ELF files, as platform.machine() names them.
MACHINES = {3: "i686", 21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64",
            258: "loongarch64"}
# What else the library is linked with, and the Debian packages of it.
PACKAGES = {"libstdc++": "libstdc++6", "libgcc_s": "libgcc-s1", "libhwloc": "libhwloc15", "libfmt": "libfmt9",
            "libspdlog": "libspdlog1.10", "libc": "libc6", "ld-linux": "libc6"}


def machine_of(file: Path) -> str:
    """The architecture that an ELF file is for; "" of other files."""
    with contextlib.suppress(OSError), file.open("rb") as binary:
        head = binary.read(20)
        if head[:4] == b"\x7fELF" and len(head) == 20:
            number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
            return MACHINES.get(number, f"machine {number}")
    return ""


def wrong_machine(library: str) -> str:
    """Says that a library which the loader skipped is for another architecture; "" if it is not there or is right.
    glibc reports such a file as missing."""
    here = machine_of(Path(sys.executable).resolve()) or platform.machine()
    named = [Path(library)] if Path(library).is_absolute() else []
    for file in (*named, *PACKAGE.glob(f"**/{Path(library).name}")):
        found = machine_of(file)
        if found and found != here:
            return f"{file} is for {found}, this Python for {here}: pip install --force-reinstall weir-runtime"
    return ""


def why_version(name: str, number: str) -> str:
    """For a version of a symbol that a library of the system does not have."""
    if name == "GLIBC":
        needs = "2.36" if number == "ABI_DT_RELR" else number
        have = platform.libc_ver()[1] or "another C library"
        return f"this build needs glibc {needs}, the system has {have}: build weir on it, or use a newer system"
    library, package, fedora = ("libgcc_s", "libgcc-s1", "libgcc") if name == "GCC" else (
        "libstdc++", "libstdc++6", "libstdc++")
    return f"this build needs a newer {library} ({name}_{number}): apt install {package}, or dnf install {fedora}"


def why_missing(library: str) -> str:
    """For a library that the loader does not find."""
    name = Path(library).name
    if wrong := wrong_machine(library):
        return wrong
    if name.startswith(("libweir", "_weir")):
        return f"{name} is missing: reinstall weir-runtime, or set LD_LIBRARY_PATH to its folder"
    package = PACKAGES.get(name.split(".so")[0].split("-x86")[0])
    if package is None:
        return f"{name} is missing: install the package that contains it"
    if package == "libstdc++6":
        return "libstdc++ is missing: apt install libstdc++6, or dnf install libstdc++"
    return f"{name} is missing: apt install {package}, or the package of your system that contains it"


def why_no_module() -> str:
    """For a package without a compiled module that this Python accepts."""
    here = f"{platform.machine()}, Python {platform.python_version()}"
    built = ", ".join(sorted(file.name for file in PACKAGE.glob("_weir*.so"))) or "no compiled module"
    return (f"this build is for another machine or Python than {here} (it has {built}): "
            "pip install --force-reinstall weir-runtime")


def explained(error: ImportError) -> ImportError:
    """What is missing on this machine, for an error of the loader. musl words its errors in its own way."""
    text = str(error)
    library = (re.search(r"([^\s:]+\.so[\w.]*): cannot open shared object file", text)
               or re.search(r"Error loading shared library ([^\s:]+): No such file", text))
    version = re.search(r"version `(GLIBCXX|GLIBC|CXXABI|GCC)_(\w[\w.]*)' not found", text)
    symbol = re.search(r"undefined symbol: (weir_\w+)|Error relocating \S+: (weir_\w+): symbol not found", text)
    damaged = re.search(r"(\S+\.so[\w.]*): (?:wrong ELF class|ELF file|invalid ELF|file too short|only ET_DYN)", text)
    if version:
        why = why_version(version[1], version[2])
    elif library:
        why = why_missing(library[1])
    elif symbol:
        why = (f"the libweir that is loaded is of another version, it has no {symbol[1] or symbol[2]}: "
               "unset LD_LIBRARY_PATH, or install both from one version")
    elif damaged:
        why = wrong_machine(damaged[1]) or f"{damaged[1]} is damaged: pip install --force-reinstall weir-runtime"
    elif "No module named" in text:
        why = why_no_module()
    elif "Error relocating" in text:
        why = "this build needs glibc, the system has another C library: build weir on it"
    else:
        return error
    return ImportError(f"weir cannot be loaded: {why} ({text})", name=error.name, path=error.path)


def get_include() -> str:
    """The folder of weir's headers for C and C++, as for numpy.get_include()."""
    for folder in (PACKAGE / "include", PACKAGE.parents[1] / "include", PACKAGE.parents[3] / "include"):
        if (folder / "weir/portable.h").exists():
            return str(folder)
    raise FileNotFoundError("weir's headers are not installed with the Python package: apt install libweir-dev")
