"""The applications on CUDA's driver, cuBLAS and cuSOLVER for tests, compared with NumPy and SciPy."""

import itertools
import json

import numpy as np
import scipy.linalg

import weir_cli
from weir_cli import RUN_FAILED, TYPES, UNAVAILABLE, positive_definite, relative_error

DOMAINS = ("cuda:0", "host,cuda:0", "cuda:0,streams=1,cuda:1")


class CudaTest(weir_cli.CliTest):
    def setUp(self):
        super().setUp()
        driver, cublas = weir_cli.program(1), weir_cli.program(2)
        self.environment = {"WEIR_CUDA_DRIVER": driver, "WEIR_NVRTC": driver,
                            "WEIR_CUBLAS": cublas, "WEIR_CUSOLVER": cublas}

    def verified(self, *arguments):
        """Runs an application, which checks its result itself; returns the report."""
        output, _ = self.weir("run", *arguments, "--repeat", 2, "--verify", "--json")
        return json.loads(output)

    def test_matmul_on_cuda_equals_the_product_of_numpy(self):
        random = np.random.default_rng(3)
        for precision, domains in itertools.product(TYPES, DOMAINS):
            with self.subTest(precision=precision, domains=domains):
                dtype = TYPES[precision]
                left, right = (random.standard_normal((200, 200)).astype(dtype) for _ in range(2))
                self.verified("matmul", "--input", self.save("A.npy", left), "--second",
                              self.save("B.npy", right), "--output", self.path("C.npy"),
                              "--precision", precision, "--domains", domains, "--tile", 64)
                expected = left.astype(float) @ right.astype(float)
                error = relative_error(np.load(self.path("C.npy")), expected)
                self.assertLess(error, 200 * np.finfo(dtype).eps)

    def test_cholesky_on_cuda_gives_the_factor_and_solution_of_scipy(self):
        matrix = positive_definite(300)
        rhs = np.arange(1.0, 301)
        for domains, places in itertools.product(DOMAINS, (1, 2)):
            with self.subTest(domains=domains, places=places):
                self.verified("cholesky", "--input", self.save("A.npy", matrix), "--rhs",
                              self.save("b.npy", rhs), "--output", self.path("L.npy"),
                              "--solution", self.path("x.npy"), "--domains", domains, "--tile", 64,
                              "--places", places if "host" not in domains else 1)
                error = relative_error(np.load(self.path("L.npy")),
                                       scipy.linalg.cholesky(matrix, lower=True))
                self.assertLess(error, 3000 * np.finfo(float).eps)
                error = relative_error(np.load(self.path("x.npy")).ravel(),
                                       scipy.linalg.solve(matrix, rhs, assume_a="pos"))
                self.assertLess(error, 3000 * np.finfo(float).eps)

    def test_cholesky_on_cuda_passes_verification_in_single_precision(self):
        self.verified("cholesky", "--n", 200, "--tile", 64, "--precision", "float", "--domains",
                      "cuda:0")

    def test_the_doctor_reports_the_cuda_domain_as_verified(self):
        output, _ = self.weir("doctor", "--domains", "cuda:0", "--json")
        checks = json.loads(output)["checks"]
        self.assertTrue(any(check["check"].startswith("domain cuda") and "verified" in check["found"]
                            for check in checks), checks)

    def test_portable_kernels_on_cuda_pass_verification(self):
        """The driver for tests compiles them, also those that a macro makes."""
        self.environment["XDG_CACHE_HOME"] = self.path("cache")
        self.verified("laplacian", "--n", 64, "--domains", "cuda:0")
        self.verified("kmeans", "--size", "tiny", "--domains", "host,cuda:0")

    def test_a_matrix_that_is_not_positive_definite_fails_with_its_leading_minor(self):
        """The run fails, since later calls see it, and names the minor."""
        matrix = positive_definite(256)
        matrix[10, 10] = -1
        message = self.refusal("run", "cholesky", "--input", self.save("A.npy", matrix), "--tile",
                               32, "--domains", "cuda:0", "--repeat", 3, code=RUN_FAILED)
        self.assertIn("the leading minor of order 11 is not positive definite", message)

    def test_a_missing_cublas_is_reported_with_the_package_that_has_it(self):
        self.environment["WEIR_CUBLAS"] = "/nonexistent"
        message = self.refusal("run", "matmul", "--n", 64, "--domains", "cuda:0",
                               code=(RUN_FAILED, UNAVAILABLE))
        self.assertIn("there is no cuBLAS for the tile kernels: ", message)
        self.assertIn("nvidia-cublas", message)


if __name__ == "__main__":
    weir_cli.main()
