#!/usr/bin/python3
"""Builds programs as their Makefiles for Intel's compiler do, with hstreams-icpc and hstreams-icc.

    wrapper_test.py FOLDER_OF_WRAPPERS GUIDE C_COMPILER CXX_COMPILER [SANITIZERS]

Every row of the guide's table of options holds. A host program and its sink library, and a program
in C, are built with the options of the time, and run.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = ["-O3", "-x", "c++", "-Wl,--enable-new-dtags", "-fPIC", "-Dname=two words", "a.o"]

HOST = """
#include <hStreams_source.h>
#include <hStreams_app_api.h>
#include <intel-coi/common/COIMacros_common.h>
#include <omp.h>
int main() {
  static double x[100];
  uint64_t args[3] = {100, 0, (uint64_t)x};
  doubleToUint64_t factor;
  mkl_set_num_threads(1);
  factor.Set(0.5);
  args[1] = factor.Get_uint64_t();
#pragma omp parallel for
  for (int i = 0; i < 100; ++i) x[i] = i;
  CHECK_HSTR_RESULT(hStreams_app_init(1, 1));
  CHECK_HSTR_RESULT(hStreams_app_create_buf(x, sizeof x));
  CHECK_HSTR_RESULT(hStreams_app_xfer_memory(x, x, sizeof x, 0, HSTR_SRC_TO_SINK, NULL));
  CHECK_HSTR_RESULT(hStreams_app_invoke(0, "scale", 2, 1, args, NULL, NULL, 0));
  CHECK_HSTR_RESULT(hStreams_app_xfer_memory(x, x, sizeof x, 0, HSTR_SINK_TO_SRC, NULL));
  CHECK_HSTR_RESULT(hStreams_app_thread_sync());
  printf("%g of %d, %s\\n", x[99], _OPENMP > 0, cblas_ddot(1, x + 2, 1, x + 2, 1) == 1 ? "BLAS" : "");
  return hStreams_app_fini();
}
"""
SINK = """
#include <intel-coi/sink/COIPipeline_sink.h>
COINATIVELIBEXPORT void scale(uint64_t count, uint64_t factor, double* restrict x) {
  double by;
  memcpy(&by, &factor, sizeof by);
#pragma omp parallel for
  for (int i = 0; i < (int)count; ++i) x[i] *= by;
}
"""


class Failure(Exception):
    pass


def run(command, **variables):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                          env={**os.environ, **variables}, timeout=60)
    if done.returncode != 0:
        raise Failure(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def rows_of(guide):
    """Yields options of the table, each with what it becomes."""
    table = guide.read_text().split("| option of icc | becomes |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        options, becomes = line.strip("| ").split(" | ")
        wanted = [] if becomes.startswith("dropped") else re.findall("`(.*?)`", becomes)
        for option in re.findall("`(.*?)`", options):
            yield option.split(), wanted


def check_table(wrapper, guide, folder):
    shows = folder / "shows"
    shows.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    shows.chmod(0o755)
    rows = list(rows_of(guide))
    if len(rows) < 30:
        raise Failure(f"{guide} has {len(rows)} options: where is the table?")
    for option, wanted in rows:
        got = run([wrapper, *KEPT, *option, "-o", "b"], HSTREAMS_CXX=str(shows)).splitlines()
        if got[:len(KEPT) + len(wanted) + 2] != [*KEPT, *wanted, "-o", "b"]:
            raise Failure(f"{option} became {got}, not {wanted}")
        if "-lhstreams_source" not in got:
            raise Failure(f"a program is linked without the library: {got}")
    compiled = run([wrapper, "-c", "a.cpp"], HSTREAMS_CXX=str(shows)).splitlines()
    if any(word.startswith("-l") for word in compiled):
        raise Failure(f"a file is compiled with libraries: {compiled}")
    print(f"{len(rows)} options become what the guide says")


def check_programs(wrappers, folder, cc, cxx, flags):
    """What a Makefile of the time runs for a host program, its sink library, and a program in C."""
    icpc, icc = wrappers / "hstreams-icpc", wrappers / "hstreams-icc"
    common = ["-Wall", "-Werror-all", "-mkl", "-diag-disable", "13368", "-diag-disable", "15527",
              "-DNDEBUG", "-O3", "-Wl,--enable-new-dtags", *flags]
    host, card = [*common, "-openmp", "-lcoi_host"], [*common, "-mmic", "-openmp", "-restrict"]
    (folder / "scale.cpp").write_text(HOST)
    (folder / "sink.cpp").write_text(SINK)
    for wrapper in (icpc, icc):
        def compile(*options):
            run([wrapper, *options], HSTREAMS_CC=cc, HSTREAMS_CXX=cxx)
        compile(*host, "-c", folder / "scale.cpp", "-o", folder / "scale.o")
        compile(*card, "-lcoi_device", "-rdynamic", "-fPIC", "-shared", "-c", folder / "sink.cpp",
                "-o", folder / "sink.o")
        compile(*host, "-o", folder / "scale", folder / "scale.o", f"-L{folder}", "-lhstreams_source")
        compile(*card, "-fPIC", "-shared", "-o", folder / "scale_mic.so", folder / "sink.o",
                f"-L{folder}", "-lhstreams_sink", "-Wl,-soname,scale_mic.so", "-static-intel")
        output = run([folder / "scale"])
        if output != "49.5 of 1, BLAS\n":
            raise Failure(f"a program built by {wrapper} printed {output!r}")
    run([icc, *host, HERE / "hello_client.c", "-o", folder / "hello"], HSTREAMS_CC=cc)
    if "hello 42" not in run([folder / "hello"]):
        raise Failure("a program in C said nothing")
    print("programs are built as their Makefiles do")


def main(wrappers, guide, cc, cxx, sanitizers=""):
    flags = [f"-fsanitize={sanitizers}"] if sanitizers else []
    with tempfile.TemporaryDirectory(prefix="weir-wrapper-") as name:
        folder = Path(name)
        check_table(Path(wrappers) / "hstreams-icpc", Path(guide), folder)
        check_programs(Path(wrappers), folder, cc, cxx, flags)


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Failure as failure:
        sys.exit(str(failure))
