"""Protozero, which Spack's own packages lack."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Protozero(CMakePackage):
    """Headers that read and write protocol buffers."""

    homepage = "https://github.com/mapbox/protozero"
    git = "https://github.com/mapbox/protozero.git"

    license("BSD-2-Clause")

    version("1.8.1", tag="v1.8.1", commit="89a55ad2962cca3adbe8383a4b6d9a8411352ef2")
    version("1.7.1", tag="v1.7.1", commit="f379578a3f7c8162aac0ac31c2696de09a5b5f93")

    depends_on("cxx", type="build")
    depends_on("cmake@3.10:", type="build")

    def cmake_args(self):
        return [self.define("BUILD_TESTING", False), self.define("WERROR", False)]
