"""Compares the seven applications of the paper on multiple streams with NumPy, SciPy and, where it
is installed, scikit-learn; on the host, on simulated devices and on an OpenCL driver for processors."""

import itertools
import math
import os
import struct
import zlib

import numpy as np
import scipy.fft
import scipy.spatial

import weir_cli
from weir_cli import BAD_INPUT, SIM, TYPES, USAGE, relative_error

try:
    import sklearn.cluster
except ImportError:
    sklearn = None

PLATFORMS = ("host", SIM, weir_cli.MIXED, "sim,sim:order=device", "opencl:0", "opencl:0,alias=off")
NON_STREAMED = ("--streams", 1, "--tiles", 1)


def png_of(shades):
    """A grey picture, as the simplest PNG."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    height, width = shades.shape
    lines = b"".join(b"\0" + bytes(line) for line in shades.astype(np.uint8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def pgm_of(shades):
    height, width = shades.shape
    return f"P5\n# a comment\n{width} {height}\n255\n".encode() + shades.astype(np.uint8).tobytes()


def read_pgm(path):
    with open(path, "rb") as file:
        kind, size, white, pixels = file.read().split(b"\n", 3)
    width, height = map(int, size.split())
    assert (kind, white) == (b"P5", b"255")
    return np.frombuffer(pixels, np.uint8).reshape(height, width)


def photograph(height, width):
    """Something with edges and soft shades."""
    y, x = np.mgrid[:height, :width]
    soft = 120 + 60 * np.sin(x / 9) * np.cos(y / 7)
    return np.clip(soft + 50 * ((x - width / 2) ** 2 + (y - height / 3) ** 2 < 150), 0, 255).round()


class StreamedTest(weir_cli.CliTest):
    def platforms(self):
        """All kinds of domains there are, each in both precisions where that is quick."""
        found = list(PLATFORMS)
        _, message = self.weir("info", "--domains", "opencl:0", code=tuple(range(7)))
        if message:
            found = [domains for domains in found if "opencl" not in domains]
        return [(domains, "float" if domains == SIM else "double") for domains in found]

    def forms(self):
        """Streamed on all platforms, and without streams on the host."""
        for domains, precision in self.platforms():
            yield precision, ("--domains", domains, "--streams", 3)
        yield "double", ("--domains", "host", *NON_STREAMED)

    def run_app(self, app, precision, *options):
        return self.report(app, "--precision", precision, "--verify", *options)

    def check_sizes(self, app):
        """Size tiny, which the application generates and verifies itself."""
        for precision, form in self.forms():
            with self.subTest(app=app, form=form):
                report = self.run_app(app, precision, "--size", "tiny", *form)
                self.assertIs(report["verified"], True)
                self.assertEqual(report["params"]["size"], "tiny")


class DotProductTest(StreamedTest):
    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("dotproduct")

    def test_dot_products_equal_exact_sums(self):
        random = np.random.default_rng(1)
        for n, tiles in ((1, 1), (7, 3), (16384, 2), (50001, 5)):
            for precision, form in self.forms():
                dtype = TYPES[precision]
                x, y = (random.standard_normal(n).astype(dtype) for _ in range(2))
                with self.subTest(n=n, form=form):
                    report = self.run_app(
                        "dotproduct", precision, "--input", self.save("x.npy", x), "--second",
                        self.save("y.npy", y), *form,
                        *(() if "--tiles" in form else ("--tiles", tiles)))
                    exact = math.fsum(float(a) * float(b) for a, b in zip(x, y))
                    scale = math.fsum(abs(float(a) * float(b)) for a, b in zip(x, y))
                    self.assertLess(abs(report["results"]["x . y"] - exact),
                                    100 * np.finfo(dtype).eps * scale)

    def test_a_csv_file_with_a_byte_order_mark_is_read(self):
        marked, plain = self.write("x.csv", "\ufeff1\r\n2\r\n3\r\n"), self.write("y.csv", "1\n2\n3\n")
        report = self.run_app("dotproduct", "double", "--input", marked, "--second", plain, "--tiles", 1)
        self.assertEqual(report["results"]["x . y"], 14)

    def test_vectors_of_unequal_length_or_two_columns_are_refused(self):
        long, short = self.save("long.npy", np.ones(5)), self.save("short.npy", np.ones(4))
        self.assert_names(self.refusal("run", "dotproduct", "--input", long, "--second", short,
                                       code=BAD_INPUT), 5, 4)
        wide = self.save("wide.npy", np.ones((3, 2)))
        self.assertIn("2 columns", self.refusal("run", "dotproduct", "--input", wide,
                                                code=BAD_INPUT))

    def test_a_dot_product_is_computed_without_a_blas_library(self):
        self.environment = {"WEIR_BLAS": "./no_such_blas.so"}
        report = self.report("dotproduct", "--size", "tiny", "--verify")
        self.assertIs(report["blas"]["available"], False)
        self.assertIs(report["verified"], True)


class PrefixSumTest(StreamedTest):
    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("prefixsum")

    def test_prefix_sums_equal_those_of_numpy(self):
        random = np.random.default_rng(2)
        for n, tiles in ((1, 1), (5, 9), (4097, 2), (40000, 7)):
            for precision, form in self.forms():
                x = random.integers(-99, 100, n).astype(TYPES[precision])
                with self.subTest(n=n, form=form):
                    self.run_app("prefixsum", precision, "--input", self.save("x.npy", x),
                                 "--output", self.path("y.npy"), *form,
                                 *(() if "--tiles" in form else ("--tiles", tiles)))
                    found = np.load(self.path("y.npy")).ravel()
                    self.assertEqual(found.dtype, x.dtype)
                    np.testing.assert_array_equal(found, np.cumsum(x))  # exact: whole numbers

    def test_many_numbers_far_smaller_than_the_first_pass_verification(self):
        """Each by itself is nothing beside the first."""
        for precision, form in self.forms():
            x = np.full(12000, np.finfo(TYPES[precision]).eps / 4, TYPES[precision])
            x[0] = 1
            with self.subTest(precision=precision, form=form):
                report = self.run_app("prefixsum", precision, "--input", self.save("x.npy", x),
                                      *form)
                self.assertIs(report["verified"], True)


class NearestTest(StreamedTest):
    def records(self, n, dtype=np.float64):
        random = np.random.default_rng(n)
        return np.stack([random.uniform(-90, 90, n), random.uniform(-180, 180, n)], 1).astype(dtype)

    def find(self, precision, path, *options):
        report = self.run_app("nn", precision, "--input", path, "--output", self.path("near.npy"),
                              *options)
        return report, np.load(self.path("near.npy"))

    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("nn")

    def test_neighbours_equal_those_of_scipy(self):
        for n, tiles, wanted in ((1, 1, 10), (3, 2, 10), (2049, 1, 10), (30000, 7, 25)):
            for precision, form in self.forms():
                records = self.records(n, TYPES[precision])
                tree = scipy.spatial.cKDTree(records.astype(float))
                expected, _ = tree.query((40, 120), min(wanted, n))
                with self.subTest(n=n, form=form):
                    _, found = self.find(precision, self.save("r.npy", records), "--neighbours",
                                         wanted, *form,
                                         *(() if "--tiles" in form else ("--tiles", tiles)))
                    eps = 1000 * np.finfo(TYPES[precision]).eps
                    np.testing.assert_allclose(found[:, 3], np.atleast_1d(expected), rtol=eps)
                    np.testing.assert_array_equal(found[:, 1:3],
                                                  records[found[:, 0].astype(int)].astype(float))

    def test_neighbours_of_equal_distance_are_in_the_order_of_the_file(self):
        records = np.tile([[41.0, 120.0], [39.0, 120.0]], (3000, 1))
        _, found = self.find("double", self.save("r.npy", records), "--tiles", 3)
        np.testing.assert_array_equal(found[:, 0], np.arange(10))

    def test_tiles_that_places_fetch_give_the_same_neighbours(self):
        records = self.save("r.npy", self.records(30000))
        _, dealt = self.find("double", records, "--tiles", 20)
        losing = "sim:clock=virtual,sim:clock=virtual,lost_at=9"
        for domains in ("host", weir_cli.MIXED, "sim,sim:speed=0.5", losing):
            for chunks in ("learned", "one", "static"):
                with self.subTest(domains=domains, chunks=chunks):
                    _, found = self.find("double", records, "--tiles", 20, "--chunk", chunks,
                                         "--domains", domains, "--verify")
                    np.testing.assert_array_equal(found, dealt)
        self.refusal("run", "nn", "--chunk", "sometimes", code=BAD_INPUT)

    def test_tiles_that_are_copied_together_give_the_same_neighbours(self):
        """Copies bring several tiles: 4 MiB, or an eighth of what a place gets."""
        records = self.save("r.npy", self.records(30000))
        _, expected = self.find("double", records, *NON_STREAMED)
        for domains in ("host", SIM, "sim:cores=2", weir_cli.MIXED):
            for tiles, places in ((8, 1), (16, 1), (100, 1), (150, 1)):
                with self.subTest(domains=domains, tiles=tiles):
                    _, found = self.find("double", records, "--tiles", tiles, "--places", places,
                                         "--domains", domains)
                    np.testing.assert_array_equal(found, expected)
        report, _ = self.find("double", records, "--tiles", 100, "--domains", SIM)
        self.assertEqual(report["actions"], 9 + 100 + 9)  # 100 / 8 tiles each

    def test_records_of_a_csv_file_with_a_header_give_the_neighbours_of_numpy(self):
        records = self.records(500)
        text = "latitude, longitude\r\n" + "".join(f"{a:.17g} ,{b:.17g}\n\n" for a, b in records)
        _, found = self.find("double", self.write("r.csv", text), "--latitude", -3, "--longitude",
                             7.5, "--neighbours", 4)
        order = np.argsort(np.hypot(records[:, 0] + 3, records[:, 1] - 7.5))[:4]
        np.testing.assert_array_equal(found[:, 0], order)

    def test_faulty_records_and_wrong_options_are_refused(self):
        for text, words in (
            ("1,2\n3,four\n", ("2", "column 2", "'four'")),
            ("1,2\n3,\n", ("2", "column 2", "''")),
            ("1,2\n3\n", ("2", "1 column,", "2")),
            ("1,2\nnan,3\n", ("2", "column 1", "'nan'")),
            ("1,2\n3,inf\n", ("2", "column 2", "'inf'")),
            ("a,b\n", ("no row",)),
            ("", ("no row",)),
            ("1,2,3\n", ("3 columns", "latitude")),
            ("91,2\n", ("record 1", "latitude", "91")),
        ):
            with self.subTest(text):
                path = self.write("r.csv", text)
                message = self.refusal("run", "nn", "--input", path, code=BAD_INPUT)
                self.assertIn(path, message)
                for word in words:
                    self.assertIn(word, message)
        self.refusal("run", "nn", "--neighbours", 0, code=USAGE)
        self.refusal("run", "nn", "--size", "large", code=USAGE)
        self.refusal("run", "nn", "--size", "tiny", "--n", 5, code=USAGE)
        self.refusal("run", "nn", "--tiles", 0, code=USAGE)


class HotspotTest(StreamedTest):
    @staticmethod
    def expected(temperature, power, iterations):
        """Rodinia's formulas, all cells at once."""
        rows, columns = temperature.shape
        height, width, thickness = 0.016 / rows, 0.016 / columns, 0.0005
        capacity = 0.5 * 1.75e6 * thickness * width * height
        rx = width / (2 * 100 * thickness * height)
        ry = height / (2 * 100 * thickness * width)
        rz = thickness / (100 * height * width)
        step = 0.001 / (3e6 / (0.5 * thickness * 1.75e6)) / 1000
        t = temperature.astype(float)
        for _ in range(iterations):
            n, s = np.vstack([t[:1], t[:-1]]), np.vstack([t[1:], t[-1:]])
            w, e = np.hstack([t[:, :1], t[:, :-1]]), np.hstack([t[:, 1:], t[:, -1:]])
            t = t + step / capacity * (power + (n + s - 2 * t) / ry + (e + w - 2 * t) / rx
                                       + (80 - t) / rz)
        return t

    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("hotspot")

    def test_temperatures_equal_those_of_numpy(self):
        """Against what has changed, which is much less than the temperatures."""
        random = np.random.default_rng(3)
        for (rows, columns), tile, iterations in (((1, 1), 1, 1), ((3, 70), 16, 4),
                                                  ((65, 33), 20, 9)):
            temperature = random.uniform(300, 400, (rows, columns))
            power = random.uniform(0, 100, (rows, columns))
            expected = self.expected(temperature, power, iterations)
            files = ("--input", self.save("t.npy", temperature), "--power",
                     self.save("p.npy", power), "--output", self.path("out.npy"))
            for (domains, _), transform in itertools.product(self.platforms(), ("on", "off")):
                with self.subTest(shape=(rows, columns), domains=domains, transform=transform):
                    self.run_app("hotspot", "double", *files, "--tile", tile, "--streams", 3,
                                 "--iterations", iterations, "--domains", domains, "--transform",
                                 transform)
                    found = np.load(self.path("out.npy"))
                    change = np.abs(expected - temperature).max()
                    self.assertLess(np.abs(found - expected).max(), 1e-6 * change)

    def test_unusable_grids_and_options_are_refused(self):
        hot = np.ones((4, 4))
        hot[2, 1] = np.inf
        message = self.refusal("run", "hotspot", "--input", self.save("t.npy", hot), code=BAD_INPUT)
        self.assertIn("row 3, column 2", message)
        fine, other = self.save("t.npy", np.ones((4, 4))), self.save("p.npy", np.ones((4, 5)))
        self.assertIn("4 x 5", self.refusal("run", "hotspot", "--input", fine, "--power", other,
                                            code=BAD_INPUT))
        self.assertIn("too small", self.refusal("run", "hotspot", "--input", self.save(
            "t.npy", np.ones((1, 200000))), code=BAD_INPUT))
        self.refusal("run", "hotspot", "--transform", "perhaps", code=USAGE)
        self.refusal("run", "hotspot", "--iterations", 0, code=USAGE)


