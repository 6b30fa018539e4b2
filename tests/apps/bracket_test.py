"""Solves the equations of our bracket with weir, and tests the check of the result.

usage: bracket_test.py WEIR BRACKET [unittest options]
"""

import json
import os
import subprocess
import sys

import numpy as np
import scipy.io

import weir_cli
from weir_cli import BAD_INPUT, DOMAINS, MISMATCH, USAGE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK = os.path.join(ROOT, "scripts", "check_bracket.py")


class BracketTest(weir_cli.CliTest):
    def bracket(self, *arguments, code=0):
        command = [weir_cli.program(1)] + [str(argument) for argument in arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout, result.stderr

    def check(self, code=0, solution="u.npy"):
        result = subprocess.run([sys.executable, CHECK, self.folder, self.path(solution)],
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def solve(self, *options):
        return self.report("cholesky", "--input", self.path("K.mtx"), "--rhs", self.path("f.npy"),
                           "--solution", self.path("u.npy"), *options)

    def test_displacements_computed_on_all_domains_pass_the_check(self):
        for cells in (1, 2):
            self.bracket("--cells", cells, "--output", self.folder)
            for domains in DOMAINS:
                with self.subTest(cells=cells, domains=domains):
                    self.solve("--domains", domains)
                    self.check()
                    os.remove(self.path("u.npy"))

    def test_the_default_bracket_has_at_least_3000_unknowns(self):
        output, _ = self.bracket("--output", self.folder)
        with open(self.path("bracket.json"), encoding="utf-8") as file:
            unknowns = json.load(file)["unknowns"]
        self.assertGreaterEqual(unknowns, 3000)
        self.assertIn(f"{unknowns} unknowns", output)
        self.assertEqual(scipy.io.mminfo(self.path("K.mtx"))[:2], (unknowns, unknowns))

    def test_the_check_sees_a_wrong_displacement(self):
        self.bracket("--cells", 1, "--output", self.folder)
        self.solve()
        solution = np.load(self.path("u.npy"))
        solution[5] *= 1.001
        self.save("wrong.npy", solution)
        self.assertIn("MISMATCH", self.check(MISMATCH, "wrong.npy"))

    def test_the_check_sees_a_wrong_matrix(self):
        self.bracket("--cells", 1, "--output", self.folder)
        stiffness = scipy.io.mmread(self.path("K.mtx")).tocsr()
        stiffness[0, 0] *= 1.01
        scipy.io.mmwrite(self.path("K.mtx"), stiffness, symmetry="symmetric", precision=17)
        self.solve()
        self.assertRegex(self.check(MISMATCH), r"assembly .*MISMATCH\nresidual .*ok\n")

    def test_the_check_refuses_solutions_that_are_short_or_missing(self):
        self.bracket("--cells", 1, "--output", self.folder)
        self.save("short.npy", np.ones(7))
        self.assertIn("short.npy", self.check(BAD_INPUT, "short.npy"))
        self.assertIn("absent.npy", self.check(BAD_INPUT, "absent.npy"))

    def test_invalid_arguments_are_refused_by_name_and_help_succeeds(self):
        for arguments, word in ((["--cells", "0"], "'0'"), (["--cells", "11"], "'11'"),
                                (["--cells", "2x"], "'2x'"), (["--cells"], "--cells"),
                                (["--size", "2"], "--size")):
            with self.subTest(arguments):
                output, message = self.bracket(*arguments, code=USAGE)
                self.assertEqual(output, "")
                self.assertIn(word, message)
        output, _ = self.bracket("--help")
        self.assertIn("--cells", output)

    def test_an_output_folder_that_cannot_be_created_is_refused(self):
        path = os.path.join(self.write("file", ""), "folder")
        self.assertIn(path, self.bracket("--output", path, code=BAD_INPUT)[1])


if __name__ == "__main__":
    weir_cli.main()
