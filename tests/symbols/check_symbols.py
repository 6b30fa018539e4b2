#!/usr/bin/python3
"""Compares what a library exports with the list of its functions and with its public headers.

    check_symbols.py LIBRARY LIST INCLUDE_DIR            compare
    check_symbols.py LIBRARY LIST INCLUDE_DIR --update   write the list

The name of the list says which library it is: weir.symbols or hstreams.symbols.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Interface:
    node: str          # version of its symbols
    names: str         # what they look like
    declaration: str   # what public headers put before them
    linker_map: str
    most: float = float("inf")


INTERFACES = {
    "weir": Interface("WEIR_0", r"weir_", r"WEIR_API", "src/weir.map", 170),
    "hstreams": Interface("HSTREAMS_1.3", r"_?hStreams_", r"(?:DllAccess|HSTREAMS_EXPORT)",
                          "src/hstreams/hstreams.map"),
}


def exported(library, interface):
    """Returns {symbol: (type, version)} of the defined dynamic symbols."""
    output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                            capture_output=True).stdout
    symbols = {}
    for line in output.splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@")
        if name != interface.node:
            symbols[name] = (kind, version.lstrip("@"))
    return symbols


def problems(interface, symbols, listed, declared):
    for name, (kind, version) in sorted(symbols.items()):
        if not re.match(interface.names, name):
            yield f"{name} is exported: {interface.linker_map} is to hide it"
        elif version != interface.node:
            yield f"{name} has no version {interface.node}: link with {interface.linker_map}"
        elif kind != "T":
            yield f"{name} is exported but not a function (nm says {kind})"
        elif name not in declared:
            yield f"{name} is exported but no public header declares it"
        elif name not in listed:
            yield f"{name} is new: it is not in the list"
    for name in sorted(listed - symbols.keys()):
        yield f"{name} is in the list but the library does not export it"
    for name in sorted(declared - symbols.keys()):
        yield f"{name} is declared by a public header but the library does not export it"
    if len(symbols) > interface.most:
        yield f"{len(symbols)} functions are exported, at most {interface.most} are wanted"


def main(library, list_path, include, update=None):
    interface = INTERFACES[Path(list_path).stem]
    symbols = exported(library, interface)
    if update == "--update":
        Path(list_path).write_text("".join(f"{name}\n" for name in sorted(symbols)))
        return 0
    listed = set(Path(list_path).read_text().split())
    declaration = re.compile(rf"^{interface.declaration}\s+[^;{{]*?\b(\w+)\(", re.MULTILINE)
    declared = set()
    for header in Path(include).rglob("*.h"):
        declared.update(declaration.findall(header.read_text()))
    found = list(problems(interface, symbols, listed, declared))
    for line in found:
        print(line)
    if found:
        print("When the change is meant (removing or changing a function breaks programs), write "
              f"the list anew:\n    {sys.argv[0]} {library} {list_path} {include} --update")
    else:
        print(f"symbols: {len(symbols)} functions")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
