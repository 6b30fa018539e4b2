"""Portable kernels from text: the compiler of the machine compiles them for the host."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from weir import _errors
from weir._installation import get_include

KERNEL = re.compile(r"\bWEIR_KERNEL\s*\(")
FLAGS = ["-std=c++20", "-O3", "-march=native", "-fPIC", "-shared", "-w", "-x", "c++"]

# What follows the text of a kernel: its description, and how many groups a call runs.
GRID = """
template <class T> static T weir_scalar_as(const weir_scalar& scalar) {{
  switch (scalar.type) {{
    case WEIR_SCALAR_TYPE_U64: return static_cast<T>(scalar.value.u64);
    case WEIR_SCALAR_TYPE_F32: return static_cast<T>(scalar.value.f32);
    case WEIR_SCALAR_TYPE_F64: return static_cast<T>(scalar.value.f64);
    default: return static_cast<T>(scalar.value.i64);
  }}
}}
static uint32_t weir_group_count(long double items, uint32_t size) {{
  const long double groups = __builtin_ceill(items / size);
  return groups < 1 ? 0 : groups < INT32_MAX ? static_cast<uint32_t>(groups) : INT32_MAX;
}}
extern "C" const weir_portable_kernel* weir_python_kernel() {{ return &{name}; }}
extern "C" void weir_python_grid(const weir_call* weir_call_, uint32_t weir_groups_[3]) {{
{values}
{groups}
}}
"""


def address_of(function: Any) -> int:
    """The address of a function of ctypes."""
    if not isinstance(function, (ctypes._CFuncPtr, ctypes.c_void_p)):
        raise TypeError(f"a {type(function).__name__} is not code: pass an address, a function of "
                        "ctypes, or something with an 'address'")
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def arguments_of(source: str, begin: int) -> list[str]:
    """The arguments of a macro whose parenthesis was opened before `begin`."""
    depth, arguments = 1, [""]
    for letter in source[begin:]:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return [each.strip() for each in arguments]
        if letter == "," and depth == 1:
            arguments.append("")
        else:
            arguments[-1] += letter
    raise ValueError("a WEIR_KERNEL( of the source has no end")


def kernels_of(source: str) -> dict[str, list[str]]:
    """The parameters of each kernel of a text."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    found = {}
    for match in KERNEL.finditer(code):
        name, *rest = arguments_of(code, match.end())
        if len(rest) < 3:
            raise ValueError(f"WEIR_KERNEL({name}, ...) takes a name, three sizes and parameters")
        found[name] = rest[3:]
    return found


def choose(kernels: dict[str, list[str]], name: str | None) -> str:
    if name is None and len(kernels) == 1:
        return next(iter(kernels))
    if name in kernels:
        return name
    have = ", ".join(f"'{each}'" for each in kernels) or "no WEIR_KERNEL()"
    raise ValueError(f"the source has {have}: "
                     + ("say which with name=" if name is None else f"'{name}' is not there"))


def grid_of(name: str, parameters: list[str], items: tuple[str, ...]) -> str:
    """C++ that counts the groups of a call."""
    scalars = [each for each in parameters if "*" not in each]
    values = "\n".join(
        f"  [[maybe_unused]] const auto {words[-1]} = "
        f"weir_scalar_as<{' '.join(words[:-1])}>(weir_call_->scalars[{index}]);"
        for index, words in enumerate(each.replace("const ", "").split() for each in scalars))
    groups = "\n".join(
        f"  weir_groups_[{axis}] = weir_group_count({count}, {name}.group[{axis}]);"
        for axis, count in enumerate(items))
    return GRID.format(name=name, values=values, groups=groups)


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # code is not looked for wherever the program happens to be
        base = Path.home() / ".cache"
    folder = base / "weir" / "python"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def compile_library(text: str) -> Path:
    """Compiles a text, unless the cache has it."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    try:
        include = Path(get_include())
    except FileNotFoundError as error:
        raise _errors.UnavailableError(str(error)) from None
    dialect = b"".join((include / "weir" / each).read_bytes()
                       for each in ("portable.h", "portable_host.hpp", "kernel.h"))
    try:
        # Compiler and processor, in words that g++ and clang++ both have.
        target = subprocess.run([*compiler, "-march=native", "-E", "-dM", "-x", "c++", os.devnull],
                                capture_output=True).stdout
    except OSError as error:
        raise _errors.UnavailableError(
            f"portable kernels need a C++ compiler for the host: {error}; set CXX") from None
    flags = " ".join(FLAGS).encode()
    key = hashlib.sha256(text.encode() + dialect + flags + target).hexdigest()[:32]
    library = cache_folder() / f"{key}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / "kernel.so"
        done = subprocess.run([*compiler, *FLAGS, f"-I{include}", "-", "-o", str(made)], input=text,
                              text=True, capture_output=True)
        if done.returncode != 0:
            raise _errors.KernelError(f"the kernel does not compile:\n{done.stderr.strip()}")
        made.replace(library)
    return library


class Built:
    """A compiled kernel. The library stays loaded."""

    def __init__(self, name: str, library: Path):
        self.name, self.library = name, ctypes.CDLL(str(library))
        self.library.weir_python_kernel.restype = ctypes.c_void_p
        self.kernel = self.library.weir_python_kernel()
        self.grid = address_of(self.library.weir_python_grid)


def build(source: str, items: str | tuple[str, ...], name: str | None) -> Built:
    """Compiles one kernel of a text for the host."""
    items = (items,) if isinstance(items, str) else tuple(items)
    if not 1 <= len(items) <= 3:
        raise ValueError(f"items has {len(items)} directions: one to three")
    kernels = kernels_of(source)
    name = choose(kernels, name)
    text = (f"#include <weir/portable.h>\n#line 1 \"{name}\"\n{source}\n"
            + grid_of(name, kernels[name], items))
    return Built(name, compile_library(text))
