"""Compares `weir run sparse-cholesky` with SciPy's sparse solver, and gives it what it must refuse."""

import itertools

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import weir_cli
from weir_cli import BAD_INPUT, DOMAINS, TYPES, relative_error


def laplacian(n):
    """Of a grid of n x n x n cells with zeros around it."""
    line = scipy.sparse.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
    one = scipy.sparse.identity(n)
    kron = scipy.sparse.kron
    return (kron(kron(line, one), one) + kron(kron(one, line), one)
            + kron(kron(one, one), line)).tocsc()


class SparseCholeskyTest(weir_cli.CliTest):
    def check(self, n, precision, *options, columns=1):
        dtype = TYPES[precision]
        rhs = np.random.default_rng(n).standard_normal((n ** 3, columns)).astype(dtype)
        report = self.report(
            "sparse-cholesky", "--n", n, "--precision", precision, "--rhs",
            self.save("b.npy", rhs), "--solution", self.path("x.npy"), *options)
        self.assertEqual(report["params"]["n"], n ** 3)
        solution = np.load(self.path("x.npy"))
        self.assertEqual((solution.dtype, solution.shape), (dtype, rhs.shape))
        expected = scipy.sparse.linalg.splu(laplacian(n)).solve(rhs.astype(float))
        condition = n ** 2
        self.assertLess(relative_error(solution, expected), 10 * condition * np.finfo(dtype).eps)
        return report

    def test_solution_equals_that_of_scipy_on_all_domains(self):
        domains = DOMAINS + ("sim:cores=2,order=device", "sim:memory=4MiB")
        for precision, domain in itertools.product(TYPES, domains):
            with self.subTest(precision=precision, domains=domain):
                self.check(10, precision, "--domains", domain, "--tile", 32)

    def test_solution_equals_that_of_scipy_for_small_grids(self):
        for n in (1, 2, 3, 5, 8):
            with self.subTest(n=n):
                self.check(n, "double")

    def test_solution_equals_that_of_scipy_with_all_tiles_places_and_streams(self):
        for tile, places, streams in ((1, 1, 1), (7, 2, 3), (1000, 2, 1)):
            with self.subTest(tile=tile, places=places, streams=streams):
                self.check(7, "double", "--tile", tile, "--domains", "sim:cores=2", "--places",
                           places, "--streams", streams, columns=3)

    def test_verification_passes_in_virtual_time(self):
        report = self.check(9, "double", "--domains", "sim:clock=virtual,gflops=10,cores=4",
                            "--verify")
        self.assertIs(report["verified"], True)

    def test_a_zero_right_hand_side_passes_verification(self):
        report = self.report("sparse-cholesky", "--n", 3, "--rhs", self.save("b.npy", np.zeros(27)),
                             "--verify")
        self.assertIs(report["verified"], True)

    def test_invalid_sizes_files_and_options_are_refused_with_a_reason(self):
        for options, words in (
            (("--n", 2000000000), (2000000000, "--n")),
            (("--n", 3, "--solution", "x.txt"), ("x.txt",)),
            (("--n", 3, "--rhs", self.save("short.npy", np.ones(26))), ("26 x 1", "27 rows")),
        ):
            with self.subTest(options):
                message = self.refusal("run", "sparse-cholesky", *options, code=BAD_INPUT)
                for word in words:
                    self.assertIn(str(word), message)
        for options in (("--input", "A.mtx"), ("--output", "L.npy")):
            message = self.refusal("run", "sparse-cholesky", *options, code=weir_cli.USAGE)
            self.assertIn(f"{options[0]}: sparse-cholesky does not use this option", message)


if __name__ == "__main__":
    weir_cli.main()
