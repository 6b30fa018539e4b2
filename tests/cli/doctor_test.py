"""weir doctor: what it checks, how it says what is wrong, and its exit status."""

import json
import os
import shutil
import tempfile
import unittest

from tool import TOOL, weir

UNAVAILABLE = 4


def checks(result):
    return {check["check"]: check for check in json.loads(result.stdout)["checks"]}


class Doctor(unittest.TestCase):
    def test_a_machine_that_runs_the_tests_is_usable(self):
        result = weir("doctor", "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        report = json.loads(result.stdout)
        self.assertEqual(report["schema"], "weir.doctor/1")
        self.assertTrue(report["usable"])
        found = checks(result)
        for name in ("runtime", "cores", "BLAS", "LAPACK", "domain host", "backend sim", "trace"):
            self.assertIn(name, found)
            self.assertNotEqual(found[name]["level"], "problem", found[name])
        self.assertIn("GFLOP/s", found["BLAS"]["found"])
        self.assertIn("verified", found["domain host"]["found"])

    def test_the_text_page_says_that_weir_is_usable(self):
        result = weir("doctor")
        self.assertEqual(result.returncode, 0)
        self.assertIn("weir is usable here", result.stdout)

    def test_every_domain_that_is_asked_for_is_verified(self):
        for domains, names in (
            ("host:cores=1,sim:gbps=100", ("domain host", "domain sim:0")),
            ("sim:clock=virtual", ("domain sim:0", "backend host")),
        ):
            found = checks(weir("doctor", "--json", "--domains", domains))
            for name in names:
                self.assertIn("verified", found[name]["found"])

    def test_unknown_variables_are_warnings_with_a_fix(self):
        result = weir("doctor", "--json", WEIR_BLSA="x")
        self.assertEqual(result.returncode, 0)
        found = checks(result)["environment"]
        self.assertEqual(found["level"], "warning")
        self.assertIn("did you mean 'WEIR_BLAS'", found["found"])
        self.assertEqual(found["fix"], "unset WEIR_BLSA")

    def test_a_runtime_that_does_not_open_is_a_problem(self):
        result = weir("doctor", "--json", "--domains", "cuda")
        self.assertEqual(result.returncode, UNAVAILABLE)
        self.assertFalse(json.loads(result.stdout)["usable"])
        self.assertEqual(checks(result)["runtime"]["level"], "problem")

    def test_a_domain_name_that_is_not_text_is_a_problem_in_valid_json(self):
        result = weir("doctor", "--json", "--domains", "no\udcff")
        self.assertEqual(result.returncode, UNAVAILABLE, result.stderr)
        self.assertEqual(checks(result)["runtime"]["level"], "problem")

    def test_a_missing_blas_is_a_problem_whose_fix_names_the_package(self):
        result = weir("doctor", "--json", "--blas", "./no_such_blas.so")
        self.assertEqual(result.returncode, UNAVAILABLE, result.stdout)
        found = checks(result)["BLAS"]
        self.assertEqual(found["level"], "problem")
        self.assertIn("apt install libopenblas0-pthread", found["fix"])

    def test_kernels_that_the_user_chose_for_openblas_are_a_finding_and_no_warning_elsewhere(self):
        chosen = dict(OPENBLAS_CORETYPE="Prescott")  # what every processor of 64 bits can run
        found = checks(weir("doctor", "--json", **chosen))["BLAS"]
        if "unset OPENBLAS_CORETYPE" not in found["found"]:
            self.skipTest(f"Prescott is not older than what is used here: {found['found']}")
        self.assertIn("which is 'Prescott'", found["found"])
        self.assertEqual(found["level"], "warning")
        ran = weir("run", "cholesky", "--n", "64", "--domains", "host:cores=1", "--verify", **chosen)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_a_missing_mpi_or_ucx_is_reported_with_the_packages_to_install(self):
        library = os.path.join(os.path.dirname(TOOL), "..", "lib", "libweir.so.0")
        if not os.path.exists(library):
            self.skipTest(f"there is no {library}")
        with tempfile.TemporaryDirectory() as above:  # with none of weir's libraries for MPI
            folder = f"{above}/lib"
            os.mkdir(folder)
            shutil.copy(library, folder)
            with open(f"{folder}/mpirun.mpich", "w", opener=lambda *f: os.open(*f, 0o755)) as file:
                file.write("#!/bin/sh\n")
            found = weir("doctor", "--json", PATH=folder, LD_LIBRARY_PATH=folder, OCL_ICD_VENDORS="/nowhere")
        self.assertEqual(found.returncode, 0, found.stderr)
        open_mpi, mpich = (check for check in json.loads(found.stdout)["checks"]
                           if check["check"] == "mpi")
        self.assertEqual((open_mpi["level"], open_mpi["found"]), ("ok", "Open MPI is not installed"))
        self.assertIn("apt install libopenmpi-dev openmpi-bin, and build", open_mpi["fix"])
        self.assertEqual(mpich["level"], "warning")
        self.assertIn("apt install libmpich-dev mpich, and build", mpich["fix"])
        ucx = checks(found)["ucx"]
        self.assertEqual(ucx["level"], "ok")
        self.assertIn("built without UCX: MPI carries packets", ucx["found"])
        self.assertIn("apt install libucx-dev, and build", ucx["fix"])

    def test_ucx_is_named_with_its_version(self):
        found = checks(weir("doctor", "--json"))["ucx"]
        if "built without UCX" in found["found"]:
            self.skipTest(found["found"])
        self.assertRegex(found["found"], r"^UCX \d+\.\d+\.\d+ carries packets between nodes$")

    def test_a_trace_that_cannot_be_written_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = f"{folder}/missing/trace.json"
            found = checks(weir("doctor", "--json", WEIR_TRACE=missing))["trace"]
        self.assertEqual(found["level"], "warning")
        self.assertIn("missing", found["found"])

    def test_without_a_temporary_folder_the_trace_is_a_warning_beside_other_checks(self):
        with tempfile.NamedTemporaryFile() as file:  # below a file even root and drivers make no folder
            found = checks(weir("doctor", "--json", TMPDIR=f"{file.name}/folder"))
        self.assertEqual(found["trace"]["level"], "warning")
        self.assertIn("runtime", found)


if __name__ == "__main__":
    unittest.main()
