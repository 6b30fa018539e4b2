"""Draws with `weir run reyes`: counts of tasks that are known, NumPy's counts, and NumPy's surface."""

import functools
import os

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, CARD, CARDS, DEADLINE, MIXED, RUN_FAILED, USAGE

# Screen: tasks of split, dice and shade, as the authors of VersaPipe and Piko have them.
KNOWN = {(512, 384): (20286, 10159, 91431), (640, 480): (33826, 16929, 152361),
         (1024, 768): (79990, 40011, 360099)}
COVERED = {(640, 480): 43306}
SMALL = (160, 120)

# Curves that go round the axis: radius and height of their control points.
PROFILES = (((80, 30), (80, 12), (60, 3), (60, 0)), ((60, 90), (70, 69), (80, 48), (80, 30)),
            ((56, 90), (53.5, 95.25), (57.5, 95.25), (60, 90)),
            ((8, 102), (16, 96), (52, 96), (52, 90)),
            ((0, 120), (32, 120), (0, 108), (8, 102)), ((50, 90), (52, 90), (54, 90), (56, 90)))
# x and z of an inner and an outer curve, and how wide the tube is between them.
TUBES = (((68, 51, 68, 18, 26.4), (104, 51, 124, 27, 26.4), (92, 78, 96, 75, 10),
          (108, 90, 132, 90, 10)),
         ((108, 90, 132, 90, 10), (112, 93, 141, 93.75, 10), (116, 93, 138, 94.5, 6),
          (112, 90, 128, 90, 6)),
         ((-64, 75, -60, 84, 12), (-92, 75, -100, 84, 12), (-108, 75, -120, 84, 12),
          (-108, 66, -120, 66, 12)),
         ((-108, 66, -120, 66, 12), (-108, 57, -120, 48, 12), (-100, 39, -106, 31.5, 12),
          (-80, 30, -76, 18, 12)))


@functools.lru_cache
def teapot():
    """32 patches of 4 x 4 points in float32."""
    patches = []
    for profile in PROFILES:
        for rotations in range(4):
            rows = []
            for radius, height in profile:
                arm = 18 if radius == 32 else 0.56 * radius
                points = np.array([(radius, 0), (radius, arm), (arm, radius), (0, radius)])
                for _ in range(rotations):
                    points = np.stack([-points[:, 1], points[:, 0]], axis=1)
                rows.append(np.column_stack([points, np.full(4, height)]))
            patches.append(rows)
    for tube in TUBES:
        for side in (1, -1):
            rows = [[(x, 0, z), (x, side * w, z), (far_x, side * w, far_z), (far_x, 0, far_z)]
                    for x, z, far_x, far_z, w in tube]
            patches.append([row[::side] for row in rows])
    raw = np.array(patches).astype(np.float32) * np.float32(1 / np.float32(141))
    x, y, z = np.moveaxis(raw, -1, 0)
    return np.stack([x, z - np.float32(0.5), np.float32(1) - y], axis=-1)


def project(points, width, height):
    """On the screen, with the rounding of float32 where the points have it."""
    real = points.dtype.type
    near, far = real(0.02), real(100)
    top = near * real(np.tan(real(np.pi) / real(6)))
    right = top * (real(width) / real(height))
    w = real(3) - points[..., 2]
    x = (2 * near / (right + right)) * points[..., 0] / w
    y = (2 * near / (top + top)) * points[..., 1] / w
    depth = (far + near) / (far - near) - 2 * far * near / (far - near) / w
    return (x + 1) * real(0.5) * real(width), (y + 1) * real(0.5) * real(height), depth


