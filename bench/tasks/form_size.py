#!/usr/bin/env python3
"""How large a form of an application is: lines of code that bind its work, or calls of the API."""

import argparse
import json
import re
import subprocess
from pathlib import Path

APPS = Path("@PROJECT_SOURCE_DIR@/apps")
TOOL = Path(__file__).resolve().parents[2] / "bin" / "weir"
DEVICE = "sim:clock=virtual,gflops=35,kernels=skip"

# Functions that only one of the forms has. What both have, and kernels, is in neither count.
FORMS = {
    "cholesky": {
        "streams": ("enqueue", "stream_of", "factor_panel", "update_diagonal", "update"),
        "tasks": ("submit",),
    },
    "matmul": {"streams": ("enqueue",), "tasks": ("submit",)},
    "lu": {
        "streams": ("enqueue", "stream_of", "factor_panel", "update", "subtract_product",
                    "exchange"),
        "tasks": ("submit",),
    },
    "sparse-cholesky": {
        "streams": ("enqueue", "upload_entries", "fetch_border", "border", "hand_over"),
        "tasks": ("submit",),
    },
}
# Where the newest copies are, and which memory owns what: the queue keeps track of that otherwise.
BOOKKEEPING = {
    "cholesky": ("common/tiled_matrix.cpp",),
    "matmul": ("common/tiled_matrix.cpp",),
    "lu": ("common/tiled_matrix.cpp",),
    "sparse-cholesky": ("common/tiled_matrix.cpp", "sparse_cholesky/front_owners.cpp"),
}


def code_lines(lines):
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("//"))


def functions_of(path):
    """The lines of each member function, by name, of a file in the layout of clang-format."""
    found, name = {}, None
    for line in path.read_text(encoding="utf-8").splitlines():
        begins = re.match(r"  [A-Za-z][^=;]*?[ &*](\w+)\(", line)
        if name is None and begins and not line.rstrip().endswith(";"):
            name, body = begins.group(1), []
        if name is None:
            continue
        body.append(line)
        if line == "  }" or (len(body) == 1 and line.endswith("}")):
            found.setdefault(name, []).extend(body)
            name = None
    return found


def lines(app, form):
    stem = app.replace("-", "_")
    functions = functions_of(APPS / stem / f"{stem}.cpp")
    count = sum(code_lines(functions[name]) for name in FORMS[app][form])
    said = f"functions {', '.join(FORMS[app][form])}"
    if form == "streams":
        files = BOOKKEEPING[app]
        texts = ((APPS / file).read_text(encoding="utf-8") for file in files)
        kept = sum(code_lines(text.splitlines()) for text in texts)
        said += f"; besides, {kept} lines of {', '.join(files)}"
    return {"value": count, "unit": "lines", "config": said}


def calls(app, form):
    """Of a run on two devices: what the program enqueues, or the tasks it submits."""
    policy = ("--policy", "finish") if form == "tasks" else ()
    options = ("--domains", f"{DEVICE},{DEVICE}", "--repeat", "1", "--json")
    done = subprocess.run([TOOL, "run", app, *policy, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    run = json.loads(done.stdout)
    count = sum(share["tasks"] for share in run["shares"]) if form == "tasks" else run["actions"]
    return {"value": count, "unit": "calls", "config": "on two devices"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("lines", "calls"))
    parser.add_argument("app", choices=FORMS)
    parser.add_argument("form", choices=("streams", "tasks"))
    given = parser.parse_args()
    print(json.dumps((lines if given.what == "lines" else calls)(given.app, given.form)))


main()
