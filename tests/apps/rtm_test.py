"""Compares the image of `weir run rtm` with NumPy's, and gives it what it must refuse."""

import functools
import os

import numpy as np

import numpy_wave
import weir_cli
from weir_cli import BAD_INPUT, TYPES, USAGE, relative_error

N, STEPS, EVERY = 32, 224, 3
INTERFACE, DEPTH = 2 * N // 3, N // 5 + 2  # of the layers; of the shot and the receivers
FIRST = DEPTH + 10  # plane that the image is looked at from


def shoot(speed, snapshots=None):
    """The plane of the receivers in each step; also keeps every EVERY-th field."""
    wave, traces = numpy_wave.Propagation(speed), []
    for step in range(STEPS):
        def inject(field, amplitude=numpy_wave.ricker(step)):
            field[DEPTH, N // 2, N // 2] += amplitude
        wave.step(inject)
        traces.append(wave.now[DEPTH].copy())
        if snapshots is not None and (step + 1) % EVERY == 0:
            snapshots[step + 1] = wave.now.copy()
    return np.array(traces)


@functools.lru_cache
def expected_image():
    background, snapshots = numpy_wave.squared_speed(N, N), {}
    residual = shoot(numpy_wave.squared_speed(N, INTERFACE)) - shoot(background, snapshots)
    changes = residual - np.concatenate([residual[1:], np.zeros((1, N, N))])
    wave, image = numpy_wave.Propagation(background), np.zeros((N, N, N))
    for made in range(STEPS, 0, -1):
        def inject(field, change=changes[made - 1]):
            field[DEPTH] += change
        wave.step(inject)
        if made in snapshots:
            image += snapshots[made] * wave.now
    return image


class RtmTest(weir_cli.CliTest):
    def check(self, precision, *options):
        report = self.report("rtm", "--n", N, "--steps", STEPS, "--every", EVERY, "--precision",
                             precision, "--output", self.path("image.npy"), *options)
        found, expected = np.load(self.path("image.npy")), expected_image()[:, N // 2, :]
        self.assertEqual((found.dtype, found.shape), (TYPES[precision], (N, N)))
        tolerance = 100 * STEPS * np.finfo(TYPES[precision]).eps
        self.assertLess(relative_error(found, expected), tolerance)
        self.assertLess(relative_error(found[FIRST:], expected[FIRST:]), 10 * tolerance)
        return report

    def test_the_image_equals_that_of_numpy_on_all_domains(self):
        for precision, domains in (("double", "host"), ("float", "host"), ("double", "sim:cores=2"),
                                   ("double", weir_cli.MIXED), ("float", "sim,sim,sim")):
            for overlap in ("on", "off"):
                with self.subTest(precision=precision, domains=domains, overlap=overlap):
                    self.check(precision, "--domains", domains, "--overlap", overlap)

    def test_the_image_is_strongest_at_the_interface_of_the_ground(self):
        """What NumPy computes shows it there, and so does the application's own check."""
        begin, end = N // 2 - N // 8, N // 2 + N // 8
        profile = np.abs(expected_image()[:, begin:end, begin:end].sum(axis=(1, 2)))
        self.assertLess(abs(FIRST + np.argmax(profile[FIRST:]) - (INTERFACE - 0.5)), 1)
        self.assertIs(self.check("double", "--verify")["verified"], True)

    def test_verification_fails_after_too_few_steps(self):
        output, _ = self.weir("run", "rtm", "--n", N, "--steps", 4, "--repeat", 1, "--verify",
                              code=weir_cli.MISMATCH)
        self.assertIn("WRONG", output)

    def test_the_pgm_picture_is_strongest_at_the_interface(self):
        self.report("rtm", "--n", N, "--output", self.path("image.pgm"))
        with open(self.path("image.pgm"), "rb") as file:
            header, pixels = file.read().split(b"255\n", 1)
        self.assertEqual(header, f"P5\n{N} {N}\n".encode())
        shades = np.frombuffer(pixels, np.uint8).reshape(N, N)
        strongest = np.unravel_index(np.argmax(np.abs(shades[FIRST:].astype(int) - 127)),
                                     (N - FIRST, N))
        self.assertLessEqual(abs(FIRST + strongest[0] - (INTERFACE - 0.5)), 1.5)

    def test_invalid_options_are_refused_and_leave_no_file(self):
        for options, code, word in (
            (("--n", 31), BAD_INPUT, "31"),
            (("--n", 2000000000), BAD_INPUT, "--n"),
            (("--steps", 3, "--every", 4), BAD_INPUT, "--every"),
            (("--input", "ground.npy"), USAGE, "--input: rtm does not use this option"),
            (("--output", "image.gif"), BAD_INPUT, ".pgm"),
            (("--every", 0), USAGE, "--every"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "rtm", *options, code=code))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    weir_cli.main()
