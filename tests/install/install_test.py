#!/usr/bin/python3
"""Installs weir into a temporary folder and builds and runs programs with what is there.

    install_test.py SOURCE_DIR BUILD_DIR CMAKE C_COMPILER CXX_COMPILER [SANITIZERS]

The installed tree is moved before it is used, so a path that was compiled in shows.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTED = "vector[999] = 1998\n"


class Failure(Exception):
    pass


def run(*command, **environment):
    """Runs a command and returns its output."""
    environment = {**os.environ, **environment}
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run([str(part) for part in command], env=environment, text=True,
                          capture_output=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n"
                      f"{done.stdout}{done.stderr}")
    return done.stdout


def expect_output(program, expected=EXPECTED):
    output = run(program)
    if output != expected:
        raise Failure(f"{program} printed {output!r} instead of {expected!r}")


def only(root, pattern):
    found = sorted(root.rglob(pattern))
    if len(found) != 1:
        raise Failure(f"{root} holds {len(found)} files {pattern}, one is wanted")
    return found[0]


class InstallTest:
    def __init__(self, source, build, cmake, cc, cxx, sanitizers, scratch):
        self.source, self.build = Path(source), Path(build)
        self.cmake, self.cc, self.cxx = cmake, cc, cxx
        self.flags = f"-fsanitize={sanitizers}" if sanitizers else ""
        self.scratch = scratch
        self.count = 0

    def fresh(self):
        self.count += 1
        return self.scratch / f"consumer{self.count}"

    def configure(self, project, *settings):
        folder = self.fresh()
        run(self.cmake, "-S", HERE / project, "-B", folder, "-G", "Ninja",
            f"-DCMAKE_C_COMPILER={self.cc}", f"-DCMAKE_CXX_COMPILER={self.cxx}",
            f"-DCMAKE_C_FLAGS={self.flags}", f"-DCMAKE_CXX_FLAGS={self.flags}",
            "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", *settings)
        return folder

    def check_cmake(self, project, *settings):
        folder = self.configure(project, *settings)
        run(self.cmake, "--build", folder)
        expect_output(folder / "consumer")

    def check_portable(self, root):
        """Builds the example whose kernels become texts of the program."""
        example = self.source / "examples/portable"
        folder = self.configure(example, f"-DCMAKE_PREFIX_PATH={root}")
        run(self.cmake, "--build", folder)
        output = run(folder / "portable")
        if output != (example / "expected.txt").read_text():
            raise Failure(f"{folder / 'portable'} printed {output!r}")

    def check_pkg_config(self, root, compiler, program, *options, package="weir", output=EXPECTED):
        pc = only(root, f"{package}.pc")
        told = run("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=str(pc.parent)).split()
        binary = self.fresh()
        run(compiler, *self.flags.split(), *options, HERE / program, "-o", binary, *told)
        expect_output(binary, output)

    def check_hstreams(self, root):
        if not any(root.rglob("hstreams.pc")):
            print("install: the hStreams layer is not built, so not tested")
            return
        hello = self.source / "tests/hstreams/hello_client.c"
        self.check_pkg_config(root, self.cc, hello, package="hstreams",
                              output="hello 42 from the sink\n")
        for name, compiler, variable in (("icc", self.cc, "HSTREAMS_CC"),
                                         ("icpc", self.cxx, "HSTREAMS_CXX")):
            binary = self.fresh()
            run(only(root, f"hstreams-{name}"), *self.flags.split(), "-mkl", "-openmp", "-lcoi_host",
                hello, "-o", binary, **{variable: str(compiler)})
            expect_output(binary, "hello 42 from the sink\n")

    def check_fortran(self, root):
        if not any(root.rglob("weir-fortran.pc")):
            print("install: the Fortran module is not built, so not tested")
            return
        self.check_pkg_config(root, "gfortran", "consumer.f90", package="weir-fortran")
        self.check_cmake("fortran", f"-DCMAKE_PREFIX_PATH={root}")

    def check_tree(self, root):
        """Checks the files of an installed tree."""
        for path in ("include/weir/weir.h", "include/weir/weir.hpp",
                     "include/weir/portable.h", "include/hiway/hiway.hpp", "share/doc/weir/LICENSE"):
            if not (root / path).is_file():
                raise Failure(f"{root / path} is not installed")
        for path in root.rglob("*"):
            if path.suffix in (".cmake", ".pc"):
                text = path.read_text()
                for place in (self.source, self.build, self.scratch):
                    if str(place) in text:
                        raise Failure(f"{path} names {place}: the tree cannot be moved")

    def check_cli(self, root):
        if not (self.build / "bin/weir").exists():
            print("install: the command line tool is not built, so not tested")
            return
        run(root / "bin/weir", "info", "--json")

    def check_prefix(self, root):
        self.check_tree(root)
        self.check_cmake("c", f"-DCMAKE_PREFIX_PATH={root}")
        self.check_cmake("cpp", f"-DCMAKE_PREFIX_PATH={root}")
        self.check_portable(root)
        self.check_pkg_config(root, self.cc, "consumer.c", "-std=c99")
        self.check_pkg_config(root, self.cxx, "consumer.cpp", "-std=c++20")
        self.check_hstreams(root)
        self.check_fortran(root)
        self.check_cli(root)

    def installed_and_moved(self):
        first, moved = self.scratch / "first", self.scratch / "moved"
        run(self.cmake, "--install", self.build, "--prefix", first)
        shutil.move(first, moved)
        self.check_prefix(moved)

    def staged(self):
        stage = self.scratch / "stage"
        run(self.cmake, "--install", self.build, "--prefix", "/opt/weir", DESTDIR=str(stage))
        self.check_prefix(stage / "opt/weir")

    def build_tree(self):
        self.check_cmake("c", f"-Dweir_DIR={self.build}")

    def subproject(self):
        """Configures only: building would compile the library once more."""
        self.configure("subproject", f"-DWEIR_SOURCE_DIR={self.source}")


def main(source, build, cmake, cc, cxx, sanitizers=""):
    with tempfile.TemporaryDirectory(prefix="weir-install-") as scratch:
        test = InstallTest(source, build, cmake, cc, cxx, sanitizers, Path(scratch))
        failed = 0
        for case in (test.installed_and_moved, test.staged, test.build_tree, test.subproject):
            try:
                case()
                print(f"install: {case.__name__}: ok")
            except Failure as failure:
                print(f"install: {case.__name__}: FAILED\n{failure}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (6, 7):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
