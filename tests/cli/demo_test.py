"""What the demonstration says of a run, above all of one whose gemm peak was measured too low."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from tool import weir

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "demo_result.py")


class Demo(unittest.TestCase):
    def setUp(self):
        result = weir("run", "cholesky", "--n", "128", "--repeat", "2", "--verify", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.result = json.loads(result.stdout)

    def shown(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self.result, file)
            file.flush()
            return subprocess.run([sys.executable, SCRIPT, file.name], capture_output=True,
                                  text=True, check=True).stdout

    def test_the_json_of_a_run_names_the_version_of_the_tool(self):
        self.assertIn(f"weir {self.result['version']}", weir("--version").stdout)

    def test_the_gemm_peak_is_the_larger_of_two_samples(self):
        peak = self.result["gemm_peak"]
        self.assertEqual(len(peak["samples"]), 2)
        self.assertEqual(peak["value"], max(peak["samples"]))
        self.assertTrue(peak["share"] is None or 0 < peak["share"] <= 1, peak)

    def test_the_share_of_the_gemm_peak_is_shown_in_percent(self):
        self.result["gemm_peak"] = {"value": 50.0, "unit": "GFLOP/s", "share": 0.436}
        self.assertIn("GFLOP/s, 44% of the gemm peak of this machine (50.0 GFLOP/s)\n", self.shown())

    def test_an_unknown_gemm_peak_is_explained_without_a_share(self):
        self.result["gemm_peak"] = {"value": 0.1, "unit": "GFLOP/s", "share": None,
                                    "problem": "the gemm peak is not known"}
        said = self.shown()
        self.assertIn("GFLOP/s; the gemm peak is not known\n", said)
        self.assertNotIn("%", said)
        self.assertIn("verified", said)


if __name__ == "__main__":
    unittest.main()
