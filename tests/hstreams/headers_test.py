#!/usr/bin/python3
"""Compiles, for each compatibility header, a file that includes it alone and uses what it must give.

    headers_test.py HEADERS PKG_CONFIG_PATH C_COMPILER CXX_COMPILER

Programs of the time count on what the headers of the original include. Each is compiled as C99, as
C++98 and as C++20, there also in extern "C". A header that the table does not have is a failure.
"""

import os
import subprocess
import sys
from pathlib import Path

INTEGERS = "uint64_t word = UINT64_MAX; int32_t small = INT32_MIN; (void)word; (void)small;"
TYPES = INTEGERS + "wchar_t wide = L'x'; HSTR_RESULT result = HSTR_RESULT_SUCCESS; (void)wide; (void)result;"
COMMON = TYPES + "size_t bytes = HSTR_ARGS_SUPPORTED; (void)bytes;"
VERSION = 'const char* version = HSTR_VERSION_STRING; (void)version;'
CLIBRARY = """char text[8]; bool done = true; FILE* file = stdout; char* memory = (char*)malloc(8);
  memset(text, 0, sizeof text); assert(done); snprintf(text, sizeof text, "%d", sched_yield());
  fputs(text, file); free(memory); (void)wcslen(L"x");"""
SOURCE = COMMON + VERSION + CLIBRARY
SERVICE = """void* memory = mkl_calloc(2, 8, 64); mkl_free(memory); memory = mkl_malloc(8, 64);
  memset(memory, 0, 8); mkl_free(memory); mkl_set_dynamic(0); mkl_set_num_threads(1);
  MKL_Set_Num_Threads(mkl_get_max_threads()); mkl_mic_enable(); exit(mkl_mic_disable());"""
MKL = """MKL_INT n = 1; double x[1] = {1}; MKL_Complex16 z = {1, 2};
  void* aligned = _mm_malloc(64, 64); _mm_free(aligned); x[0] = cblas_ddot(n, x, 1, x, 1) + z.real;
  (void)LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, x, n);"""
SINK = COMMON + "f(0, NULL);"
MARKED = "HSTREAMS_EXPORT void f(uint64_t n, double* x) { (void)n; (void)x; }\n"
COI_TYPES = INTEGERS + "COI_CPU_MASK mask; mask[15] = 0; (void)mask;"
COI = COI_TYPES + """char text[8]; memset(text, 0, sizeof text); sched_yield();
  UNREFERENCED_PARAM(word); UNREFERENCED_CONST_PARAM(small); f(0, (double*)0);"""
COI_MARKED = """COINATIVELIBEXPORT void f(uint64_t n, double* x) { (void)n; (void)x; }
static int spare UNUSED_ATTR;\n"""

# Header: (what stands before main(), what is in it)
MUST_GIVE = {
    "hStreams_version.h": ("", VERSION),
    "hStreams_types.h": ("", TYPES),
    "hStreams_common.h": ("", COMMON),
    "hStreams_sink.h": (MARKED, SINK),
    "hStreams_app_api_sink.h": (MARKED, SINK + "hStreams_null_func_1heap_arg(0);"),
    "hStreams_source.h": ("", SOURCE),
    "hStreams_app_api.h": ("", SOURCE + "{" + MKL + "}" + "{" + SERVICE + "}"),
    "mkl.h": ("", MKL + "{" + SERVICE + "}"),
    "mkl_service.h": ("", SERVICE),
}
for folder in ("", "intel-coi/"):
    MUST_GIVE[f"{folder}common/COITypes_common.h"] = ("", COI_TYPES)
    MUST_GIVE[f"{folder}common/COIMacros_common.h"] = (COI_MARKED, COI)
    MUST_GIVE[f"{folder}sink/COIPipeline_sink.h"] = (COI_MARKED, COI)

STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-fsyntax-only"]


def compile_file(header, before, body, command, include):
    text = f"{include(header)}\n{before}int main(void) {{\n  {body}\n  return 0;\n}}\n"
    done = subprocess.run([*command, *STRICT, "-"], input=text, text=True, capture_output=True)
    if done.returncode == 0:
        return True
    print(f"{header}, by {' '.join(command)}:\n{done.stderr}")
    return False


def main(headers, pkg_config_path, cc, cxx):
    headers = Path(headers)
    found = {str(path.relative_to(headers)) for path in headers.rglob("*.h")}
    if found != set(MUST_GIVE):
        sys.exit(f"in the table or in {headers}, not in both: {sorted(found ^ set(MUST_GIVE))}")
    told = subprocess.run(["pkg-config", "--cflags", "hstreams"], text=True, check=True,
                          stdout=subprocess.PIPE,
                          env={**os.environ, "PKG_CONFIG_PATH": pkg_config_path}).stdout.split()
    languages = (([cc, "-x", "c", "-std=gnu99"], "#include <{}>".format),
                 ([cxx, "-x", "c++", "-std=gnu++98"], "#include <{}>".format),
                 ([cxx, "-x", "c++", "-std=c++20"], "#include <{}>".format),
                 ([cxx, "-x", "c++", "-std=c++20"], 'extern "C" {{\n#include <{}>\n}}'.format))
    good = [compile_file(header, before, body, [*language, *told], include)
            for header, (before, body) in sorted(MUST_GIVE.items())
            for language, include in languages]
    print(f"{sum(good)} of {len(good)} files compile")
    return 0 if all(good) else 1


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
