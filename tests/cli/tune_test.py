"""weir tune: finds what an exhaustive search finds, keeps what it measured, and is used by run."""

import glob
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

from tool import TOOL, weir

USAGE, BAD_INPUT = 2, 3

DEVICE = ("sim:clock=virtual,cores=56,gbps=6,duplex=half,latency_us=2,gflops=0.5,launch_us=5,"
          "kernels=skip")
MOST_TILES = 8
GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "guide", "measuring.md")


class TuneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = folder.name

    def weir(self, *arguments):
        result = weir(*arguments, XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def tune(self, app, *options, domains=DEVICE, n=256):
        return json.loads(self.weir("tune", app, "--n", str(n), "--domains", domains,
                                    "--most-tiles", str(MOST_TILES), "--json", *options))

    def run_app(self, app, *options, n=256, domains=DEVICE):
        return json.loads(self.weir("run", app, "--n", str(n), "--domains", domains, "--repeat",
                                    "1", "--json", *options))

    def wisdom(self):
        return glob.glob(os.path.join(self.cache, "weir", "tuned", "*.json"))


class Search(TuneTest):
    def check(self, app, *options, n=256):
        tuned = self.tune(app, *options, n=n)
        exhaustive = self.tune(app, *options, "--exhaustive", "--fresh", "--budget", "5m", n=n)
        pairs = {(each["places"], each["asked_tiles"]) for each in exhaustive["evaluations"]}
        self.assertEqual(pairs - {(1, 0)}, {(places, tiles) for places in range(1, 57)
                                            for tiles in range(1, MOST_TILES + 1)})
        best = min(each["seconds"] for each in exhaustive["evaluations"])
        self.assertLessEqual(tuned["chosen"]["seconds"], 1.05 * best)
        self.assertLessEqual(tuned["chosen"]["seconds"], tuned["default"]["seconds"])
        self.assertLessEqual(tuned["measured"], len(pairs) / 10)
        self.assertFalse(tuned["space"]["noisy"])

    def test_tuned_matmul_is_within_5_percent_of_an_exhaustive_search(self):
        self.check("matmul")

    def test_tuned_cholesky_is_within_5_percent_of_an_exhaustive_search(self):
        self.check("cholesky")

    def test_tuned_hotspot_is_within_5_percent_of_an_exhaustive_search(self):
        self.check("hotspot", "--iterations", "5")

    def test_tuned_nn_is_within_5_percent_of_an_exhaustive_search(self):
        self.check("nn", n=20000)

    def test_policies_are_tried_for_cholesky_and_not_for_hotspot(self):
        tuned = self.tune("cholesky", "--fresh")
        tried = {each.get("policy", "") for each in tuned["evaluations"]}
        policies = json.loads(self.weir("info", "--domains", "null", "--json"))["policies"]
        self.assertEqual(tried, {"", *(policy["name"] for policy in policies)})
        self.assertIn("task queue", "\n".join(tuned["reasons"]))
        hotspot = self.tune("hotspot", "--iterations", "2", "--evaluations", "12")
        self.assertFalse(any("policy" in each for each in hotspot["evaluations"]))

    def test_aspects_of_tiles_are_tried_for_hotspot_and_not_for_matmul(self):
        """On two devices, between which flat tiles need fewer copies than squares."""
        options = ("--iterations", "5", "--domains", f"{DEVICE},{DEVICE}")
        tuned = json.loads(self.weir("tune", "hotspot", "--n", "256", "--most-tiles", "8", "--json",
                                     *options))
        tried = {each.get("aspect", 1) for each in tuned["evaluations"]}
        self.assertLessEqual({1, 4}, tried)
        self.assertIn("wide as high", "\n".join(tuned["reasons"]))
        report = json.loads(self.weir("run", "hotspot", "--n", "256", "--repeat", "1", "--tuned",
                                      "--json", *options))
        self.assertEqual(report["params"].get("aspect", 1), tuned["chosen"].get("aspect", 1))
        self.assertAlmostEqual(report["seconds"]["median"], tuned["chosen"]["seconds"], delta=1e-9)
        matmul = self.tune("matmul", "--evaluations", "12")
        self.assertFalse(any("aspect" in each for each in matmul["evaluations"]))

    def test_tuning_in_virtual_time_is_deterministic(self):
        first, second = (self.tune("matmul", "--fresh") for _ in range(2))
        self.assertEqual(first["evaluations"], second["evaluations"])
        self.assertEqual(first["chosen"], second["chosen"])
        self.assertEqual(first["reasons"], second["reasons"])

    def test_tuning_prints_its_reasons_and_the_command_that_uses_it(self):
        reasons = "\n".join(self.tune("matmul")["reasons"])
        for word in ("pace", "of each domain", "tile", "longer"):
            self.assertIn(word, reasons)
        text = self.weir("tune", "matmul", "--n", "256", "--domains", DEVICE)
        used = f"weir run matmul --n 256 --domains {DEVICE} --tuned"
        for word in ("matmul: --places", "default takes", "why", f"use it with: {used}\n"):
            self.assertIn(word, text)
        result = weir(*used.split()[1:], XDG_CACHE_HOME=self.cache)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_parts_of_the_time_add_up_to_the_seconds_of_each_evaluation(self):
        """Of two runs that are compared the parts of the time add up to what they took."""
        tuned = self.tune("cholesky", "--evaluations", "14")
        for each in tuned["evaluations"]:
            parts = [each[part] for part in ("work_s", "idle_s", "exposed_s", "nothing_s")]
            self.assertGreaterEqual(min(parts), 0)
            self.assertAlmostEqual(sum(parts), each["seconds"], delta=0.01 * each["seconds"])
            self.assertGreater(each["kernels"], 0)
        one, = (each for each in tuned["evaluations"]
                if each["tiles"] == 1 and each["places"] == 1 and "policy" not in each)
        self.assertEqual(one["kernels"], 1)
        for word in ("each action costs", "less runs at a time", "share evenly"):
            self.assertNotIn(word, "\n".join(tuned["reasons"]))

    def test_the_guide_shows_the_output_of_the_tuner(self):
        with open(GUIDE, encoding="utf-8") as file:
            commands, shown = re.search(r"```sh\n(export WEIR_DOMAINS=[^`]*)```\n\n```text\n([^`]*)```",
                                        file.read()).groups()
        domains = re.search(r"WEIR_DOMAINS=(\S+)", commands)[1]
        arguments = re.search(r"\nweir (tune .*) --budget", commands)[1].split()
        result = weir(*arguments, "--budget", "10m", XDG_CACHE_HOME=self.cache, WEIR_DOMAINS=domains)
        said = [line for line in result.stdout.splitlines()
                if not line.startswith(("  measured", "  kept"))]
        self.assertEqual(said, shown.splitlines())

    def test_tuning_in_real_time_is_not_worse_than_the_default(self):
        tuned = self.tune("matmul", "--budget", "3s", domains="host")
        self.assertTrue(tuned["space"]["noisy"])
        self.assertLessEqual(tuned["chosen"]["seconds"], tuned["default"]["seconds"])


class Wisdom(TuneTest):
    def test_run_tuned_uses_the_chosen_places_streams_and_tiles(self):
        chosen = self.tune("matmul")["chosen"]
        report = self.run_app("matmul", "--tuned")
        self.assertEqual((report["places"], report["streams"], report["tiles"]),
                         (chosen["places"], chosen["streams"], chosen["tiles"]))
        self.assertAlmostEqual(report["seconds"]["median"], chosen["seconds"], delta=1e-9)
        self.assertLess(report["seconds"]["median"],
                        self.run_app("matmul")["seconds"]["median"])

    def test_a_tuning_result_is_used_for_a_slightly_smaller_problem(self):
        tiles = self.tune("matmul")["chosen"]["tiles"]
        self.assertEqual(self.run_app("matmul", "--tuned", n=245)["tiles"], tiles)

    def test_samples_of_a_problem_of_another_size_are_not_reused(self):
        larger = self.tune("matmul", "--evaluations", "5", n=360)
        smaller = self.tune("matmul", "--evaluations", "5", n=185)
        self.assertEqual(smaller["resumed"], 0)
        self.assertLess(smaller["default"]["seconds"], larger["default"]["seconds"] / 2)

    def test_options_override_the_tuning_result(self):
        self.tune("matmul")
        report = self.run_app("matmul", "--tuned", "--places", "3", "--tile", "128")
        self.assertEqual((report["places"], report["tiles"]), (3, 2))

    def test_a_tuning_result_is_found_with_live(self):
        options = ("stencil", "--n", "64", "--domains", "host:cores=1,sim:cores=1")
        self.weir("tune", *options, "--evaluations", "2", "--budget", "1s")
        result = weir("run", *options, "--repeat", "1", "--tuned", "--live",
                      XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("no tuning result", result.stderr)

    def test_a_tuning_result_is_found_with_ranks(self):
        options = ("laplacian", "--n", "16", "--iterations", "2", "--domains", "host:cores=1")
        self.weir("tune", *options, "--evaluations", "2", "--budget", "1s")
        result = weir("run", *options, "--repeat", "1", "--tuned", "--ranks", "2",
                      XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("no tuning result", result.stderr)

    def test_a_tuning_result_is_found_with_rhs_solution_and_permutation(self):
        self.tune("lu", "--evaluations", "2", n=64)
        rhs, rows = (os.path.join(self.cache, name) for name in ("b.mtx", "p.mtx"))
        with open(rhs, "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix array real general\n64 1\n" + "1\n" * 64)
        result = weir("run", "lu", "--n", "64", "--domains", DEVICE, "--repeat", "1", "--tuned",
                      "--rhs", rhs, "--solution", os.path.join(self.cache, "x.mtx"),
                      "--permutation", rows, XDG_CACHE_HOME=self.cache)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_other_sizes_and_precisions_have_no_tuning_result(self):
        self.tune("matmul", "--evaluations", "2")
        for n, options in ((512, ()), (256, ("--precision", "float"))):
            result = weir("run", "matmul", "--n", str(n), "--domains", DEVICE, "--repeat", "1",
                          "--tuned", *options, XDG_CACHE_HOME=self.cache)
            self.assertEqual(result.returncode, 0)
            self.assertIn("no tuning result", result.stderr)

    def test_a_budget_of_centuries_is_accepted(self):
        tuned = self.tune("matmul", "--evaluations", "3", "--budget", "10000000000")
        self.assertEqual(len(tuned["evaluations"]), 3)

    def test_tuning_resumes_with_the_earlier_evaluations(self):
        first = self.tune("matmul", "--evaluations", "5")
        self.assertEqual((first["measured"], first["resumed"]), (5, 0))
        second = self.tune("matmul")
        self.assertEqual(second["resumed"], len(first["evaluations"]))
        fresh = self.tune("matmul", "--fresh")
        self.assertEqual(second["chosen"]["seconds"], fresh["chosen"]["seconds"])
        self.assertLess(second["measured"], fresh["measured"])
        third = self.tune("matmul")
        self.assertEqual(third["chosen"]["seconds"], fresh["chosen"]["seconds"])

    def test_damaged_tuning_files_do_not_change_the_tuning_result(self):
        expected = self.tune("matmul")
        path, = self.wisdom()
        with open(path, encoding="utf-8") as file:
            good = file.read()
        for bad in ("", "{", "[]", good[:len(good) // 2], good.replace("samples", "smaples"),
                    good.replace('"places": 1,', '"places": -1,')):
            with open(path, "w", encoding="utf-8") as file:
                file.write(bad)
            self.run_app("matmul", "--tuned")
            self.assertEqual(self.tune("matmul")["chosen"]["seconds"],
                             expected["chosen"]["seconds"])

    def test_the_library_finds_the_chosen_result_unless_its_file_is_damaged(self):
        """Also a policy: `run --tuned` asks weir_wisdom_find()."""
        chosen = self.tune("cholesky")["chosen"]
        report = self.run_app("cholesky", "--tuned")
        self.assertEqual(report.get("policy") or "", chosen.get("policy", ""))
        self.assertEqual(report["tiles"], chosen["tiles"])
        kept, = glob.glob(os.path.join(self.cache, "weir", "wisdom", "*"))
        with open(kept, "rb") as file:
            content = file.read()
        self.assertIn(b"weir run cholesky\n", content)
        with open(kept, "wb") as file:
            file.write(content[:-1] + b"?")
        result = weir("run", "cholesky", "--n", "256", "--domains", DEVICE, "--repeat", "1",
                      "--tuned", XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no tuning result for this problem; run: weir tune cholesky --n 256 --domains", result.stderr)

    def test_tuning_works_without_a_writable_cache_folder(self):
        result = weir("tune", "matmul", "--n", "256", "--domains", DEVICE, "--evaluations", "2",
                      XDG_CACHE_HOME="/proc/nowhere")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_an_interrupted_tuner_keeps_its_samples(self):
        environment = {**os.environ, "XDG_CACHE_HOME": self.cache}
        process = subprocess.Popen(
            [TOOL, "tune", "matmul", "--n", "1024", "--domains", "host", "--budget", "1h",
             "--exhaustive", "--most-tiles", "1000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        while not self.wisdom() and process.poll() is None:
            pass
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, said)
        self.assertIn("stopped by SIGINT", said)
        path, = self.wisdom()
        with open(path, encoding="utf-8") as file:
            self.assertGreaterEqual(len(json.load(file)["evaluations"]), 1)


class BadInput(TuneTest):
    def test_invalid_arguments_of_tune_are_refused_and_store_nothing(self):
        for arguments, code, word in (
                (["matmul", "--budget", "0"], USAGE, "--budget"),
                (["matmul", "--budget", "soon"], USAGE, "--budget"),
                (["matmul", "--evaluations", "0"], USAGE, "--evaluations"),
                (["matmul", "--n", "0"], USAGE, "--n"),
                (["nothing"], USAGE, "nothing"),
                (["matmul", "--input", "/nonexistent.npy"], BAD_INPUT, "nonexistent"),
                (["matmul", "--domains", "nope"], BAD_INPUT, "nope")):
            result = weir("tune", *arguments, XDG_CACHE_HOME=self.cache)
            self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
            self.assertIn(word, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(self.wisdom(), [])


if __name__ == "__main__":
    unittest.main()
