"""Compares `weir run wave` with NumPy, and gives it what it must refuse."""

import itertools

import numpy as np

import numpy_wave
import weir_cli
from weir_cli import BAD_INPUT, DOMAINS, TYPES, USAGE, relative_error

CARD = "sim:clock=virtual,gflops=35,memory_gbps=14,gbps=6,kernels=skip"


def expected_field(n, steps):
    wave = numpy_wave.Propagation(numpy_wave.squared_speed(n, 2 * n // 3))
    centre = (n // 2,) * 3
    for step in range(steps):
        def inject(field, amplitude=numpy_wave.ricker(step)):
            field[centre] += amplitude
        wave.step(inject)
    return wave.now


class WaveTest(weir_cli.CliTest):
    def check(self, n, steps, precision, *options):
        report = self.report("wave", "--n", n, "--steps", steps, "--precision", precision,
                             "--output", self.path("u.npy"), *options)
        field = np.load(self.path("u.npy"))
        self.assertEqual((field.dtype, field.shape), (TYPES[precision], (n, n * n)))
        error = relative_error(field.T.reshape(n, n, n), expected_field(n, steps))
        self.assertLess(error, 10 * steps * np.finfo(TYPES[precision]).eps)
        return report

    def test_the_field_equals_that_of_numpy_on_all_domains(self):
        domains = DOMAINS + ("sim:cores=1,sim:cores=1,sim:cores=1", "sim:cores=2,order=device")
        for domain, overlap in itertools.product(domains, ("on", "off")):
            for precision in TYPES:
                with self.subTest(domains=domain, overlap=overlap, precision=precision):
                    self.check(24, 50, precision, "--domains", domain, "--overlap", overlap)

    def test_the_field_equals_that_of_numpy_for_all_sizes_planes_and_places(self):
        for n, planes, places, steps in ((1, 1, 1, 3), (5, 2, 1, 1), (8, 1, 2, 20), (17, 3, 2, 21),
                                         (33, 100, 1, 12)):
            with self.subTest(n=n, planes=planes, places=places):
                self.check(n, steps, "double", "--tile", planes, "--domains", "sim:cores=2",
                           "--places", places)

    def test_the_number_of_tiles_determines_the_planes_of_each(self):
        report = self.check(32, 3, "double", "--tiles", 4, "--domains", "sim:cores=1")
        self.assertEqual((report["params"]["tile"], report["tiles"]), (8, 4))

    def test_a_tile_has_the_planes_that_it_was_given(self):
        for n, tile, domains, places, tiles in (
                (64, 12, "host:cores=1", 1, 6), (20, 20, "sim:cores=1", 1, 1),
                (32, 7, "sim:cores=2", 2, 8)):  # of 16 planes 2 x 4 are edges, and 7 + 1 inside
            with self.subTest(n=n, tile=tile):
                report = self.check(n, 3, "double", "--tile", tile, "--domains", domains, "--places",
                                    places)
                self.assertEqual((report["params"]["tile"], report["tiles"]), (tile, tiles))

    def test_the_field_on_opencl_equals_that_of_numpy(self):
        _, message = self.weir("info", "--domains", "opencl:0", code=tuple(range(7)))
        if message:
            self.skipTest(f"there is no opencl:0: {message.strip()}")
        for domains in ("opencl:0", "host,opencl:0,alias=off"):
            self.check(20, 30, "double", "--domains", domains)

    def test_verification_passes_on_host_and_device(self):
        report = self.report("wave", "--n", 20, "--steps", 40, "--domains", weir_cli.MIXED,
                             "--verify")
        self.assertIs(report["verified"], True)

    def time(self, cards, overlap):
        report = self.report("wave", "--n", 64, "--steps", 30, "--precision", "float", "--domains",
                             ",".join([CARD] * cards), "--overlap", overlap)
        return report["seconds"]["median"]

    def test_devices_scale_to_90_percent_and_overlap_gains_10_percent(self):
        alone = self.time(1, "on")
        for cards in (2, 4):
            self.assertGreater(alone / (cards * self.time(cards, "on")), 0.9)
        self.assertGreater(self.time(4, "off") / self.time(4, "on"), 1.1)

    def test_help_of_applications_without_input_mentions_no_matrix_to_read(self):
        for app in ("laplacian", "rtm", "sparse-cholesky", "wave"):
            output, _ = self.weir("run", app, "--help")
            self.assertNotIn("Matrix to read", output)

    def test_invalid_options_are_refused_with_a_reason(self):
        for options, code, word in (
            (("--n", 2000000000), BAD_INPUT, "--n"),
            (("--n", 6, "--domains", "sim:cores=2", "--places", 2), BAD_INPUT, "planes"),
            (("--input", "A.mtx"), USAGE, "--input: wave does not use this option"),
            (("--output", "u.txt"), BAD_INPUT, "'.txt'"),
            (("--steps", 0), USAGE, "--steps"),
            (("--overlap", "perhaps"), USAGE, "--overlap"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "wave", *options, code=code))


if __name__ == "__main__":
    weir_cli.main()