def expected_tasks(width, height):
    """Splits all patches of a generation at once."""
    patches, split, diced = teapot(), 0, 0
    while len(patches):
        split += len(patches)
        x, y, _ = project(patches, width, height)
        sizes = []
        for axis in (2, 1):
            steps = np.sqrt(np.diff(x, axis=axis) ** 2 + np.diff(y, axis=axis) ** 2)
            first, second, third = np.moveaxis(steps, axis, 0)
            sizes.append((first + second + third).max(axis=1))
        long_u, long_v = sizes[0] >= 4, sizes[1] >= 4
        diced += np.count_nonzero(~long_u & ~long_v)
        halves = []
        for chosen, axis in ((long_u, 2), (long_v & ~long_u, 1)):
            a, b, c, d = np.moveaxis(patches[chosen], axis, 0)
            def mid(p, q):
                return (p + q) * np.float32(0.5)
            ab, bc, cd = mid(a, b), mid(b, c), mid(c, d)
            abc, bcd = mid(ab, bc), mid(bc, cd)
            centre = mid(abc, bcd)
            halves += [np.stack(part, axis) for part in ((a, ab, abc, centre), (centre, bcd, cd, d))]
        patches = np.concatenate(halves)
    return split, diced, 9 * diced


def surface(width, height, steps=200):
    """The nearest depth of points of the patches in each pixel, in double."""
    t = np.linspace(0, 1, steps)
    weights = np.stack([(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t ** 2, t ** 3])
    nearest = np.full((height, width), np.inf)
    for patch in teapot().astype(float):
        points = np.einsum("iu,jv,ijc->uvc", weights, weights, patch).reshape(-1, 3)
        x, y, depth = project(points, width, height)
        np.minimum.at(nearest, (y.astype(int), x.astype(int)), depth)
    return nearest


def spread(mask):
    """The pixels of a mask and those around them."""
    padded = np.pad(mask, 1)
    return functools.reduce(np.logical_or, (padded[1 + dy:1 + dy + mask.shape[0],
                                                   1 + dx:1 + dx + mask.shape[1]]
                                            for dy in (-1, 0, 1) for dx in (-1, 0, 1)))


def read_map(path):
    with open(path, "rb") as file:
        magic, size, _, pixels = file.read().split(b"\n", 3)
    assert magic == b"P6"
    width, height = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


class ReyesTest(weir_cli.CliTest):
    def draw(self, size, *options, name="teapot.ppm"):
        report = self.report("reyes", "--width", size[0], "--height", size[1], "--output",
                             self.path(name), *options)
        return report, read_map(self.path(name))

    def tasks(self, report):
        return tuple(report["stages"][name] for name in ("split", "dice", "shade"))

    def test_tasks_and_covered_pixels_equal_the_published_counts(self):
        for size, counts in KNOWN.items():
            with self.subTest(size):
                report, picture = self.draw(size)
                self.assertEqual(self.tasks(report), counts)
                self.assertEqual(counts[1] - 32, (counts[0] - 32) // 2)
                self.assertEqual(picture.shape, (size[1], size[0], 3))
                if size in COVERED:
                    self.assertEqual(report["results"]["covered pixels"], COVERED[size])

    def test_tasks_equal_those_counted_by_numpy(self):
        for size in (SMALL, (333, 200), (1, 1), (200, 333), (1024, 768)):
            with self.subTest(size):
                self.assertEqual(self.tasks(self.draw(size)[0]), expected_tasks(*size))

    def test_the_picture_does_not_depend_on_the_pipeline_options(self):
        _, expected = self.draw(SMALL, "--domains", "host:cores=1")
        for options in ((), ("--baseline",), ("--no-batching",), ("--end", "timeout"),
                        ("--relief", "off"), ("--relief", "warp"), ("--places", 2),
                        ("--places", 2, "--baseline"), ("--domains", "host:cores=1,host:cores=1")):
            with self.subTest(options):
                report, picture = self.draw(SMALL, *options)
                np.testing.assert_array_equal(picture, expected)
                self.assertEqual(self.tasks(report), expected_tasks(*SMALL))
                self.assertEqual(report["form"], "baseline" if "--baseline" in options else "pipeline")

    def test_the_picture_on_a_device_equals_that_of_the_host(self):
        _, expected = self.draw(SMALL, "--domains", "host:cores=1")
        for domains in CARDS:
            for options in ((), ("--no-batching",), ("--baseline",)):
                with self.subTest(domains=domains, options=options):
                    report, picture = self.draw(SMALL, "--domains", domains, *options)
                    np.testing.assert_array_equal(picture, expected)
                    self.assertEqual(self.tasks(report), expected_tasks(*SMALL))

    def test_counts_with_a_device_equal_the_published_ones(self):
        for domains in (MIXED, CARD):
            with self.subTest(domains=domains):
                report, _ = self.draw((1024, 768), "--domains", domains)
                self.assertEqual(self.tasks(report), KNOWN[1024, 768])

    def test_the_pipeline_on_a_device_is_over_22_percent_faster_than_its_baseline(self):
        self.assertGreater(self.gain("reyes"), 1.22)

    def test_tasks_on_opencl_equal_those_counted_by_numpy(self):
        report, _ = self.draw((320, 240), "--domains", self.require_opencl())
        self.assertEqual(self.tasks(report), expected_tasks(320, 240))

    def test_covered_pixels_are_those_of_the_surface_of_numpy(self):
        width, height = size = (320, 240)
        _, picture = self.draw(size)
        covered = (picture[::-1] != (0, 0, 51)).any(axis=-1)
        hit = np.isfinite(surface(width, height))
        near = spread(spread(hit))  # micropolygons are of two pixels, and one goes beyond its patch
        self.assertFalse(np.any(covered & ~spread(near)))
        self.assertFalse(np.any(hit & ~spread(covered)))
        self.assertLess(np.count_nonzero(covered & ~hit), 0.03 * np.count_nonzero(hit))
        self.assertGreater(np.count_nonzero(hit), 5000)

    def test_the_body_varies_in_shade_with_blue_over_green_over_red(self):
        """The left and the right of the body mirror each other except for the light."""
        _, picture = self.draw((320, 240))
        body = picture[120:170, 110:210].astype(int)
        self.assertGreater(body.std(), 5)
        self.assertTrue(np.all(body[..., 2] >= body[..., 1]))
        self.assertTrue(np.all(body[..., 1] >= body[..., 0]))

    def test_the_pipeline_keeps_few_items_and_the_baseline_whole_generations(self):
        """A worker keeps a path through the tree; the chunk loop holds whole generations."""
        report, _ = self.draw((1024, 768), "--domains", "host:cores=1")
        self.assertLessEqual(report["kept"]["split"], 64 * 22 + 2)
        self.assertLessEqual(report["kept"]["shade"], 64 * 9 + 9)
        self.assertEqual(report["meetings"], 0)
        baseline, _ = self.draw((1024, 768), "--baseline")
        self.assertEqual(baseline["held"]["shade"], 360099)
        self.assertEqual(baseline["meetings"], 16)

    def test_verification_passes_and_the_output_is_a_png(self):
        report = self.report("reyes", "--width", 200, "--height", 150, "--verify", "--output",
                             self.path("teapot.png"))
        self.assertIs(report["verified"], True)
        self.assertEqual([check["value"] for check in report["checks"]], [0, 0, 0])
        with open(self.path("teapot.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_invalid_options_and_expired_timeouts_are_refused_and_leave_no_file(self):
        for options, code, word in (
            (("--width", 0), USAGE, "--width"),
            (("--height", 8193), USAGE, "--height"),
            (("--input", "kettle.obj"), USAGE, "--input: reyes does not use this option"),
            (("--output", "teapot.gif"), BAD_INPUT, ".ppm"),
            (("--domains", "sim"), (BAD_INPUT, RUN_FAILED, weir_cli.UNAVAILABLE), "host domain"),
            (("--width", 8192, "--height", 8192, "--timeout", "1e-6"), DEADLINE, "is not at its end"),
            (("--timeout", "1e-6", "--baseline"), DEADLINE, "was over"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "reyes", *options, code=code))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    weir_cli.main()