class LargeTest(StreamedTest):
    """Problems that no cache holds: what kernels write on host cores goes past it."""

    def outputs(self, app, precision, options, forms):
        for form in forms:
            with self.subTest(app=app, precision=precision, form=form):
                self.run_app(app, precision, *options, "--output", self.path("out.npy"), *form)
                yield np.load(self.path("out.npy"))

    def test_large_grids_have_the_same_bits_for_all_tile_sizes_and_shapes(self):
        """As long as the sample of speckle of srad is not cut."""
        random = np.random.default_rng(7)
        grid = random.uniform(0, 1, (1501, 1499))
        for app, precision in itertools.product(("hotspot", "srad"), TYPES):
            table = self.save("i.npy", (grid if app == "srad" else 300 + grid).astype(
                TYPES[precision]))
            first, *others = self.outputs(
                app, precision, ("--input", table, "--iterations", 2),
                (("--tile", 256), ("--tile", 333, "--aspect", 4), ("--tile", 700, "--aspect", 25),
                 NON_STREAMED, ("--tile", 500, "--domains", "sim,sim:cores=2")))
            for other in others:
                np.testing.assert_array_equal(first, other)

    def test_large_prefix_sums_equal_those_of_numpy(self):
        x = np.random.default_rng(8).integers(-99, 100, 3_300_001)
        for precision in TYPES:
            table = self.save("x.npy", x.astype(TYPES[precision]))
            expected = np.cumsum(x)
            for found in self.outputs("prefixsum", precision, ("--input", table), (
                    ("--tiles", 50), ("--tiles", 7, "--streams", 3), NON_STREAMED,
                    ("--tiles", 9, "--domains", weir_cli.MIXED))):
                np.testing.assert_array_equal(found.ravel(), expected)

    def test_the_aspect_of_tiles_does_not_change_the_number_of_actions(self):
        actions = {aspect: self.report("hotspot", "--n", 512, "--tile", 64, "--iterations", 1,
                                       "--aspect", aspect)["actions"] for aspect in (1, 4, 64, 10**6)}
        self.assertEqual(len(set(actions.values())), 1, actions)  # as many tiles
        self.refusal("run", "hotspot", "--aspect", 0, code=USAGE)
        self.refusal("run", "matmul", "--aspect", 2, code=USAGE)


