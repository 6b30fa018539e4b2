"""Compares `weir run lu` with LAPACK, element by element, and gives it what it must refuse."""

import itertools

import numpy as np
import scipy.io
import scipy.linalg

import weir_cli
from weir_cli import BAD_INPUT, DOMAINS, RUN_FAILED, TYPES, relative_error


def limit(dtype, n):
    return 100 * n * np.finfo(dtype).eps


def rows_of(pivots):
    """The row of A that is row i of P A, from the exchanges that LAPACK reports."""
    rows = np.arange(len(pivots))
    for i, pivot in enumerate(pivots):
        rows[[i, pivot]] = rows[[pivot, i]]
    return rows


def random_matrix(n, seed=1):
    return np.random.default_rng(seed).standard_normal((n, n))


class LuTest(weir_cli.CliTest):
    def check(self, matrix, precision, path, *options):
        """Factors and solves, against the same rows in the same order."""
        dtype, n = TYPES[precision], matrix.shape[0]
        exact = matrix.astype(dtype).astype(float)
        rhs = np.arange(1, 2 * n + 1, dtype=dtype).reshape(n, 2)
        report = self.report(
            "lu", "--input", path, "--precision", precision, "--rhs", self.save("b.npy", rhs),
            "--solution", self.path("x.npy"), "--output", self.path("LU.npy"), "--permutation",
            self.path("p.npy"), *options)

        expected, pivots = scipy.linalg.lu_factor(exact)
        found = np.load(self.path("LU.npy"))
        self.assertEqual((found.dtype, found.shape), (dtype, (n, n)))
        np.testing.assert_array_equal(np.load(self.path("p.npy")).ravel(), rows_of(pivots))
        self.assertLess(relative_error(found, expected), limit(dtype, n))
        self.assertLess(relative_error(np.load(self.path("x.npy")),
                                       scipy.linalg.solve(exact, rhs.astype(float))),
                        limit(dtype, n) * np.linalg.cond(exact))
        return report

    def test_factors_and_solution_equal_those_of_lapack_on_all_domains(self):
        matrix = random_matrix(200)
        for precision, domains in itertools.product(TYPES, DOMAINS + ("sim:order=device",)):
            with self.subTest(precision=precision, domains=domains):
                path = self.save("A.npy", matrix.astype(TYPES[precision]))
                self.check(matrix, precision, path, "--domains", domains, "--tile", 48)

    def test_factors_equal_those_of_lapack_for_small_and_uneven_tiles(self):
        for n, tile in ((1, 1), (2, 1), (63, 64), (65, 64), (97, 20)):
            with self.subTest(n=n, tile=tile):
                matrix = random_matrix(n)
                scipy.io.mmwrite(self.path("A.mtx"), matrix, precision=17)
                self.check(matrix, "double", self.path("A.mtx"), "--tile", tile)

    def test_factors_equal_those_of_lapack_on_several_places_and_streams(self):
        matrix = random_matrix(150)
        path = self.save("A.npy", matrix)
        for places, streams in ((1, 1), (2, 3)):
            with self.subTest(places=places, streams=streams):
                report = self.check(matrix, "double", path, "--tile", 16, "--domains", "sim:cores=2",
                                    "--places", places, "--streams", streams, "--verify")
                self.assertIs(report["verified"], True)

    def test_matrices_that_need_pivoting_are_factored_like_lapack(self):
        """Without pivoting each of these divides by zero."""
        for matrix in (np.eye(90)[::-1], np.roll(np.eye(90), 50, axis=0) * 3):
            self.check(matrix, "double", self.save("A.npy", matrix), "--tile", 32)

    def test_a_zero_right_hand_side_has_a_zero_solution(self):
        rhs = self.save("b.npy", np.zeros((20, 2)))
        for application in ("lu", "cholesky"):
            report = self.report(application, "--n", 20, "--rhs", rhs, "--solution",
                                 self.path("x.npy"), "--verify")
            self.assertIs(report["verified"], True)
            self.assertEqual(np.count_nonzero(np.load(self.path("x.npy"))), 0)

    def test_a_singular_matrix_fails_with_its_rows_and_pivot(self):
        matrix = random_matrix(100)
        matrix[:, 70] = 0
        message = self.refusal("run", "lu", "--input", self.save("A.npy", matrix), "--tile", 32,
                               "--output", self.path("LU.npy"), code=RUN_FAILED)
        self.assert_names(message, "singular", "rows 65 to 100", "pivot 7")

    def test_with_skipped_kernels_verify_is_refused_and_the_permutation_is_valid(self):
        card = "sim:clock=virtual,gflops=10,kernels=skip"
        self.refusal("run", "lu", "--n", 64, "--repeat", 1, "--domains", card, "--verify", code=BAD_INPUT)
        self.report("lu", "--n", 64, "--domains", card, "--permutation", self.path("p.npy"))
        self.assertEqual(sorted(np.load(self.path("p.npy")).ravel()), list(range(64)))

    def test_unsuitable_matrices_right_hand_sides_and_outputs_are_refused(self):
        for matrix in (np.ones((2, 3)), np.zeros((0, 0))):
            path = self.save("A.npy", matrix)
            self.assertIn(path, self.refusal("run", "lu", "--input", path, code=BAD_INPUT))
        path = self.save("b.npy", np.ones(4))
        self.assertIn(path, self.refusal("run", "lu", "--n", 3, "--rhs", path, code=BAD_INPUT))
        for option in ("--permutation", "--output"):
            self.assertIn("'.txt'", self.refusal("run", "lu", "--n", 3, option, self.path("p.txt"),
                                                 code=BAD_INPUT))
        self.assert_names(self.refusal("run", "lu", "--n", 2000000000, code=BAD_INPUT), 2000000000)


if __name__ == "__main__":
    weir_cli.main()
