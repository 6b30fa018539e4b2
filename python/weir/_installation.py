"""Where this installation is, and what is wrong with it when it cannot be loaded."""

import platform
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def check_owner() -> None:
    """Raises ImportError when the project `weir` of PyPI shares the folder with this package."""
    if any(PACKAGE.parent.glob("weir-[0-9]*.dist-info")):
        raise ImportError(
            "two packages share the folder 'weir': this one (weir-runtime) and the project 'weir' of PyPI. "
            "Run: pip uninstall -y weir weir-runtime && pip install weir-runtime")


def explained(error: ImportError) -> ImportError:
    """What is missing on this machine, for an error of the loader."""
    text = str(error)
    library = re.search(r"([\w.+-]+\.so[\w.]*): cannot open shared object file", text)
    version = re.search(r"version `(GLIBCXX|GLIBC|CXXABI)_([\d.]+)' not found", text)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    if version and version[1] == "GLIBC":
        have = platform.libc_ver()[1] or "another C library"
        why = f"this build needs glibc {version[2]}, the system has {have}: build weir on it, or use a newer system"
    elif version:
        why = f"this build needs a newer libstdc++ ({version[1]}_{version[2]}): apt install libstdc++6, or dnf install libstdc++"
    elif library and "libstdc++" in library[1]:
        why = "libstdc++ is missing: apt install libstdc++6, or dnf install libstdc++"
    elif library:
        why = f"{library[1]} is missing: reinstall weir-runtime"
    elif "ELF" in text or "No module named" in text:
        why = f"this build is for another machine or Python than {machine}: pip install --force-reinstall weir-runtime"
    else:
        return error
    return ImportError(f"weir cannot be loaded: {why} ({text})", name=error.name, path=error.path)


def get_include() -> str:
    """The folder of weir's headers for C and C++, as for numpy.get_include()."""
    for folder in (PACKAGE / "include", PACKAGE.parents[1] / "include", PACKAGE.parents[3] / "include"):
        if (folder / "weir/portable.h").exists():
            return str(folder)
    raise FileNotFoundError("weir's headers are not installed with the Python package: apt install libweir-dev")
