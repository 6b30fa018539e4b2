"""scripts/gpu_run.sh on the driver for tests, in a folder like that of scripts/gpu_bundle.sh."""

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import weir_cli

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "gpu_run.sh"
APPS = [f"{app}-{precision}-{domains}.json" for app in ("matmul", "cholesky")
        for precision in ("double", "float") for domains in ("cuda_0", "host_cuda_0")]


class GpuRunTest(weir_cli.CliTest):
    def setUp(self):
        super().setUp()
        driver, cublas = weir_cli.program(1), weir_cli.program(2)
        self.environment = {"WEIR_CUDA_DRIVER": driver, "WEIR_NVRTC": driver,
                            "WEIR_CUBLAS": cublas, "WEIR_CUSOLVER": cublas}
        for folder in ("bin", "source/bench"):
            os.makedirs(self.path(folder))
        self.script("bin/weir", "echo '{}'")
        self.script("bin/unit_kernels", "exit 1")
        self.script("source/bench/run", 'echo "rows: $*"')
        self.write("commit", "abc\n")
        shutil.copy(SCRIPT, self.path("run.sh"))

    def script(self, name, line):
        os.chmod(self.write(name, f"#!/bin/sh\n{line}\n"), 0o755)

    def install(self, name, program):
        """Puts a program of the build in place of a script."""
        shutil.copy(weir_cli.program(program), self.path("install"))
        os.replace(self.path("install"), self.path(name))

    def run_script(self, *arguments, code, **variables):
        """Runs run.sh; returns what it prints."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("WEIR_", "RUN_"))}
        done = subprocess.run(["./run.sh", *arguments], cwd=self.folder, timeout=300 * weir_cli.SLOWDOWN, check=False,
                              capture_output=True, text=True,
                              env={**environment, **self.environment, **variables})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def results(self):
        with tarfile.open(self.path("results.tar.gz")) as packed:
            return {os.path.basename(name) for name in packed.getnames()}

    def test_other_steps_run_after_a_step_that_fails(self):
        self.install("bin/weir", 0)
        self.install("bin/conformance", 3)
        said = self.run_script("0", "96", "none", code=1)
        self.assertIn("passed: conformance\nFAILED: kernels (results/kernels.log)\n", said)
        self.assertIn("run: failed: kernels\n", said)
        for name in APPS:
            report = json.loads(Path(self.path("results"), name).read_text(encoding="utf-8"))
            self.assertIs(report["verified"], True)
        machine = json.loads(Path(self.path("results/machine.json")).read_text(encoding="utf-8"))
        self.assertEqual((machine["commit"], machine["domain"]), ("abc", "cuda:0"))
        self.assertNotEqual(machine["device"], "")
        self.assertLessEqual({*APPS, "machine.json", "info.json", "conformance.json"},
                             self.results())

    def test_messages_of_a_run_are_in_its_log_and_not_in_its_report(self):
        self.script("bin/weir", "echo 'weir: running' >&2; echo '{}'")
        self.run_script("0", "96", "none", code=0, RUN_STEPS="apps")
        for name in APPS:
            report = Path(self.path("results"), name)
            self.assertEqual(report.read_text(encoding="utf-8"), "{}\n")
            self.assertEqual(report.with_suffix(".log").read_text(encoding="utf-8"),
                             "weir: running\n")

    def test_run_steps_and_run_rows_choose_the_steps_and_rows(self):
        said = self.run_script("0", "96", "quick", code=0, RUN_STEPS="bench", RUN_ROWS="a b")
        self.assertEqual(said, "passed: bench\n")
        self.assertEqual(Path(self.path("results/bench.log")).read_text(encoding="utf-8"),
                         "rows: cuda --build . --save results --quick --only a b --rounds 3\n")
        self.assertIn("RUN_STEPS has words of", self.run_script(code=2, RUN_STEPS="all"))

    def test_steps_without_time_left_are_reported_as_failed(self):
        said = self.run_script("0", "96", "none", code=1, RUN_STEPS="tests", RUN_SECONDS="0")
        self.assertEqual(said, "no time: conformance\nno time: kernels\n"
                               "run: failed: conformance kernels\n")
        self.assertIn("machine.json", self.results())

    def test_a_machine_without_a_gpu_ends_the_script_with_a_message(self):
        self.install("bin/weir", 0)
        self.environment["WEIR_CUDA_DRIVER"] = "/nonexistent"
        self.assertIn("there is no GPU that weir can use", self.run_script(code=2))


if __name__ == "__main__":
    weir_cli.main()
