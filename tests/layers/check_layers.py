#!/usr/bin/python3
"""Checks that every layer includes only what it may, that no components include each other, and that
nothing has a memory fence.

The tables below are the layers of the source tree. The table of ARCHITECTURE.md has to say the same of
the folders of src, with a link to the README of each.

    check_layers.py ROOT          check the tree at ROOT
    check_layers.py --self-test   check that the check finds violations
"""

import fnmatch
import re
import sys
import tempfile
from pathlib import Path

# Layer (a folder) -> the layers it may include beside itself. "public" is include/.
LAYERS = {
    "src/base": "public",
    "src/trace": "public src/base",
    "src/backend": "public src/base src/trace",
    "src/kernels": "public src/base src/backends/opencl src/backends/cuda",
    "src/core": "public src/base src/trace src/backend",
    "src/fabric": "public src/base src/trace",
    "src/conveyor": "public src/base src/trace src/fabric",
    "src/grid": "public src/base src/trace src/fabric",
    "src/stream": "public src/base src/trace src/backend src/core",
    "src/tasks": "public src/base src/trace src/backend src/core src/stream",
    "src/graph": "public src/base src/backend src/core src/stream",
    "src/share": "public src/base src/trace src/core src/stream src/fabric",
    "src/pipeline": "public src/base src/trace src/core src/stream",
    "src/backends/null": "public src/base src/trace src/backend",
    "src/backends/sim": "public src/base src/trace src/backend",
    "src/backends/host": "public src/base src/trace src/backend",
    "src/backends/opencl": "public src/base src/trace src/backend",
    "src/backends/cuda": "public src/base src/trace src/backend",
    "src/backends/rank": "public src/base src/trace src/backend src/fabric",
    "src/runtime": "public src/base src/trace src/backend src/core src/stream src/tasks src/graph"
                   " src/share src/pipeline src/fabric src/conveyor src/grid src/kernels src/backends/*",
    "src/capi": "public src/base src/stream src/tasks src/graph src/share src/pipeline src/runtime",
    "src/hstreams": "public include/hstreams",
    "include": "public",
    "include/hstreams": "",  # programs count on what these headers include of the C library
    "apps": "public",
    "tools": "public apps tools/weir/report",  # the command line tool runs the applications
    "tools/weir/report": "public apps",
    "examples": "public",
    "python": "public apps tools/weir/report",  # traces as pages
    "fortran": "public",
}

# Includes that break the table on purpose, each with its reason. One that is no longer there fails.
EXCEPTIONS = {
    ("src/capi/kernel_api.cpp", "backend/invoke.hpp"): "weir_call_fail() is part of calling a kernel",
    ("src/capi/kernel_api.cpp", "backend/team.hpp"): "weir_team_*() are the virtual functions of a team",
    ("src/capi/kernel_api.cpp", "kernels/builtin.hpp"): "finding a tile kernel opens its BLAS",
    ("src/capi/runtime_api.cpp", "kernels/builtin.hpp"): "a new runtime has the built-in kernels",
    ("src/capi/trace_api.cpp", "trace/export.hpp"): "the runtime hands out its recording as it is",
    ("src/capi/trace_api.cpp", "trace/summary.hpp"): "the runtime hands out its recording as it is",
}

# Headers of others -> the only layers that may include them.
VENDORS = {
    "cuda*.h": "src/backends/cuda",
    "nv*.h": "src/backends/cuda",
    "cu*.h": "src/backends/cuda",
    "CL/*": "src/backends/opencl",
    "mpi.h": "src/fabric",
    "ucp/*": "src/fabric",
    "hwloc.h": "src/base",
    "hwloc/*": "src/base",
    "spdlog/*": "src/base",
}

# Pure layers: what runs, waits or reads a clock comes to them through base.
PURE = ("src/core", "src/stream", "src/tasks", "src/graph", "src/share", "src/pipeline", "src/conveyor",
        "src/grid")
IMPURE_HEADERS = set(
    "thread mutex shared_mutex condition_variable future semaphore latch barrier stop_token chrono"
    " ctime time.h pthread.h sched.h unistd.h semaphore.h threads.h".split())

# The C interface stands on three headers; weir.hpp on any of the C++ library.
C_HEADERS = {"stddef.h", "stdint.h", "stdbool.h"}

