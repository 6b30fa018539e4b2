"""Compares what the applications compute with SciPy and NumPy, element by element."""

import itertools

import numpy as np
import scipy.io
import scipy.linalg
import scipy.sparse

import weir_cli
from weir_cli import DOMAINS, TYPES, positive_definite, relative_error


def limit(dtype, n):
    return 10 * n * np.finfo(dtype).eps


class CholeskyTest(weir_cli.CliTest):
    def check(self, matrix, precision, path, *options):
        """Factors and solves; returns the report."""
        dtype = TYPES[precision]
        n = matrix.shape[0]
        exact = matrix.astype(dtype).astype(float)
        rhs = np.arange(1, n + 1, dtype=dtype)
        result = self.report(
            "cholesky", "--input", path, "--precision", precision, "--rhs",
            self.save("b.npy", rhs), "--output", self.path("L.npy"), "--solution",
            self.path("x.npy"), *options)

        factor = np.load(self.path("L.npy"))
        self.assertEqual((factor.dtype, factor.shape), (dtype, (n, n)))
        self.assertEqual(np.count_nonzero(np.triu(factor, 1)), 0)
        expected = scipy.linalg.cholesky(exact, lower=True)
        self.assertLess(relative_error(factor, expected), limit(dtype, n))

        solution = np.load(self.path("x.npy")).ravel()
        self.assertEqual((solution.dtype, solution.shape), (dtype, (n,)))
        expected = scipy.linalg.solve(exact, rhs.astype(float), assume_a="pos")
        self.assertLess(relative_error(solution, expected), limit(dtype, n))
        return result

    def test_factor_and_solution_equal_those_of_scipy_on_all_domains(self):
        matrix = positive_definite(300)
        for precision, domains in itertools.product(TYPES, DOMAINS):
            with self.subTest(precision=precision, domains=domains):
                path = self.save("A.npy", matrix.astype(TYPES[precision]))
                self.check(matrix, precision, path, "--domains", domains, "--tile", 64)

    def test_factor_equals_that_of_scipy_for_small_and_uneven_tiles(self):
        for n, tile in ((1, 1), (1, 64), (2, 1), (63, 64), (64, 64), (65, 64), (130, 43),
                        (97, 200)):
            with self.subTest(n=n, tile=tile):
                matrix = positive_definite(n)
                self.check(matrix, "double", self.save("A.npy", matrix), "--tile", tile)

    def test_factor_equals_that_of_scipy_on_several_places_and_streams(self):
        matrix = positive_definite(200)
        path = self.save("A.npy", matrix)
        for places, streams in ((1, 1), (1, 8), (2, 1), (2, 3)):
            with self.subTest(places=places, streams=streams):
                result = self.check(matrix, "double", path, "--tile", 32, "--domains",
                                    "sim:cores=2", "--places", places, "--streams", streams)
                self.assertEqual((result["places"], result["streams"]), (places, streams))

    def test_a_matrix_has_the_same_factor_in_all_file_formats(self):
        """The same matrix in all formats that hold it gives the same factor."""
        matrix = positive_definite(50)
        sparse = scipy.sparse.coo_matrix(matrix)
        scipy.io.mmwrite(self.path("array.mtx"), matrix, symmetry="general", precision=17)
        scipy.io.mmwrite(self.path("triangle.mtx"), matrix, symmetry="symmetric", precision=17)
        scipy.io.mmwrite(self.path("sparse.mtx"), sparse, symmetry="general", precision=17)
        scipy.io.mmwrite(self.path("lower.mtx"), sparse, symmetry="symmetric", precision=17)
        self.save("c.npy", matrix)
        self.save("fortran.npy", np.asfortranarray(matrix))
        for name in ("array.mtx", "triangle.mtx", "sparse.mtx", "lower.mtx", "c.npy",
                     "fortran.npy"):
            with self.subTest(name=name):
                self.check(matrix, "double", self.path(name), "--tile", 16)

    def test_three_right_hand_sides_are_solved_as_by_scipy(self):
        matrix = positive_definite(80)
        rhs = np.random.default_rng(2).standard_normal((80, 3))
        self.report("cholesky", "--input", self.save("A.npy", matrix), "--rhs",
                    self.save("B.npy", rhs), "--solution", self.path("X.npy"), "--tile", 32)
        self.assertLess(relative_error(np.load(self.path("X.npy")),
                                       scipy.linalg.solve(matrix, rhs)), limit(np.float64, 80))

    def test_a_factor_written_as_matrix_market_equals_that_of_scipy(self):
        matrix = positive_definite(40)
        self.report("cholesky", "--input", self.save("A.npy", matrix), "--output",
                    self.path("L.mtx"))
        factor = scipy.io.mmread(self.path("L.mtx"))
        self.assertLess(relative_error(factor, scipy.linalg.cholesky(matrix, lower=True)),
                        limit(np.float64, 40))

    def test_values_whose_squares_are_not_doubles_pass_verification(self):
        """What is computed with them is right, and that can be seen."""
        for size in (1e200, 1e-200):
            matrix = self.save("A.npy", size * positive_definite(40))
            rhs = self.save("b.npy", np.full(40, size))
            for app in ("cholesky", "lu"):
                with self.subTest(app=app, size=size):
                    report = self.report(app, "--input", matrix, "--rhs", rhs, "--tile", 16,
                                         "--verify")
                    self.assertEqual(len(report["checks"]), 2)
                    for check in report["checks"]:
                        self.assertTrue(1e-6 < check["value"] <= check["limit"], check)



class MatmulTest(weir_cli.CliTest):
    def check(self, left, right, precision, *options):
        dtype = TYPES[precision]
        left, right = left.astype(dtype), right.astype(dtype)
        self.report(
            "matmul", "--input", self.save("A.npy", left), "--second", self.save("B.npy", right),
            "--precision", precision, "--output", self.path("C.npy"), *options)
        product = np.load(self.path("C.npy"))
        expected = left.astype(float) @ right.astype(float)
        self.assertEqual((product.dtype, product.shape), (dtype, expected.shape))
        scale = np.linalg.norm(left) * np.linalg.norm(right)
        self.assertLess(np.linalg.norm(product - expected) / scale, limit(dtype, left.shape[1]))

    def test_product_equals_that_of_numpy_on_all_domains(self):
        random = np.random.default_rng(3)
        left, right = (random.standard_normal((200, 200)) for _ in range(2))
        for precision, domains in itertools.product(TYPES, DOMAINS):
            with self.subTest(precision=precision, domains=domains):
                self.check(left, right, precision, "--domains", domains, "--tile", 64)

    def test_product_equals_that_of_numpy_for_rectangular_matrices(self):
        random = np.random.default_rng(4)
        shapes = ((1, 1, 1), (1, 9, 1), (70, 3, 40), (33, 128, 65), (5, 64, 200))
        for rows, inner, columns in shapes:
            with self.subTest(shape=(rows, inner, columns)):
                self.check(random.standard_normal((rows, inner)),
                           random.standard_normal((inner, columns)), "double", "--tile", 32)


if __name__ == "__main__":
    weir_cli.main()
