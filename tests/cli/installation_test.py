"""weir doctor: what it says of an installation whose parts do not belong together."""

import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from tool import TOOL, weir

LIBRARY = "libweir.so.0"
LIBRARIES = Path(TOOL).resolve().parent.parent / "lib"
OTHER = "0.0.9"


def checks(result):
    """The checks by name; of several with one name the last."""
    found = json.loads(result.stdout)["checks"]
    for check in found:
        assert check["level"] == "ok" or check["fix"], f"{check} does not say what to do"
    return {check["check"]: check for check in found}


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.version = json.loads(weir("info", "--json", "--domains", "null").stdout)["version"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-doctor-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.folder = Path(folder.name).resolve()

    def doctor(self, *arguments, **variables):
        if "PATH" in variables:  # PoCL ends the process where it has to link a kernel and finds no ld
            variables.setdefault("OCL_ICD_VENDORS", "/nowhere")
        return checks(weir("doctor", "--json", *arguments, **variables))

    def check_warning(self, check, *words, fix):
        self.assertEqual(check["level"], "warning", check)
        for word in words:
            self.assertIn(str(word), check["found"])
        self.assertIn(fix, check["fix"])

    def file(self, path, text, mode=0o644):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def program(self, name, text):
        return self.file(f"bin/{name}", f"#!/bin/sh\n{text}\n", 0o755)

    def library(self, folder, version=None):
        """A copy of the library, which gives itself another version."""
        if not (LIBRARIES / LIBRARY).exists():
            self.skipTest(f"there is no {LIBRARIES / LIBRARY}")
        path = self.folder / folder / LIBRARY
        path.parent.mkdir(parents=True, exist_ok=True)
        binary = (LIBRARIES / LIBRARY).read_bytes()
        own, other = (f"\0{each}\0".encode() for each in (self.version, version or self.version))
        self.assertIn(own, binary)
        self.assertEqual(len(own), len(other))
        path.write_bytes(binary.replace(own, other))
        return path

    def prefix(self):
        """A tree with the tool, the library and the files for pkg-config and CMake."""
        library = self.library("own/lib")
        (self.folder / "own/bin").mkdir()
        tool = shutil.copy(TOOL, self.folder / "own/bin/weir")
        self.description("own/lib", self.version)
        return {"tool": tool, "LD_LIBRARY_PATH": str(library.parent)}

    def description(self, libraries, version):
        """What pkg-config and CMake find in a tree."""
        self.file(f"{libraries}/pkgconfig/weir.pc", f"Name: weir\nDescription: weir\nVersion: {version}\n")
        cmake = self.file(f"{libraries}/cmake/weir/weir-config-version.cmake", f'set(PACKAGE_VERSION "{version}")\n')
        self.file(cmake.parent / "weir-config.cmake", "\n")

    # The loader.

    def test_the_tool_loads_the_library_beside_it(self):
        found = self.doctor()["loader"]
        self.assertEqual(found["level"], "ok", found)
        self.assertIn("libweir.so.", found["found"])

    def test_a_library_of_another_version_is_a_warning_and_named(self):
        other = self.library("other", OTHER)
        found = self.doctor(LD_LIBRARY_PATH=str(other.parent))
        self.check_warning(found["library"], OTHER, self.version, fix="LD_LIBRARY_PATH")
        self.check_warning(found["loader"], f"loads {other}, not ", LIBRARIES,
                           fix=f"unset LD_LIBRARY_PATH, or begin it with {LIBRARIES}")

    def test_a_library_of_this_version_elsewhere_is_a_warning(self):
        other = self.library("other")
        self.check_warning(self.doctor(LD_LIBRARY_PATH=str(other.parent))["loader"], f"loads {other}", fix="unset")

    def test_libraries_of_other_versions_on_the_search_path_are_named(self):
        other, same = self.library("other", OTHER), self.library("same")
        broken = self.file(f"broken/{LIBRARY}", "this is not a library")
        path = ":".join(str(part) for part in (LIBRARIES, other.parent, same.parent, broken.parent))
        found = self.doctor(LD_LIBRARY_PATH=path)
        self.assertEqual(found["loader"]["level"], "ok", found["loader"])
        self.check_warning(found["other libweir"], f"{other} (version {OTHER})", f"{broken} (cannot be opened",
                           fix=f"take {other.parent}, {broken.parent} out of LD_LIBRARY_PATH")
        self.assertNotIn(str(same), found["other libweir"]["found"])

    # pkg-config and CMake.

    def test_cmake_and_pkg_config_files_of_another_version_are_warnings(self):
        self.description("other/lib", OTHER)
        found = self.doctor(CMAKE_PREFIX_PATH=f"{self.folder}/other")["CMake"]
        self.check_warning(found, f"finds {OTHER} in {self.folder}/other/lib/cmake/weir", self.version,
                           fix="libweir-dev")
        if shutil.which("pkg-config") is None:
            self.skipTest("pkg-config is not installed")
        found = self.doctor(PKG_CONFIG_PATH=f"{self.folder}/other/lib/pkgconfig")["pkg-config"]
        self.check_warning(found, f"finds {OTHER} in {self.folder}/other/lib/pkgconfig", self.version,
                           fix="libweir-dev")

    def test_both_versions_are_named_when_another_one_is_found_first(self):
        own = self.prefix()
        self.description("other/lib", OTHER)
        found = self.doctor(**own, CMAKE_PREFIX_PATH=f"{self.folder}/other:{self.folder}/own")["CMake"]
        self.check_warning(found, f"finds {OTHER} in {self.folder}/other", f"before {self.version} in {self.folder}/own",
                           fix=f"export CMAKE_PREFIX_PATH={self.folder}/own:")
        if shutil.which("pkg-config") is None:
            self.skipTest("pkg-config is not installed")
        folders = [f"{self.folder}/{tree}/lib/pkgconfig" for tree in ("other", "own")]
        found = self.doctor(**own, PKG_CONFIG_PATH=":".join(folders))["pkg-config"]
        self.check_warning(found, f"finds {OTHER} in {folders[0]}", f"before {self.version} in {folders[1]}",
                           fix=f"export PKG_CONFIG_PATH={folders[1]}:")
        found = self.doctor(**own, PKG_CONFIG_PATH=folders[1])["pkg-config"]
        self.assertEqual((found["level"], found["found"]), ("ok", f"finds {self.version} in {folders[1]}"))

    def test_a_cmake_file_outside_the_search_path_has_the_variable_as_its_fix(self):
        own = self.prefix()
        found = self.doctor(**own, PATH=f"{self.folder}/bin")
        self.assertEqual((found["pkg-config"]["level"], found["pkg-config"]["fix"].split(",")[0]),
                         ("ok", "apt install pkg-config"))
        if Path("/usr/local/lib/cmake/weir").exists() or Path("/usr/lib/cmake/weir").exists():
            self.skipTest("weir is installed on this system")
        self.assertEqual((found["CMake"]["level"], found["CMake"]["fix"]),
                         ("ok", f"cmake -DCMAKE_PREFIX_PATH={self.folder}/own"))

    # MPI.

    def test_an_unknown_mpi_is_a_warning(self):
        self.program("mpirun", "echo; echo Quux MPI 1.2")
        found = self.doctor(PATH=f"{self.folder}/bin")["mpirun"]
        self.check_warning(found, f"{self.folder}/bin/mpirun belongs to an MPI that weir does not know: "
                                  "'Quux MPI 1.2'",
                           fix="weir run --ranks N")

    def test_an_mpirun_that_fails_to_start_is_a_warning(self):
        self.file("bin/mpiexec", "\0not a program", 0o755)
        self.check_warning(self.doctor(PATH=f"{self.folder}/bin")["mpiexec"], "cannot be started",
                           fix="weir run --ranks N")

    def test_without_mpirun_the_fix_is_weir_run_with_ranks(self):
        found = self.doctor(PATH=str(self.folder))["mpirun"]
        self.assertEqual((found["level"], found["fix"]), ("ok", "weir run --ranks N"))

    def mpis(self):
        description = json.loads(weir("info", "--json").stdout)["mpi"]
        return {mpi["name"]: mpi["library"] for mpi in description}

    def test_another_version_of_mpi_than_the_one_that_weir_opens_is_a_warning(self):
        for name, said in (("Open MPI", "mpirun (Open MPI) 1.99.7"), ("MPICH", "HYDRA build details:\n Version: 1.99.7")):
            self.program("mpirun", f"cat <<end\n{said}\nend")
            with self.subTest(mpi=name):
                found = self.doctor(PATH=f"{self.folder}/bin:/usr/bin:/bin")["mpirun"]
                if not self.mpis()[name]:
                    self.check_warning(found, f"belongs to {name} 1.99.7, and weir has no library", fix="apt install")
                else:
                    self.check_warning(found, f"belongs to {name} 1.99.7, but weir opens {name} ", fix="LD_LIBRARY_PATH")

    def test_an_mpi_with_the_standard_abi_is_opened_by_it(self):
        launcher = Path(TOOL).resolve().parents[2] / "venv/bin/mpiexec"
        if not json.loads(weir("info", "--json").stdout)["standard_mpi"]["library"] or not launcher.exists():
            self.skipTest("no MPI from PyPI, or weir was built without mpi_abi.h")
        found = self.doctor(PATH=f"{launcher.parent}:/usr/bin:/bin")["mpirun"]
        self.assertEqual(found["level"], "ok", found)
        self.assertIn("belongs to MPI 5.", found["found"])
        self.assertIn("opens by the standard ABI of MPI", found["found"])
        self.program("mpirun", "echo 'HYDRA build details: Version: 1.99.7'")
        self.file("lib/libmpi_abi.so.1", "this is not a library" * 10)
        self.check_warning(self.doctor(PATH=f"{self.folder}/bin:/usr/bin:/bin")["mpirun"], "cannot be opened",
                           fix="install that MPI again")

    def test_an_mpi_library_that_cannot_be_opened_is_named_with_the_loaders_words(self):
        library = self.library("lib")
        broken = self.file("lib/libweir_openmpi.so", "this is not a library" * 10)
        for name in ("mpirun", "mpirun.openmpi"):
            self.program(name, "echo 'mpirun (Open MPI) 4.1.4'")
        result = weir("doctor", "--json", PATH=f"{self.folder}/bin:/usr/bin:/bin", LD_LIBRARY_PATH=str(library.parent))
        found = [check for check in json.loads(result.stdout)["checks"] if check["check"] in ("mpi", "mpirun")]
        for check in (found[0], found[2]):
            self.check_warning(check, f"{broken} cannot be opened: ", "invalid ELF header", fix="apt install")
        self.assertEqual(result.returncode, 0)

    # BLAS.

    def test_without_blas_the_doctor_says_what_to_install(self):
        found = self.doctor(WEIR_BLAS="plain")["BLAS"]
        self.check_warning(found, "plain loops", fix="apt install libopenblas0-pthread")
        self.assertIn("pip install scipy-openblas32", found["fix"])

    # Permissions.

    def test_a_file_in_place_of_the_cache_is_a_warning(self):
        file = self.file("cache", "")
        self.check_warning(self.doctor(XDG_CACHE_HOME=str(file))["cache"], f"{file}: it is not a folder",
                           fix="XDG_CACHE_HOME")
        found = self.doctor(XDG_CACHE_HOME=str(self.folder / "new"))["cache"]
        self.assertEqual(found["level"], "ok", found)

    def test_without_a_home_folder_the_cache_is_a_warning(self):
        self.check_warning(self.doctor(XDG_CACHE_HOME="", HOME="")["cache"], "neither", fix="XDG_CACHE_HOME")

    def test_files_and_folders_without_permission_are_named_in_warnings(self):
        user = None
        if os.getuid() == 0:
            user = 65534
            if any(not parent.stat().st_mode & 1 for parent in Path(TOOL).resolve().parents):
                self.skipTest("another user cannot reach the tool")
        vendors = self.file("vendors/gpu.icd", "libgpu.so\n", 0o000)
        home = self.folder / "home"
        home.mkdir(mode=0o555)
        result = weir("doctor", "--json", user=user, OCL_ICD_VENDORS=str(vendors.parent), HOME=str(home),
                      XDG_CACHE_HOME="")
        found = checks(result)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.check_warning(found["cache"], f"not kept in {home}/.cache/weir: {home}: Permission denied",
                           fix="XDG_CACHE_HOME")
        self.check_warning(found["OpenCL drivers"], f"{vendors}: Permission denied", fix=f"chmod a+r {vendors}")

    # Python.

    def python_with(self, text):
        self.file("python/weir/__init__.py", text)
        self.program("python3", f'exec {sys.executable} "$@"')
        return self.doctor(PATH=f"{self.folder}/bin:/usr/bin:/bin", PYTHONPATH=f"{self.folder}/python")["Python"]

    def test_a_package_of_another_version_is_a_warning(self):
        self.check_warning(self.python_with(f"print('noise')\n__version__ = '{OTHER}'\n"),
                           f"version {OTHER} in {self.folder}/python/weir", self.version,
                           fix=f"weir-runtime=={self.version}")

    def test_a_package_that_cannot_be_imported_is_named_with_its_error(self):
        self.check_warning(self.python_with("raise ImportError('libstdc++ is missing:\\n apt install it')"),
                           "cannot import weir: libstdc++ is missing: apt install it", fix="weir-runtime")

    def test_a_package_without_numpy_asks_for_numpy(self):
        self.check_warning(self.python_with("raise ImportError(\"No module named 'numpy'\")"),
                           "cannot import weir: No module named 'numpy'", fix="pip install numpy")

    def test_a_python_that_crashes_is_a_warning(self):
        self.check_warning(self.python_with("import os\nos.abort()"), "was ended by signal 6", fix="import weir")

    def test_a_package_of_this_version_is_fine(self):
        found = self.python_with(f"__version__ = '{self.version}'\n")
        self.assertEqual(found["level"], "ok", found)

    def test_a_folder_named_weir_is_not_taken_for_the_package(self):
        self.program("python3", f'exec {sys.executable} -S "$@"')
        (self.folder / "weir").mkdir()
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            found = self.doctor(PATH=f"{self.folder}/bin", PYTHONPATH="")["Python"]
        finally:
            os.chdir(before)
        self.assertEqual((found["level"], found["found"]), ("ok", f"{self.folder}/bin/python3 has no package weir"))

    def test_weir_is_usable_when_no_program_is_on_the_search_path(self):
        result = weir("doctor", "--json", PATH="/nonexistent")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(checks(result)["Python"]["found"], "there is no python3")


if __name__ == "__main__":
    unittest.main()
