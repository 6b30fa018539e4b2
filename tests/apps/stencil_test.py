#!/usr/bin/python3
"""Runs stencil, with its switches, against NumPy: the same bits; and counts what it copies."""

import itertools

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, DEADLINE, MIXED, TYPES, USAGE

CARD = "sim:cores=1,gbps=6,gflops=100,clock=virtual"
COPIED = "bytes copied to devices / bytes of the matrix"


def expected(matrix, sweeps):
    fifth = matrix.dtype.type(0.2)
    for _ in range(sweeps):
        c, n, s = matrix[1:-1, 1:-1], matrix[:-2, 1:-1], matrix[2:, 1:-1]
        w, e = matrix[1:-1, :-2], matrix[1:-1, 2:]
        following = matrix.copy()
        following[1:-1, 1:-1] = ((((c + n) + s) + w) + e) * fifth
        matrix = following
    return matrix


class StencilTest(weir_cli.CliTest):
    def check(self, matrix, sweeps, *options):
        precision = "float" if matrix.dtype == np.float32 else "double"
        report = self.report("stencil", "--input", self.save("a.npy", matrix), "--precision",
                             precision, "--sweeps", sweeps, "--output", self.path("b.npy"),
                             *options)
        found = np.load(self.path("b.npy"))
        self.assertEqual(found.dtype, matrix.dtype)
        self.assertTrue(np.array_equal(found, expected(matrix, sweeps)), options)
        return report

    def test_all_domains_and_pipeline_options_give_the_bits_of_numpy(self):
        random = np.random.default_rng(1)
        ways = ((), ("--baseline",), ("--lazy", "off"), ("--no-batching",), ("--relief", "off"),
                ("--relief", "warp"),
                ("--baseline", "--relief", "off"))
        for domains, precision, way in itertools.product(("host", MIXED, CARD), TYPES, ways):
            with self.subTest(domains=domains, precision=precision, way=way):
                matrix = random.standard_normal((50, 81)).astype(TYPES[precision])
                self.check(matrix, 3, "--tile", 16, "--domains", domains, *way)

    def test_all_sizes_tiles_and_sweeps_give_the_bits_of_numpy(self):
        random = np.random.default_rng(2)
        for shape, tile, sweeps in (((1, 1), 1, 2), ((2, 5), 3, 1), ((3, 3), 1, 4), ((1, 40), 7, 1),
                                    ((65, 64), 64, 1), ((33, 200), 8, 12)):
            for way in ((), ("--baseline",)):
                with self.subTest(shape=shape, tile=tile, way=way):
                    self.check(random.standard_normal(shape), sweeps, "--tile", tile, "--domains",
                               CARD, *way)

    def test_opencl_gives_the_bits_of_numpy(self):
        _, message = self.weir("info", "--domains", "opencl:0", code=tuple(range(7)))
        if message:
            self.skipTest(f"there is no opencl:0: {message.strip()}")
        matrix = np.random.default_rng(3).standard_normal((70, 90)).astype(np.float32)
        for way in ((), ("--baseline",)):
            self.check(matrix, 2, "--tile", 32, "--domains", "host:cores=1,opencl:0,alias=off", *way)

    def test_each_value_is_copied_once_and_five_times_by_the_baseline(self):
        n = 512
        lazy, baseline = (self.report("stencil", "--n", n, "--tile", 128, "--precision", "float",
                                      "--domains", CARD, "--verify", *way)
                          for way in ((), ("--baseline",)))
        self.assertIs(lazy["verified"], True)
        self.assertIs(baseline["verified"], True)
        self.assertEqual(lazy["results"][COPIED], 1)
        self.assertEqual(baseline["results"][COPIED], 5 * ((n - 2) / n) ** 2)
        self.assertGreater(baseline["seconds"]["median"], lazy["seconds"]["median"])  # in virtual time
        self.assertEqual(lazy["stages"], {"stencil": 16, "make": 16, "collect": 16})
        self.assertEqual(baseline["stages"]["stencil"], (n - 2) ** 2)

    def test_the_timeout_applies_to_all_sweeps_together(self):
        message = self.refusal("run", "stencil", "--baseline", "--n", 8, "--sweeps", 100000,
                               "--repeat", 1, "--timeout", 1, code=DEADLINE)
        self.assertIn("did not end within 1 s", message)

    def test_invalid_options_are_refused_with_a_reason(self):
        for options, code, word in (
            (("--sweeps", 0), USAGE, "--sweeps"),
            (("--lazy", "perhaps"), USAGE, "--lazy"),
            (("--output", "u.txt"), BAD_INPUT, "'.txt'"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "stencil", *options, code=code))


if __name__ == "__main__":
    weir_cli.main()
