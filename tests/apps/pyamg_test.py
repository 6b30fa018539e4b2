"""Factors the matrices that pyamg brings, and compares with SciPy.

Exit code 77, for CTest to count it as skipped, where pyamg is not installed.
"""

import sys

import numpy as np
import scipy.io
import scipy.linalg
import scipy.sparse

import weir_cli
from weir_cli import DOMAINS, relative_error

try:
    from pyamg.gallery import load_example
except ImportError:
    print("skipped: pyamg is not installed: 'scripts/setup.sh test' gets it from PyPI")
    sys.exit(77)


class PyamgTest(weir_cli.CliTest):
    def check(self, name, tile):
        matrix = scipy.sparse.coo_matrix(load_example(name)["A"])
        scipy.io.mmwrite(self.path("A.mtx"), matrix, symmetry="symmetric", precision=17)
        dense = matrix.toarray()
        rhs = np.ones(dense.shape[0])
        expected = scipy.linalg.cho_solve(scipy.linalg.cho_factor(dense), rhs)
        factor = scipy.linalg.cholesky(dense, lower=True)
        for domains in DOMAINS:
            with self.subTest(domains=domains):
                report = self.report(
                    "cholesky", "--input", self.path("A.mtx"), "--rhs", self.save("b.npy", rhs),
                    "--output", self.path("L.npy"), "--solution", self.path("x.npy"),
                    "--tile", tile, "--domains", domains)
                self.assertEqual(report["params"]["n"], dense.shape[0])
                self.assertLess(relative_error(np.load(self.path("L.npy")), factor), 1e-12)
                self.assertLess(relative_error(np.load(self.path("x.npy")).ravel(), expected),
                                1e-11)

    def test_cholesky_of_an_elastic_bar_gives_the_factor_and_solution_of_scipy(self):
        self.check("bar", 64)

    def test_cholesky_of_an_airfoil_gives_the_factor_and_solution_of_scipy(self):
        self.check("airfoil", 48)

    def test_cholesky_of_a_unit_cube_gives_the_factor_and_solution_of_scipy(self):
        self.check("unit_cube", 50)


if __name__ == "__main__":
    weir_cli.main()
