#!/usr/bin/python3
"""Compares what the library exports with the list of its functions and with the public headers.

    check_symbols.py LIBRARY LIST INCLUDE_DIR            compare
    check_symbols.py LIBRARY LIST INCLUDE_DIR --update   write the list
"""

import re
import subprocess
import sys
from pathlib import Path

MOST_FUNCTIONS = 80
VERSION_NODE = "WEIR_0"
DECLARATION = re.compile(r"^WEIR_API\s+[^;{]*?\b(\w+)\(", re.MULTILINE)


def exported(library):
    """Returns {symbol: (type, version)} of the defined dynamic symbols."""
    output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                            capture_output=True).stdout
    symbols = {}
    for line in output.splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@")
        if name != VERSION_NODE:
            symbols[name] = (kind, version.lstrip("@"))
    return symbols


def problems(symbols, listed, declared):
    for name, (kind, version) in sorted(symbols.items()):
        if not name.startswith("weir_"):
            yield f"{name} is exported: src/weir.map is to hide everything but weir_*"
        elif version != VERSION_NODE:
            yield f"{name} has no version {VERSION_NODE}: link with src/weir.map"
        elif kind != "T":
            yield f"{name} is exported but not a function (nm says {kind})"
        elif name not in declared:
            yield f"{name} is exported but no public header declares it with WEIR_API"
        elif name not in listed:
            yield f"{name} is new: it is not in the list"
    for name in sorted(listed - symbols.keys()):
        yield f"{name} is in the list but the library does not export it"
    for name in sorted(declared - symbols.keys()):
        yield f"{name} is declared by a public header but the library does not export it"
    if len(symbols) > MOST_FUNCTIONS:
        yield f"{len(symbols)} functions are exported, at most {MOST_FUNCTIONS} are wanted"


def main(library, list_path, include, update=None):
    symbols = exported(library)
    if update == "--update":
        Path(list_path).write_text("".join(f"{name}\n" for name in sorted(symbols)))
        return 0
    listed = set(Path(list_path).read_text().split())
    declared = set()
    for header in Path(include).rglob("*.h"):
        declared.update(DECLARATION.findall(header.read_text()))
    found = list(problems(symbols, listed, declared))
    for line in found:
        print(line)
    if found:
        print("When the change is meant (removing or changing a function breaks programs), write "
              f"the list anew:\n    {sys.argv[0]} {library} {list_path} {include} --update")
    else:
        print(f"symbols: {len(symbols)} functions, at most {MOST_FUNCTIONS}")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
