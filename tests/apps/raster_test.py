"""Draws with `weir run raster`: counts of tasks that are known, and every pixel by NumPy."""

import os

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, CARD, CARDS, DEADLINE, USAGE

KNOWN_BINS, KNOWN_PIXELS = 2913, 160518  # of a picture of 1024 x 768, as the authors of Piko have it

CORNERS = np.array([(1, -1, -1), (1, -1, 1), (-1, -1, 1), (-1, -1, -1), (1, 1, -1), (1, 1, 1),
                    (-1, 1, 1), (-1, 1, -1)], float)
FACES = {(0, 0, -1): ((4, 0, 3), (4, 3, 7)), (-1, 0, 0): ((2, 6, 7), (2, 7, 3)),
         (0, 0, 1): ((1, 5, 2), (5, 6, 2)), (1, 0, 0): ((0, 4, 1), (4, 5, 1)),
         (0, 1, 0): ((4, 7, 5), (7, 6, 5)), (0, -1, 0): ((0, 1, 2), (0, 2, 3))}
MATERIAL, AMBIENT = np.array([0.9, 0.9, 0.6]), np.array([0.15, 0.15, 0.30])


def unit(vector):
    return vector / np.linalg.norm(vector)


def expected_picture(width, height, degrees):
    """Returns the colours in double, the pixels that are covered, and bins of 8 x 8 with pixels."""
    angle = np.radians(degrees)
    eye = np.array([4 * np.cos(angle) + 3 * np.sin(angle), 3, 3 * np.cos(angle) - 4 * np.sin(angle)])
    away = unit(eye)
    right = unit(np.cross((0, 1, 0), away))
    up = np.cross(away, right)
    zoom = 1 / np.tan(np.radians(46.826447) / 2)
    colours, nearest = np.zeros((height, width, 3)), np.full((height, width), np.inf)
    bins = 0
    centre_x, centre_y = np.meshgrid(16 * np.arange(width) + 8, 16 * np.arange(height) + 8)
    for normal, triangles in FACES.items():
        for triangle in triangles:
            corners = CORNERS[list(triangle)]
            from_eye = corners - eye
            distance = -from_eye @ away
            x = ((from_eye @ right * zoom * height / width / distance + 1) * width * 8).astype(int)
            y = ((from_eye @ up * zoom / distance + 1) * height * 8).astype(int)
            depth = 1000 / 999.9 * (1 - 0.1 / distance)
            facing = [max(0, np.dot(normal, unit(eye - corner))) for corner in corners]
            light = np.clip(np.outer(facing, MATERIAL) + AMBIENT, 0, 1)
            if (y[2] - y[0]) * (x[1] - x[0]) - (x[2] - x[0]) * (y[1] - y[0]) <= 0:
                continue
            sides = [(x[j] - x[i]) * (centre_y - y[i]) - (y[j] - y[i]) * (centre_x - x[i])
                     for i, j in ((1, 2), (2, 0), (0, 1))]
            inside = np.minimum.reduce(sides) >= 0
            shares = np.stack(sides) / np.sum(sides, axis=0)
            z = np.tensordot(depth, shares, 1)
            seen = inside & (z < nearest)
            nearest[seen] = z[seen]
            colours[seen] = np.einsum("ck,cyx->yxk", light, shares)[seen] * 255
            padded = np.pad(inside, ((0, -height % 8), (0, -width % 8)))
            bins += np.count_nonzero(
                padded.reshape(padded.shape[0] // 8, 8, -1, 8).any(axis=(1, 3)))
    return colours[::-1], np.isfinite(nearest)[::-1], bins


def read_map(path):
    with open(path, "rb") as file:
        magic, size, _, pixels = file.read().split(b"\n", 3)
    assert magic == b"P6"
    width, height = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


class RasterTest(weir_cli.CliTest):
    def draw(self, size, *options):
        report = self.report("raster", "--width", size[0], "--height", size[1], "--output",
                             self.path("cube.ppm"), *options)
        return report, read_map(self.path("cube.ppm"))

    def test_tasks_and_covered_pixels_equal_the_published_counts(self):
        report, picture = self.draw((1024, 768))
        self.assertEqual(report["stages"], {"vertex": 1200, "raster": 100 * KNOWN_BINS})
        self.assertEqual([drawn["covered"] for drawn in report["pictures"]], [KNOWN_PIXELS] * 100)
        self.assertEqual(len({drawn["hash"] for drawn in report["pictures"]}), 1)
        self.assertEqual(report["results"]["covered pixels"], 100 * KNOWN_PIXELS)
        self.assertEqual(np.count_nonzero(picture.any(axis=-1)), KNOWN_PIXELS)

    def test_every_pixel_agrees_with_numpy(self):
        for size, angle, show in (((1024, 768), 0, 1), ((320, 200), 37.5, 4), ((101, 207), -50, 3),
                                 ((64, 64), 90, 2)):
            with self.subTest(size=size, angle=angle):
                report, picture = self.draw(size, "--turn", angle, "--show", show, "--pictures", 4)
                colours, covered, bins = expected_picture(*size, angle * (show - 1))
                np.testing.assert_array_equal(picture.any(axis=-1), covered)
                self.assertLess(np.max(np.abs(picture[covered] + 0.5 - colours[covered])), 1)
                self.assertEqual(report["pictures"][show - 1]["covered"], np.count_nonzero(covered))
                if angle == 0:
                    self.assertGreaterEqual(report["stages"]["raster"], 4 * bins)

    def test_pictures_do_not_depend_on_the_pipeline_options(self):
        film = ("--pictures", 9, "--turn", 13, "--show", 9)
        expected, picture = self.draw((200, 150), *film, "--domains", "host:cores=1")
        self.assertEqual(len({drawn["hash"] for drawn in expected["pictures"]}), 9)
        for options in ((), ("--baseline",), ("--no-batching",), ("--end", "timeout"),
                        ("--relief", "off"), ("--relief", "warp"), ("--places", 2),
                        ("--places", 2, "--baseline")):
            with self.subTest(options):
                report, same = self.draw((200, 150), *film, *options)
                np.testing.assert_array_equal(same, picture)
                for member in ("pictures", "stages", "results"):
                    self.assertEqual(report[member], expected[member])
                self.assertEqual(report["meetings"], 18 if "--baseline" in options else 0)

    def test_pictures_on_a_device_equal_those_of_the_host(self):
        film = ("--pictures", 9, "--turn", 13, "--show", 9)
        expected, picture = self.draw((203, 150), *film, "--domains", "host:cores=1")
        for domains in CARDS:
            for options in ((), ("--no-batching",), ("--baseline",)):
                with self.subTest(domains=domains, options=options):
                    report, same = self.draw((203, 150), *film, "--domains", domains, *options)
                    np.testing.assert_array_equal(same, picture)
                    for member in ("pictures", "results"):
                        self.assertEqual(report[member], expected[member])
                    bins = expected["stages"]["raster"]
                    self.assertEqual(report["stages"], {"vertex": 12 * 9, "raster": bins,
                                                        "blend": bins})

    def test_counts_on_a_device_equal_the_published_ones(self):
        report, _ = self.draw((1024, 768), "--pictures", 3, "--domains", CARD)
        self.assertEqual(report["stages"], {"vertex": 36, "raster": 3 * KNOWN_BINS,
                                            "blend": 3 * KNOWN_BINS})
        self.assertEqual([drawn["covered"] for drawn in report["pictures"]], [KNOWN_PIXELS] * 3)

    def test_the_pipeline_on_a_device_is_over_22_percent_faster_than_its_baseline(self):
        self.assertGreater(self.gain("raster", "--pictures", 10), 1.22)

    def test_a_run_with_a_device_that_skips_its_kernels_succeeds(self):
        self.report("raster", "--width", 3, "--height", 2, "--pictures", 2, "--domains",
                    "host:cores=1,sim:cores=1,gflops=100,kernels=skip")

    def test_verification_passes_on_opencl(self):
        report, _ = self.draw((320, 200), "--pictures", 2, "--verify", "--domains",
                              self.require_opencl())
        self.assertIs(report["verified"], True)

    def test_pictures_fetched_in_chunks_equal_those_of_the_pipeline(self):
        options = ("--pictures", 9, "--turn", 51, "--width", 200, "--height", 150, "--show", 4)
        expected = self.report("raster", *options, "--output", self.path("piped.ppm"))
        for domains in ("host", "host:cores=1,sim:cores=1"):
            for chunk in ("learned", "one", "static"):
                with self.subTest(domains=domains, chunk=chunk):
                    report = self.report("raster", *options, "--domains", domains, "--chunk",
                                         chunk, "--verify", "--output", self.path("fetched.ppm"))
                    self.assertIs(report["verified"], True)
                    self.assertEqual(report["form"], "shared")
                    self.assertEqual(report["pictures"], expected["pictures"])
                    with open(self.path("piped.ppm"), "rb") as piped, \
                            open(self.path("fetched.ppm"), "rb") as fetched:
                        self.assertEqual(fetched.read(), piped.read())
        listed, _ = self.weir("run", "raster", "--chunk", "help")
        self.assertIn("weighted-factoring", listed)

    def test_verification_finds_no_difference_in_seven_pictures(self):
        report = self.report("raster", "--pictures", 7, "--turn", 51, "--width", 333, "--verify")
        self.assertIs(report["verified"], True)
        self.assertEqual(report["checks"][0]["value"], 0)

    def test_png_output_begins_with_the_signature_of_png(self):
        self.report("raster", "--pictures", 1, "--output", self.path("cube.png"))
        with open(self.path("cube.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_invalid_options_and_expired_timeouts_are_refused_and_leave_no_file(self):
        for options, code, word in (
            (("--width", 0), USAGE, "--width"),
            (("--pictures", 0), USAGE, "--pictures"),
            (("--turn", "far"), USAGE, "--turn"),
            (("--precision", "float"), USAGE, "unknown option '--precision'"),
            (("--pictures", 5, "--show", 6), BAD_INPUT, "--show 6"),
            (("--input", "cube.obj"), USAGE, "--input: raster does not use this option"),
            (("--output", "cube.jpg"), BAD_INPUT, ".ppm"),
            (("--chunk", "one", "--baseline"), weir_cli.UNAVAILABLE, "--baseline"),
            (("--pictures", 1000000, "--timeout", "1e-6"), DEADLINE, "'raster' is not at its end"),
            (("--timeout", "1e-6", "--baseline"), DEADLINE, "was over"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "raster", *options, code=code))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    weir_cli.main()
