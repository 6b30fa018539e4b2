"""weir for Spack, from a checkout: packaging/README.md has the commands.

scripts/check_packaging.py compares versions, options and dependencies with those of the build.
"""

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.python import PythonExtension

from spack.package import *

# The sources are those of the checkout that has this file.
CHECKOUT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))


class Weir(CMakePackage, PythonExtension):
    """A streaming runtime for host cores, OpenCL devices, GPUs and other ranks: programs put
    kernels, transfers and syncs into streams, and weir runs them out of order."""

    homepage = "file://" + CHECKOUT
    git = homepage

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("tools", default=True, description="Build the command weir and its applications")
    variant("mpi", default=False, description="Build the module for ranks that mpirun starts")
    variant("opencl", default=False, description="Depend on an OpenCL loader, opened at run time")
    variant("cuda", default=False, description="Build the CUDA backend")
    variant("fortran", default=False, description="Build the Fortran module")
    variant("python", default=False, description="Build the Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("hwloc@2:")
    depends_on("fmt")
    depends_on("spdlog")
    depends_on("protozero", type="build")
    depends_on("opencl-c-headers", type="build")
    depends_on("openblas")  # opened at run time; its headers also build the hStreams layer
    depends_on("nlohmann-json", type="build")
    depends_on("cli11", type="build", when="+tools")
    depends_on("libpng", when="+tools")
    depends_on("libjpeg-turbo", when="+tools")
    depends_on("zlib-api", when="+tools")

    depends_on("mpi", when="+mpi")
    requires(
        "^[virtuals=mpi] openmpi",
        "^[virtuals=mpi] mpich",
        policy="one_of",
        when="+mpi",
        msg="weir has modules for Open MPI and MPICH",
    )
    depends_on("ucx", when="+mpi")
    depends_on("opencl", when="+opencl")
    depends_on("cuda@12:", type="build", when="+cuda")

    extends("python@3.10:", when="+python")
    depends_on("py-nanobind@2.4:", type="build", when="+python")
    depends_on("py-numpy@1.22:", type=("build", "run"), when="+python")

    conflicts("%gcc@:11", msg="weir is C++20: GCC 12 or later")
    conflicts("%clang@:13", msg="weir is C++20: Clang 14 or later")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    def cmake_args(self):
        spec = self.spec
        args = [
            self.define("CMAKE_UNITY_BUILD", True),
            self.define("WEIR_BUILD_TESTS", False),
            self.define("WEIR_BUILD_EXAMPLES", False),
            self.define_from_variant("WEIR_BUILD_TOOLS", "tools"),
            self.define_from_variant("WEIR_BUILD_MPI", "mpi"),
            self.define_from_variant("WEIR_BUILD_FORTRAN", "fortran"),
            self.define_from_variant("WEIR_BUILD_PYTHON", "python"),
            # Headers of the system that Spack does not know would be found without these.
            self.define("WEIR_OPENCL_HEADERS", spec["opencl-c-headers"].prefix.include),
            self.define("WEIR_CBLAS_HEADERS", spec["openblas"].prefix.include),
            self.define(
                "WEIR_CUDA_HEADERS",
                spec["cuda"].prefix.include if spec.satisfies("+cuda") else "OFF",
            ),
        ]
        if spec.satisfies("+python"):
            args.append(self.define("Python_EXECUTABLE", spec["python"].command.path))
            args.append(self.define("WEIR_PYTHON_DIR", join_path(python_platlib, "weir")))
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def verify_installed(self):
        if self.spec.satisfies("+tools"):
            Executable(self.prefix.bin.weir)("run", "cholesky", "--n", "512", "--verify")