class SradTest(StreamedTest):
    @staticmethod
    def expected(picture, iterations, rate):
        """Rodinia's formulas (version 2), all pixels at once."""
        j = np.exp(picture)
        rows, columns = j.shape
        south, east = np.r_[1:rows, rows - 1], np.r_[1:columns, columns - 1]
        north, west = np.r_[0, 0:rows - 1], np.r_[0, 0:columns - 1]
        for _ in range(iterations):
            sample = j[:128, :128]
            q0 = max(np.mean(sample ** 2) - np.mean(sample) ** 2, 1e-20) / np.mean(sample) ** 2
            dn, ds = j[north] - j, j[south] - j
            dw, de = j[:, west] - j, j[:, east] - j
            g2, l = (dn**2 + ds**2 + dw**2 + de**2) / j**2, (dn + ds + dw + de) / j
            q = (0.5 * g2 - l**2 / 16) / (1 + 0.25 * l)**2
            c = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
            j = j + 0.25 * rate * (c * (dn + dw) + c[south] * ds + c[:, east] * de)
        return np.log(j)

    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("srad")

    def test_smoothed_pictures_equal_those_of_numpy(self):
        random = np.random.default_rng(4)
        for (rows, columns), tile, iterations in (((1, 3), 2, 2), ((40, 75), 16, 6),
                                                  ((150, 140), 40, 5)):
            picture = random.uniform(0, 1, (rows, columns))
            expected = self.expected(picture, iterations, 0.4)
            files = ("--input", self.save("i.npy", picture), "--output", self.path("out.npy"))
            for (domains, _), transform in itertools.product(self.platforms(), ("on", "off")):
                with self.subTest(shape=(rows, columns), domains=domains, transform=transform):
                    self.run_app("srad", "double", *files, "--tile", tile, "--streams", 3,
                                 "--iterations", iterations, "--domains", domains, "--transform",
                                 transform, "--lambda", 0.4)
                    self.assertLess(np.abs(np.load(self.path("out.npy")) - expected).max(), 1e-9)

    def test_png_and_pgm_pictures_are_read_by_their_content_and_written(self):
        random = np.random.default_rng(5)
        shades = np.clip(photograph(90, 70) * random.uniform(0.7, 1.3, (90, 70)), 0, 255).round()
        expected = 255 * self.expected(shades / 255, 20, 0.5)
        for name, content in (("i.png", png_of(shades)), ("i.pgm", pgm_of(shades)),
                              ("table.npy", png_of(shades)), ("upload", pgm_of(shades))):
            with self.subTest(name):
                self.run_app("srad", "double", "--input", self.write(name, content), "--output",
                             self.path("out.pgm"), "--iterations", 20, "--tile", 32)
                found = read_pgm(self.path("out.pgm")).astype(float)
                self.assertLessEqual(np.abs(found - expected).max(), 0.5 + 1e-6)
        self.run_app("srad", "float", "--input", self.path("out.pgm"), "--output",
                     self.path("again.png"), "--iterations", 1, "--tile", 100)
        with open(self.path("again.png"), "rb") as file:
            self.assertTrue(file.read().startswith(b"\x89PNG"))

    def test_a_picture_of_one_shade_is_not_changed(self):
        self.run_app("srad", "double", "--input", self.write("i.pgm", pgm_of(np.full((9, 9), 77))),
                     "--output", self.path("out.pgm"), "--iterations", 3)
        self.assertTrue((read_pgm(self.path("out.pgm")) == 77).all())

    def test_faulty_pictures_and_options_are_refused_with_a_reason(self):
        whole = png_of(np.ones((20, 20)))
        for name, content, word in (
            ("text.png", b"no picture at all", "PNG, JPEG or PGM"),
            ("cut", whole[:-30], "damaged PNG"),
            ("empty.jpg", b"", "picture"),
            ("cut.png", whole[:-30], "damaged PNG"),
            ("cut.pgm", b"P5\n4 4\n255\nabc", "3 of 16"),
            ("deep.pgm", b"P5\n1 1\n65535\nab", "65535"),
            ("none.pgm", b"P5\n0 4\n255\n", "0 x 4"),
            ("words.pgm", b"P5\nfour 4\n255\n", "width"),
            ("cut.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF", "0 x 0"),
            ("huge.pgm", b"P5\n9999999 9999999\n255\n", "bytes"),
        ):
            with self.subTest(name):
                path = self.write(name, content)
                message = self.refusal("run", "srad", "--input", path, code=BAD_INPUT)
                self.assertIn(path, message)
                self.assertIn(word, message)
        self.assertIn("from 0 to 1", self.refusal("run", "srad", "--input", self.save(
            "i.npy", np.full((3, 3), 2.0)), code=BAD_INPUT))
        self.assertIn(".png or .pgm", self.refusal("run", "srad", "--output", "out.jpg",
                                                   code=BAD_INPUT))
        self.refusal("run", "srad", "--lambda", 2, code=USAGE)