# Conditional compilation on a backend belongs to those that know backends.
KNOW_BACKENDS = ("src/backends/", "src/fabric", "src/runtime", "include/weir/portable.h",
                  "include/weir/device_tunnel.hpp", "apps/reyes/split_walk.hpp")  # texts for CUDA
BACKEND_CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*(CUDA|OPENCL|MPI)")

# Orders are those of atomic operations: neither the thread sanitizer nor readers see fences.
FENCE = re.compile(r"\batomic_(?:thread|signal)_fence\b")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^"<>\s]+)[>"]')  # not the text of a message
SOURCES = {".h", ".hpp", ".c", ".cpp", ".cu", ".inc"}
SEARCH_PATH = ("src", "include", "include/hstreams", "apps", "tools", "tools/weir", "examples")


def layer_of(path):
    """Returns the layer of a file given relative to the root, None outside all of them."""
    found = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(found, key=len, default=None)


def words(layers):
    return ", ".join(layers)


class Check:
    def __init__(self, root):
        self.root = root
        self.violations = []
        self.used_exceptions = set()
        self.files = 0
        self.includes = {}  # component -> components of its folder that it includes

    def run(self):
        for top in ("src", "include", "apps", "tools", "examples", "python", "fortran"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    self.check_file(path.relative_to(self.root).as_posix())
        for (path, header), reason in EXCEPTIONS.items():
            if (self.root / path).exists() and (path, header) not in self.used_exceptions:
                self.report(path, 1, f"no longer includes {header}: remove its exception")
        self.check_circles()
        return self.violations

    def check_circles(self):
        """Reports components (a header with its source) of a folder that include each other, directly
        or through others."""
        circles = {}
        for component in self.includes:
            reached = self.reached_from(component)
            if component in reached:
                circle = frozenset(each for each in reached if component in self.reached_from(each))
                circles[min(circle)] = " ".join(sorted(each.rsplit("/", 1)[1] for each in circle))
        for component, names in circles.items():
            self.report(component + ".hpp", 1, f"is in a circle of includes: {names}")

    def reached_from(self, component):
        reached, next_ = set(), [component]
        while next_:
            for each in self.includes.get(next_.pop(), ()):
                if each not in reached:
                    reached.add(each)
                    next_.append(each)
        return reached

    def report(self, path, line, what):
        self.violations.append(f"{path}:{line}: {what}")

    def check_file(self, path):
        layer = layer_of(path)
        if layer is None:
            self.report(path, 1, "is in no layer: add its folder to tests/layers/check_layers.py")
            return
        self.files += 1
        text = (self.root / path).read_text(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                self.check_include(path, number, layer, match[1] == '"', match[2])
            elif BACKEND_CONDITION.match(line) and not path.startswith(KNOW_BACKENDS):
                self.report(path, number, "#if on a backend, which only "
                            f"{words(KNOW_BACKENDS)} may have")
            if FENCE.search(line):
                self.report(path, number, "has a fence: give the atomic operations the order")

    def check_include(self, path, number, layer, quoted, header):
        target = self.resolve(path, quoted, header)
        if target is None:
            if quoted:
                self.report(path, number, f'"{header}" is not in the tree; write <...> for others')
            else:
                self.check_foreign(path, number, layer, header)
            return
        there = layer_of(target)
        here, other = (each.rsplit(".", 1)[0] for each in (path, target))
        if path.startswith("src/") and here != other and Path(here).parent == Path(other).parent:
            self.includes.setdefault(here, set()).add(other)
        allowed = self.allowed(layer)
        there_name = "public" if there == "include" else there
        if there == layer or any(fnmatch.fnmatch(there_name, each) for each in allowed):
            return
        if (path, header) in EXCEPTIONS:
            self.used_exceptions.add((path, header))
            return
        self.report(path, number, f"includes {header} of {there}; "
                    f"{layer} may include {words([layer] + allowed)}")

    @staticmethod
    def allowed(layer):
        return LAYERS[layer].split()

    def resolve(self, path, quoted, header):
        """Returns the file of the tree that is included, None when it is not of the tree."""
        places = [Path(path).parent] if quoted else []
        places += [Path(place) for place in SEARCH_PATH]
        for place in places:
            candidate = self.root / place / header
            if candidate.is_file():
                found = candidate.resolve().relative_to(self.root.resolve()).as_posix()
                if layer_of(found):
                    return found
        return None

    def check_foreign(self, path, number, layer, header):
        if layer in PURE and header in IMPURE_HEADERS:
            self.report(path, number, f"includes <{header}>; {layer} has no threads, locks, clocks "
                        "or sleeps: go through base/sys.hpp")
        if layer == "include" and path.endswith(".h") and header not in C_HEADERS:
            self.report(path, number, f"includes <{header}>; a public C header may include "
                        f"{words('<' + each + '>' for each in sorted(C_HEADERS))} and <weir/...>")
        if layer == "include" and path.endswith(".hpp") and ("/" in header or "." in header):
            self.report(path, number, f"includes <{header}>; a public C++ header may include the "
                        "C++ library and <weir/...>")
        for pattern, owners in VENDORS.items():
            if fnmatch.fnmatchcase(header, pattern) and layer not in owners.split():
                self.report(path, number,
                            f"includes <{header}>, which only {words(owners.split())} may")


ROOM = re.compile(r"\((src/[\w/]+)/README\.md\)")


def table_problems(text):
    """Yields how the table of ARCHITECTURE.md differs from LAYERS, for the folders of src."""
    rows, above = {}, {"public"}
    for line in text.splitlines():
        cells = line.split("|")
        layers = ROOM.findall(cells[1]) if len(cells) == 5 else []
        given = {each if each.startswith(("public", "include")) else f"src/{each}"
                 for each in cells[2].replace("`", "").strip().split(", ")} if layers else set()
        for layer in layers:
            rows[layer] = set(above) if given == {"src/all of the above"} else given
        above.update(layers)
    ours = {layer: allowed for layer, allowed in LAYERS.items() if layer.startswith("src/")}
    for layer, allowed in ours.items():
        if layer not in rows:
            yield f"ARCHITECTURE.md: no row of its table links to {layer}/README.md"
            continue
        wanted = {name for each in allowed.split() for name in (fnmatch.filter(ours, each) or [each])}
        if rows[layer] != wanted:
            yield (f"ARCHITECTURE.md: {layer} may include {words(sorted(wanted))}, "
                   f"not {words(sorted(rows[layer]))}")
    for layer in set(rows) - set(ours):
        yield f"ARCHITECTURE.md: {layer} is not a layer"


def main_check(root):
    check = Check(root)
    violations = check.run() + list(table_problems((root / "ARCHITECTURE.md").read_text()))
    for violation in violations:
        print(violation)
    if check.files == 0:
        print(f"{root}: no sources found")
        return 1
    print(f"layers: {check.files} files, {len(check.used_exceptions)} exceptions, "
          f"{len(violations)} violations")
    return 1 if violations else 0


# ---- Self-test ----------------------------------------------------------------------------------

# Path -> contents, and the line and words that the check is to report (None: nothing).
SAMPLES = {
    "src/base/sys.hpp": ("#include <thread>\n#include <hwloc.h>\n", None),
    "src/core/engine.hpp": ('#include "base/sys.hpp"\n#include <weir/status.h>\n', None),
    "src/runtime/runtime.hpp": ('#include "core/engine.hpp"\n#include "backends/sim/sim.hpp"\n', None),
    "src/backends/sim/sim.hpp": ('#include "base/sys.hpp"\n', None),
    "src/base/up.cpp": ('\n#include "core/engine.hpp"\n', ":2: includes core/engine.hpp of src/core"),
    "src/base/angle.cpp": ("#include <core/engine.hpp>\n", ":1: includes core/engine.hpp of src/core"),
    "src/core/threads.cpp": ("#  include <mutex> // why\n", ":1: includes <mutex>"),
    "src/core/backend.cpp": ('#include "backends/sim/sim.hpp"\n', ":1: includes backends/sim/sim.hpp"),
    "src/core/switch.cpp": ("#if WEIR_HAVE_CUDA\n#endif\n", ":1: #if on a backend"),
    "src/backends/host/host.cpp": ('#include "backends/sim/sim.hpp"\n', ":1: includes backends/sim"),
    "src/backends/cuda/cuda.cpp": ("#include <cuda.h>\n", None),
    "src/runtime/vendor.cpp": ("#include <CL/cl.h>\n", ":1: includes <CL/cl.h>"),
    "src/kernels/gemm.cpp": ('#include "runtime/runtime.hpp"\n', ":1: includes runtime/runtime.hpp"),
    "src/capi/api.cpp": ('#include "core/engine.hpp"\n', ":1: includes core/engine.hpp"),
    "src/core/fence.cpp": ("\nstd::atomic_thread_fence(order);\n", ":2: has a fence"),
    "apps/fence.c": ("atomic_thread_fence(memory_order_seq_cst);\n", ":1: has a fence"),
    "src/stray.cpp": ("", ":1: is in no layer"),
    "src/trace/a.hpp": ('#include "trace/b.hpp"\n', ":1: is in a circle of includes: a b c"),
    "src/trace/b.cpp": ('#include "trace/c.hpp"\n', None),
    "src/trace/b.hpp": ("", None),
    "src/trace/c.hpp": ('#include "trace/a.hpp"\n#include "trace/d.hpp"\n', None),
    "src/trace/d.hpp": ("", None),
    "include/weir/status.h": ("#include <stddef.h>\n#include <stdio.h>\n", ":2: includes <stdio.h>"),
    "include/weir/weir.hpp": ("#include <span>\n#include <fmt/format.h>\n", ":2: includes <fmt/format.h>"),
    "include/weir/portable.h": ("#if defined(__OPENCL_VERSION__)\n#endif\n", None),
    "include/hstreams/hStreams_types.h": ("#include <stdio.h>\n", None),
    "include/hstreams/inside.h": ("#include <weir/status.h>\n", ":1: includes weir/status.h of include"),
    "src/hstreams/api.cpp": ("#include <weir/weir.hpp>\n#include <hStreams_types.h>\n", None),
    "src/hstreams/inside.cpp": ('#include "base/sys.hpp"\n', ":1: includes base/sys.hpp of src/base"),
    "examples/hstreams.c": ("#include <hStreams_types.h>\n",
                            ":1: includes hStreams_types.h of include/hstreams"),
    "include/weir/inner.h": ('#include "base/sys.hpp"\n', ":1: includes base/sys.hpp of src/base"),
    "apps/matmul.cpp": ("#include <weir/weir.hpp>\n#include <fmt/format.h>\n", None),
    "apps/inside.cpp": ('#include "runtime/runtime.hpp"\n', ":1: includes runtime/runtime.hpp"),
    "apps/common/io.hpp": ("", None),
    "tools/weir/run.cpp": ('#include "common/io.hpp"\n', None),
    "examples/hello.c": ('#include "common/io.hpp"\n', ":1: includes common/io.hpp of apps"),
    "tools/weir/report/page.hpp": ('#include "common/io.hpp"\n', None),
    "python/src/report.cpp": ('#include "report/page.hpp"\n#include "common/io.hpp"\n', None),
    "python/src/inside.cpp": ('#include "base/sys.hpp"\n', ":1: includes base/sys.hpp of src/base"),
    "examples/lost.c": ('#include "nowhere.h"\n', ':1: "nowhere.h" is not in the tree'),
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, (text, _) in SAMPLES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        found = Check(root).run()
    wanted = [path + words_ for path, (_, words_) in SAMPLES.items() if words_]
    table = (Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text()
    for planted, text in {
            "src/base may include public, not src/core": table.replace("base/README.md) | public", "base/README.md) | core"),
            "no row of its table links to src/core/": table.replace("(src/core/README.md)", "(src/core)", 1),
            "src/runtime may include": table.replace("all of the above", "public, core"),
            "src/grids is not a layer": table.replace("(src/tasks/README.md)", "(src/grids/README.md)", 1),
    }.items():
        wanted.append(f"ARCHITECTURE.md: {planted}")
        found += [line for line in table_problems(text) if planted in line]
    missed = [each for each in wanted if not any(line.startswith(each) for line in found)]
    false = [line for line in found if not any(line.startswith(each) for each in wanted)]
    for each in missed:
        print(f"not found: {each}")
    for line in false:
        print(f"found wrongly: {line}")
    print(f"self-test: {len(wanted)} violations planted, {len(missed)} missed, {len(false)} too many")
    return 1 if missed or false else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else main_check(Path(sys.argv[1])))