class DctTest(StreamedTest):
    @staticmethod
    def expected(pixels):
        rows, columns = pixels.shape
        blocks = pixels.reshape(rows // 8, 8, columns // 8, 8)
        return scipy.fft.dctn(blocks, axes=(1, 3), norm="ortho").reshape(rows, columns)

    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("dct")

    def test_coefficients_equal_those_of_scipy(self):
        random = np.random.default_rng(6)
        for (rows, columns), tiles in (((8, 8), 1), ((24, 136), 2), ((75, 67), 4)):
            for precision, form in self.forms():
                pixels = random.uniform(-128, 128, (rows, columns)).astype(TYPES[precision])
                padded = np.pad(pixels, ((0, -rows % 8), (0, -columns % 8)), "edge").astype(float)
                with self.subTest(shape=(rows, columns), form=form):
                    self.run_app("dct", precision, "--input", self.save("i.npy", pixels),
                                 "--output", self.path("c.npy"), *form,
                                 *(() if "--tiles" in form else ("--tiles", tiles)))
                    self.assertLess(relative_error(np.load(self.path("c.npy")),
                                                   self.expected(padded)),
                                    20 * np.finfo(TYPES[precision]).eps)

    # The table for brightness in annex K of the standard.
    TABLE = np.array([[16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55],
                      [14, 13, 16, 24, 40, 57, 69, 56], [14, 17, 22, 29, 51, 87, 80, 62],
                      [18, 22, 37, 56, 68, 109, 103, 77], [24, 35, 55, 64, 81, 104, 113, 92],
                      [49, 64, 78, 87, 103, 121, 120, 101], [72, 92, 95, 98, 112, 100, 103, 99]])

    def test_reconstruction_of_large_numbers_passes_verification(self):
        numbers = 1e9 * np.random.default_rng(5).standard_normal((40, 64))
        report = self.run_app("dct", "double", "--input", self.save("t.npy", numbers), "--quality", 50)
        self.assertIs(report["verified"], True)

    def test_reconstruction_and_its_error_equal_those_of_scipy(self):
        shades = photograph(60, 100)
        path = self.write("i.png", png_of(shades))
        padded = np.pad(shades, ((0, 4), (0, 4)), "edge") - 128
        for quality, domains in ((10, "host"), (50, SIM), (90, weir_cli.MIXED)):
            scale = 5000 // quality if quality < 50 else 200 - 2 * quality
            steps = np.tile(np.clip((self.TABLE * scale + 50) // 100, 1, 255), (8, 13))
            rounded = steps * np.floor(self.expected(padded) / steps + 0.5)
            blocks = rounded.reshape(8, 8, 13, 8)
            back = scipy.fft.idctn(blocks, axes=(1, 3), norm="ortho").reshape(64, 104)
            expected = np.clip(np.round(back + 128), 0, 255)[:60, :100]
            with self.subTest(quality=quality):
                report = self.run_app("dct", "double", "--input", path, "--quality", quality,
                                      "--domains", domains, "--tiles", 3, "--output",
                                      self.path("out.pgm"))
                found = read_pgm(self.path("out.pgm")).astype(float)
                self.assertLessEqual(np.abs(found - expected).max(), 1)  # a tie may go either way
                psnr = 10 * np.log10(255**2 / np.mean((found - shades)**2))
                self.assertAlmostEqual(report["results"]["PSNR, dB"], psnr, places=6)

    def test_jpeg_pictures_are_read_and_a_cut_one_is_refused(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("Pillow is not installed")
        shades = photograph(40, 48)
        Image.fromarray(shades.astype(np.uint8)).save(self.path("i.jpg"), quality=100)
        decoded = np.asarray(Image.open(self.path("i.jpg"))).astype(float) - 128
        self.run_app("dct", "double", "--input", self.path("i.jpg"), "--output", self.path("c.npy"))
        self.assertLess(relative_error(np.load(self.path("c.npy")), self.expected(decoded)), 0.02)
        with open(self.path("i.jpg"), "rb") as file:
            whole = file.read()
        # Bytes too many before the last marker, of which the decoder warns.
        odd = self.write("odd.jpg", whole[:-2] + bytes(64) + whole[-2:])
        self.run_app("dct", "double", "--input", odd, "--output", self.path("d.npy"))
        self.assertTrue((np.load(self.path("d.npy")) == np.load(self.path("c.npy"))).all())
        cut = self.write("cut.jpg", whole[:len(whole) * 2 // 3])
        self.assertIn("damaged JPEG", self.refusal("run", "dct", "--input", cut, code=BAD_INPUT))

    def test_unusable_pictures_tables_and_qualities_are_refused(self):
        self.assertIn("PNG, JPEG or PGM", self.refusal(
            "run", "dct", "--input", self.write("i.png", "GIF89a"), code=BAD_INPUT))
        self.assertIn("'nan'", self.refusal("run", "dct", "--input", self.write(
            "i.csv", "1,2\n3,nan\n"), code=BAD_INPUT))
        self.refusal("run", "dct", "--quality", 0, code=USAGE)


class KmeansTest(StreamedTest):
    def points(self, n, features, clusters):
        random = np.random.default_rng(n + features)
        middles = random.uniform(0, 1, (clusters, features))
        return middles[random.integers(clusters, size=n)] + random.normal(0, 0.2, (n, features))

    @staticmethod
    def expected(points, clusters, iterations):
        """Centres and labels; a centre without points stays."""
        points = points.astype(float)
        centres = points[:clusters].copy()
        for _ in range(iterations):
            labels = scipy.spatial.distance.cdist(points, centres).argmin(1)
            for c in range(clusters):
                if (labels == c).any():
                    centres[c] = points[labels == c].mean(0)
        return centres, scipy.spatial.distance.cdist(points, centres).argmin(1)

    def find(self, precision, points, clusters, iterations, *options):
        report = self.run_app("kmeans", precision, "--input", self.save("p.npy", points),
                              "--clusters", clusters, "--iterations", iterations, "--output",
                              self.path("c.npy"), "--labels", self.path("l.npy"), *options)
        return report, np.load(self.path("c.npy")), np.load(self.path("l.npy")).ravel()

    def test_size_tiny_passes_verification_on_all_platforms(self):
        self.check_sizes("kmeans")

    def test_centres_and_labels_equal_those_of_numpy(self):
        for n, features, clusters, tile, iterations in ((3, 1, 3, 2, 1), (70, 5, 2, 33, 3),
                                                        (5000, 9, 4, 1300, 7)):
            points = self.points(n, features, clusters)
            centres, labels = self.expected(points, clusters, iterations)
            for (domains, _), transform in itertools.product(self.platforms(), ("on", "off")):
                with self.subTest(n=n, domains=domains, transform=transform):
                    _, found, found_labels = self.find(
                        "double", points, clusters, iterations, "--tile", tile, "--streams", 3,
                        "--domains", domains, "--transform", transform)
                    np.testing.assert_allclose(found, centres, rtol=1e-9, atol=1e-12)
                    np.testing.assert_array_equal(found_labels, labels)

    def test_points_whose_squared_distances_overflow_floats_are_clustered(self):
        """Squares of their distances do not fit what a float holds."""
        points = 1e25 * self.points(200, 3, 4)
        centres, labels = self.expected(points, 4, 3)
        _, found, found_labels = self.find("double", points, 4, 3)
        np.testing.assert_allclose(found, centres, rtol=1e-9)
        np.testing.assert_array_equal(found_labels, labels)

    def test_centres_labels_and_distances_equal_those_of_scikit_learn(self):
        if sklearn is None:
            self.skipTest("scikit-learn is not installed")
        points = self.points(3000, 6, 5)
        model = sklearn.cluster.KMeans(5, init=points[:5], n_init=1, max_iter=200, tol=0,
                                       algorithm="lloyd").fit(points)
        report, centres, labels = self.find("double", points, 5, 200)
        np.testing.assert_allclose(centres, model.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(labels, model.labels_)
        self.assertAlmostEqual(report["results"]["sum of squared distances"] / model.inertia_, 1,
                               places=9)

    def test_centres_in_single_precision_differ_by_less_than_a_thousandth(self):
        points = self.points(2000, 3, 4).astype(np.float32)
        centres, _ = self.expected(points, 4, 5)
        _, found, _ = self.find("float", points, 4, 5)
        self.assertLess(relative_error(found, centres), 1e-3)

    def test_a_cluster_without_points_keeps_its_centre(self):
        points = np.array([[0.0], [0.0], [1.0], [1.1], [0.1]])
        centres, labels = self.expected(points, 2, 3)
        report, found, found_labels = self.find("double", points, 2, 3)
        np.testing.assert_allclose(found, centres, atol=1e-12)
        np.testing.assert_array_equal(found_labels, labels)
        same = np.ones((4, 2))
        report, found, _ = self.find("double", same, 3, 2)
        self.assertEqual(report["results"]["clusters without points"], 2)
        np.testing.assert_array_equal(found, same[:3])

    def test_too_few_points_faulty_numbers_and_no_clusters_are_refused(self):
        few = self.write("p.csv", "x,y\n1,2\n3,4\n")
        self.assert_names(self.refusal("run", "kmeans", "--input", few, code=BAD_INPUT), 8, 2)
        wrong = self.write("p.csv", "1,2\n3,x\n")
        self.assertIn("p.csv:2: column 2", self.refusal("run", "kmeans", "--input", wrong,
                                                        code=BAD_INPUT))
        self.refusal("run", "kmeans", "--clusters", 0, code=USAGE)


class SizesTest(StreamedTest):
    def test_size_tiny_sets_n_and_tile_of_matmul_and_cholesky(self):
        for app, n, tile in (("matmul", 100, 32), ("cholesky", 100, 32)):
            report = self.run_app(app, "double", "--size", "tiny")
            self.assertEqual((report["params"]["n"], report["params"]["tile"]), (n, tile))
            self.check_sizes(app)

    def test_help_lists_the_common_options_and_transform_where_it_applies(self):
        for app in ("kmeans", "hotspot", "nn", "srad", "dct", "prefixsum", "dotproduct"):
            output, _ = self.weir("run", app, "--help")
            for word in ("--size", "tiny", "small", "paper", "--streams", "--places", "--tiles",
                         "--verify", "--input"):
                self.assertIn(word, output)
            self.assertEqual("--transform" in output, app in ("kmeans", "hotspot", "srad"))


if __name__ == "__main__":
    os.environ.setdefault("POCL_DEVICES", "pthread")
    weir_cli.main()
