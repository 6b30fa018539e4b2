"""Looks for faces with `weir run face-detection`, as OpenCV does, and as NumPy does."""

import json
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, CARDS, DEADLINE, USAGE

try:
    import cv2
except ImportError:
    cv2 = None
try:
    import skimage
    PHOTOGRAPHS = os.path.join(os.path.dirname(skimage.__file__), "data")
except ImportError:
    PHOTOGRAPHS = ""

CASCADES = "/usr/share/opencv4/lbpcascades"  # of opencv-data

FFMPEG = """#!{python}
import os, sys
arguments = sys.argv[1:]
film = arguments[arguments.index("-i") + 1]
most = int(arguments[arguments.index("-frames:v") + 1]) if "-frames:v" in arguments else 1000
if not film.startswith("file:") or not os.path.isfile(film[5:]):
    sys.exit("not a file: " + film)
if {complaint!r}:
    sys.exit("[mov @ 0] a first line\\n" + {complaint!r})
frames = os.path.join(os.path.dirname(film[5:]), "frames")
for name in sorted(os.listdir(frames))[:most]:
    with open(os.path.join(frames, name), "rb") as file:
        magic, size, white, shades = file.read().split(b"\\n", 3)
    colours = bytes(shade for shade in shades for _ in range(3))
    sys.stdout.buffer.write(b"P6\\n" + size + b"\\n255\\n" + colours)
"""
FACES = os.path.join(CASCADES, "lbpcascade_frontalface.xml")
NAMES = ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "rocket.jpg",
         "motorcycle_left.png", "motorcycle_right.png", "coins.png")


def cascade_text(window, stages, grids):
    """A file of OpenCV's format. A stage is a threshold and its stumps: grid, words, leaves."""
    text = ('<?xml version="1.0"?>\n<opencv_storage>\n<cascade type_id="opencv-cascade-classifier">\n'
            "<stageType>BOOST</stageType><featureType>LBP</featureType>\n"
            f"<height>{window}</height><width>{window}</width>\n<stages>\n")
    for number, (threshold, stumps) in enumerate(stages):
        text += (f"<!-- stage {number} --><_><stageThreshold>{threshold}</stageThreshold>"
                 "<weakClassifiers>\n")
        for grid, words, leaves in stumps:
            text += (f"<_><internalNodes>\n 0 -1 {grid} {' '.join(map(str, words))}</internalNodes>"
                     f"<leafValues>\n {leaves[0]} {leaves[1]}</leafValues></_>\n")
        text += "</weakClassifiers></_>\n"
    text += "</stages>\n<features>\n"
    for grid in grids:
        text += f"<_><rect>\n {' '.join(map(str, grid))}</rect></_>\n"
    return text + "</features></cascade></opencv_storage>\n"


def random_cascade(window, seed):
    random = np.random.default_rng(seed)
    grids = []
    for _ in range(7):
        width, height = random.integers(1, window // 3 + 1, 2)
        x, y = random.integers(0, window - 3 * width + 1), random.integers(0, window - 3 * height + 1)
        grids.append((x, y, width, height))
    stages = []
    for count in (2, 3, 3):
        stumps = [(random.integers(7), random.integers(-2 ** 31, 2 ** 31, 8),
                   tuple(random.uniform(-1, 1, 2).round(6))) for _ in range(count)]
        stages.append((round(random.uniform(-0.5, 0.1), 6), stumps))
    return window, stages, grids


def sources(before, after):
    """Left neighbours of the pixels of a line, and their right neighbours' shares in 256ths."""
    at = 1 / (after / before) * (np.arange(after) + 0.5) - 0.5
    low = np.floor(at)
    share = np.rint((at - low) * 256).astype(int)
    share[(low < 0) | (low >= before - 1)] = 0
    return np.clip(low, 0, before - 1).astype(int), share


def resized(grey, width, height):
    x, across = sources(grey.shape[1], width)
    y, along = sources(grey.shape[0], height)
    grey = grey.astype(int)
    right, below = np.minimum(x + 1, grey.shape[1] - 1), np.minimum(y + 1, grey.shape[0] - 1)
    rows = (256 - across) * grey[:, x] + across * grey[:, right]
    return ((256 - along)[:, None] * rows[y] + along[:, None] * rows[below] + 2 ** 15) >> 16


def expected_candidates(grey, cascade, factor):
    window, stages, grids = cascade
    found, scale = [], 1.0
    while np.rint(window * scale) <= min(grey.shape):
        single = np.float32(scale)
        height, width = (int(np.rint(np.float32(size) / single)) for size in grey.shape)
        level = resized(grey, width, height)
        sums = np.pad(level.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        rows, columns = height + 1 - window, width + 1 - window
        failed_at = np.full((rows, columns), len(stages))
        patterns = []
        for x, y, w, h in grids:
            def cell(i, j, x=x, y=y, w=w, h=h):
                left, top = x + i * w, y + j * h
                corner = [sums[top + b:top + b + rows, left + a:left + a + columns]
                          for a, b in ((0, 0), (w, 0), (0, h), (w, h))]
                return corner[0] - corner[1] - corner[2] + corner[3]
            around = ((0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (0, 2), (0, 1))
            patterns.append(sum((cell(*at) >= cell(1, 1)) << (7 - bit)
                                for bit, at in enumerate(around)))
        for number in reversed(range(len(stages))):
            threshold, stumps = stages[number]
            total = np.zeros((rows, columns))
            for grid, words, leaves in stumps:
                bits = np.unpackbits(np.array(words, np.int32).view(np.uint8), bitorder="little")
                chosen = np.where(bits[patterns[grid]], *np.array(leaves, np.float32))
                total += chosen.astype(float)
            failed_at[total < np.float32(threshold) - np.float32(1e-5)] = number
        step = 1 if single >= 2 else 2
        for y in range(0, rows, step):
            x = 0
            while x < columns:
                if failed_at[y, x] == len(stages):
                    left, top, size = (int(np.rint(np.float32(value) * single))
                                       for value in (x, y, window))
                    found.append([left, top, min(size, grey.shape[1] - left),
                                  min(size, grey.shape[0] - top)])
                x += step if failed_at[y, x] > 0 else 2 * step
        scale *= factor
    return sorted(found)


def write_map(path, grey):
    with open(path, "wb") as file:
        file.write(b"P5\n%d %d\n255\n" % grey.shape[::-1] + grey.astype(np.uint8).tobytes())
    return path


def noise(width, height, seed):
    """Blotches of several sizes."""
    random = np.random.default_rng(seed)
    sum_of = np.zeros((height, width))
    for size in (1, 4, 16):
        blotch = random.uniform(0, 1, (height // size + 1, width // size + 1))
        sum_of += np.kron(blotch, np.ones((size, size)))[:height, :width]
    return (sum_of * 85).astype(np.uint8)


def tiles_of(height, width, window, factor):
    """Of 32 x 32 places for windows, in all levels."""
    tiles, scale = 0, 1.0
    while np.rint(window * scale) <= min(height, width):
        places = [int(np.rint(np.float32(size) / np.float32(scale))) + 1 - window
                  for size in (height, width)]
        tiles += -(-places[0] // 32) * -(-places[1] // 32)
        scale *= factor
    return tiles


class FaceDetectionTest(weir_cli.CliTest):
    def detect(self, picture, cascade, *options):
        return self.report("face-detection", "--input", picture, "--cascade", cascade, *options)

    def test_candidates_equal_those_of_numpy(self):
        candidates = 0
        for seed, (window, width, height, factor) in enumerate(
                ((6, 90, 70, 1.1), (9, 61, 120, 1.3), (24, 150, 100, 1.1), (7, 7, 7, 1.5),
                 (12, 200, 13, 2.0), (10, 9, 50, 1.1))):
            with self.subTest(window=window, size=(width, height)):
                cascade = random_cascade(window, seed)
                grey = noise(width, height, seed)
                report = self.detect(write_map(self.path("noise.pgm"), grey),
                                     self.write("random.xml", cascade_text(*cascade)),
                                     "--factor", factor, "--neighbours", 0)
                picture, = report["pictures"]
                expected = expected_candidates(grey, cascade, factor)
                self.assertEqual(picture["candidates"], expected)
                self.assertEqual(picture["faces"], expected)
                self.assertEqual(report["stages"]["collect"], len(expected))
                self.assertEqual(report["stages"]["resize"], picture["levels"])
                candidates += len(expected)
        self.assertGreater(candidates, 100)

    def test_candidates_do_not_depend_on_the_pipeline_options(self):
        os.mkdir(self.path("film"))
        for seed in range(5):
            write_map(self.path(f"film/{seed}.pgm"), noise(100 + seed, 80, seed))
        cascade = self.write("random.xml", cascade_text(*random_cascade(8, 1)))
        expected = self.detect(self.path("film"), cascade, "--verify")
        self.assertIs(expected["verified"], True)
        self.assertGreater(expected["results"]["candidates"], 100)
        self.assertEqual([os.path.basename(picture["file"]) for picture in expected["pictures"]],
                         [f"{seed}.pgm" for seed in range(5)])
        for options in (("--domains", "host:cores=1"), ("--baseline",), ("--no-batching",),
                        ("--end", "timeout"), ("--relief", "off"), ("--relief", "warp"),
                        ("--places", 2), ("--places", 2, "--baseline")):
            with self.subTest(options):
                report = self.detect(self.path("film"), cascade, *options)
                for member in ("pictures", "stages", "results"):
                    self.assertEqual(report[member], expected[member])
                self.assertEqual(report["meetings"], 25 if "--baseline" in options else 0)

    def test_candidates_on_a_device_equal_those_of_numpy(self):
        found = 0
        for seed, (window, width, height, factor) in enumerate(
                ((6, 90, 70, 1.1), (48, 150, 131, 1.2), (7, 7, 7, 1.5), (12, 200, 13, 2.0)), 30):
            cascade, grey = random_cascade(window, seed), noise(width, height, seed)
            expected = expected_candidates(grey, cascade, factor)
            found += len(expected)
            files = (write_map(self.path("noise.pgm"), grey),
                     self.write("random.xml", cascade_text(*cascade)), "--factor", factor)
            for domains in CARDS:
                for options in ((), ("--no-batching",), ("--baseline",)):
                    with self.subTest(window=window, domains=domains, options=options):
                        report = self.detect(*files, "--domains", domains, *options)
                        self.assertEqual(report["pictures"][0]["candidates"], expected)
                        self.assertEqual(report["stages"]["scan"],
                                         tiles_of(height, width, window, factor))
        self.assertGreater(found, 100)

    def test_a_device_that_skips_its_kernels_finds_no_candidate(self):
        report = self.report("face-detection", "--input",
                             write_map(self.path("noise.pgm"), noise(90, 70, 41)), "--cascade",
                             self.write("random.xml", cascade_text(*random_cascade(6, 41))),
                             "--domains", "host:cores=1,sim:cores=1,gflops=100,kernels=skip")
        self.assertEqual(report["pictures"][0]["candidates"], [])

    def test_windows_too_large_for_a_device_are_scanned_on_the_host(self):
        cascade, grey = random_cascade(49, 40), noise(90, 80, 40)
        report = self.detect(write_map(self.path("noise.pgm"), grey),
                             self.write("random.xml", cascade_text(*cascade)), "--domains", CARDS[0])
        self.assertEqual(report["pictures"][0]["candidates"], expected_candidates(grey, cascade, 1.1))
        self.assertIn("integral", report["stages"])

    def test_the_pipeline_on_a_device_is_over_22_percent_faster_than_its_baseline(self):
        picture = write_map(self.path("noise.pgm"), noise(400, 300, 42))
        cascade = self.write("random.xml", cascade_text(*random_cascade(24, 42)))
        self.assertGreater(self.gain("face-detection", "--input", picture, "--cascade", cascade),
                           1.22)

    def test_candidates_on_opencl_equal_those_of_numpy(self):
        cascade, grey = random_cascade(10, 41), noise(100, 80, 41)
        report = self.detect(write_map(self.path("noise.pgm"), grey),
                             self.write("random.xml", cascade_text(*cascade)), "--domains",
                             self.require_opencl())
        self.assertEqual(report["pictures"][0]["candidates"], expected_candidates(grey, cascade, 1.1))

    @unittest.skipUnless(cv2 and PHOTOGRAPHS and os.path.exists(FACES),
                         "OpenCV, scikit-image or opencv-data is not installed")
    def test_faces_in_photographs_equal_those_of_opencv(self):
        images = [cv2.imread(os.path.join(PHOTOGRAPHS, name)) for name in NAMES]
        astronaut = images[0]
        images += [astronaut[:, ::-1], astronaut[50:180, 150:300],
                   cv2.resize(astronaut, (1280, 720)), cv2.resize(astronaut, (300, 300))]
        for cascade in ("lbpcascade_frontalface.xml", "lbpcascade_frontalface_improved.xml",
                        "lbpcascade_profileface.xml"):
            cascade = os.path.join(CASCADES, cascade)
            classifier = cv2.CascadeClassifier(cascade)
            os.makedirs(self.path("film"), exist_ok=True)
            for number, image in enumerate(images):
                cv2.imwrite(self.path(f"film/{number:02}.png"), image)
            report = self.detect(self.path("film"), cascade)
            if cascade == FACES:
                for domains in ("host:cores=1,sim:cores=1", "sim:cores=1,gbps=6,clock=virtual"):
                    on_card = self.detect(self.path("film"), cascade, "--domains", domains)
                    self.assertEqual(on_card["pictures"], report["pictures"])
                    self.assertNotIn("integral", on_card["stages"])
            for picture, image in zip(report["pictures"], images, strict=True):
                grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
                for member, neighbours in (("candidates", 0), ("faces", 3)):
                    with self.subTest(cascade=cascade, picture=picture["file"], member=member):
                        boxes = classifier.detectMultiScale(grey, 1.1, neighbours)
                        self.assertEqual(picture[member], sorted(map(list, np.array(boxes).tolist())))
            if cascade == FACES:
                self.assertEqual(report["pictures"][0]["faces"], [[171, 64, 104, 104]])

    @unittest.skipUnless(cv2 and PHOTOGRAPHS and os.path.exists(FACES),
                         "OpenCV, scikit-image or opencv-data is not installed")
    def test_the_output_picture_has_green_frames_around_the_faces(self):
        image = cv2.imread(os.path.join(PHOTOGRAPHS, NAMES[0]))
        cv2.imwrite(self.path("astronaut.png"), image)
        report = self.detect(self.path("astronaut.png"), FACES, "--output", self.path("faces.png"),
                             "--verify")
        self.assertIs(report["verified"], True)
        expected = image.copy()
        (x, y, width, height), = report["pictures"][0]["faces"]
        for inset in (0, 1):
            cv2.rectangle(expected, (x + inset, y + inset),
                          (x + width - 1 - inset, y + height - 1 - inset), (0, 255, 0), 1)
        np.testing.assert_array_equal(cv2.imread(self.path("faces.png")), expected)

    def film(self, name, complaint=""):
        """Puts a program in place of ffmpeg on the search path: it gives the pictures of self.frames(),
        as many as it is asked for, or complains."""
        os.mkdir(self.path("programs"))
        with open(self.path("programs/ffmpeg"), "w", encoding="utf-8") as file:
            file.write(FFMPEG.format(python=sys.executable, complaint=complaint))
        os.chmod(self.path("programs/ffmpeg"), 0o755)
        self.environment["PATH"] = self.path("programs")
        return self.write(name, "a film")

    def frames(self):
        os.mkdir(self.path("frames"))
        for number in range(1, 6):
            write_map(self.path(f"frames/{number}.pgm"), noise(90, 70, number))
        return self.path("frames")

    def check_film(self, film, cascade, expected):
        """Its pictures are those of the folder, also when there are to be fewer."""
        os.mkdir(self.path("found"))
        for count in (5, 2):
            report = self.detect(film, cascade, "--pictures", count, "--output", self.path("found"))
            pictures = report["pictures"]
            self.assertEqual([picture.pop("file") for picture in pictures],
                             [f"{film}#{number}" for number in range(1, count + 1)])
            for picture, known in zip(pictures, expected["pictures"]):
                self.assertEqual(picture, {key: known[key] for key in picture})
        self.assertEqual(sorted(os.listdir(self.path("found"))),
                         [f"film-{number:06}.png" for number in range(1, 6)])

    def test_faces_in_a_film_equal_those_in_its_frames(self):
        cascade = self.write("random.xml", cascade_text(*random_cascade(8, 1)))
        expected = self.detect(self.frames(), cascade)
        self.assertGreater(expected["results"]["candidates"], 100)
        self.check_film(self.film("film.mp4"), cascade, expected)

    @unittest.skipIf(shutil.which("ffmpeg") is None, "ffmpeg is not installed")
    def test_a_film_of_ffmpeg_has_the_faces_of_its_frames_and_a_cut_one_is_refused(self):
        cascade = self.write("random.xml", cascade_text(*random_cascade(8, 1)))
        frames, film = self.frames(), self.path("film.mkv")
        subprocess.run(["ffmpeg", "-v", "error", "-i", frames + "/%d.pgm", "-c:v", "ffv1", film],
                       check=True, stdin=subprocess.DEVNULL)
        self.check_film(film, cascade, self.detect(frames, cascade))
        with open(film, "r+b") as file:
            file.truncate(100)
        self.assertIn("ffmpeg says", self.refusal("run", "face-detection", "--input", film, "--cascade",
                                                  cascade, code=BAD_INPUT))

    def test_bad_films_and_a_faulty_or_missing_ffmpeg_are_refused_with_a_reason(self):
        cascade = self.write("random.xml", cascade_text(*random_cascade(8, 1)))

        def refusal(film, *options):
            return self.refusal("run", "face-detection", "--input", film, "--cascade", cascade,
                                *options, code=BAD_INPUT)

        self.frames()
        film = self.film("film.mp4", complaint="moov atom not found")
        self.assertEqual(refusal(film), f"weir: {film}: ffmpeg says: moov atom not found\n")
        self.assertIn("No such file", refusal(self.path("none.mp4")))
        for said, words in (("", "no picture"), ("GIF89a", "something else"),
                            ("P6\n9 9\n255\nabc", "is cut"), ("P6\n0 9\n255\n", "0 x 9"),
                            ("P6\n99999999 99999999\n255\n", "99999999 x 99999999"),
                            ("P6\n123456789012345 1\n255\n", "something else")):
            with self.subTest(said):
                with open(self.path("programs/ffmpeg"), "w", encoding="utf-8") as file:
                    file.write(f"#!{sys.executable}\nprint({said!r}, end='')\n")
                self.assertIn(words, refusal(film))
        os.remove(self.path("programs/ffmpeg"))
        self.assertIn("is not installed", refusal(film))

    def test_without_files_faces_are_drawn_and_found(self):
        output, _ = self.weir("run", "face-detection", "--repeat", 1, "--output",
                              self.path("faces.png"))
        self.assertRegex(output, r"input +drawn: a picture of 480 x 320 pixels with 5 faces")
        self.assertTrue(os.path.exists(self.path("faces.png")))
        found = set()
        for options in ((), ("--seed", 2), ("--pictures", 3, "--seed", 3), ("--baseline",),
                        ("--domains", CARDS[-1])):
            with self.subTest(options):
                report = self.report("face-detection", "--verify", *options)
                pictures = report["pictures"]
                self.assertEqual(len(pictures), 3 if "--pictures" in options else 1)
                self.assertEqual(report["results"]["faces"], 5 * len(pictures))
                self.assertIs(report["verified"], True)
                self.assertIn(["drawn faces that were not found, and others that were", 0],
                              [[check["metric"], check["value"]] for check in report["checks"]])
                found.add(json.dumps(pictures[0]["faces"]))
        self.assertEqual(len(found), 3)  # the same however it runs, others of another seed

    def test_faulty_cascades_pictures_and_options_are_refused_without_output(self):
        picture = write_map(self.path("noise.pgm"), noise(40, 30, 1))
        large = write_map(self.path("large.pgm"), noise(3000, 2000, 1))
        good = cascade_text(*random_cascade(6, 1))
        cascade = self.write("good.xml", good)
        os.mkdir(self.path("empty"))
        os.mkdir(self.path("film"))
        for name in ("a.pgm", "b.pgm"):
            write_map(self.path("film/" + name), noise(30, 30, 2))
        os.mkdir(self.path("twins"))
        for name in ("a.pgm", "a.PGM"):
            write_map(self.path("twins/" + name), noise(30, 30, 2))
        faults = {
            "none": ("", ":1: found '', expected an element"), "text": ("hello", "found 'hello'"),
            "picture": (b"\x89PNG\r\n\x1a\n", "expected an element"),
            "cut": (good[:700], "expected"), "other": ("<html></html>", "found no cascade"),
            "haar": (good.replace(">LBP<", ">HAAR<"), "'HAAR', expected LBP"),
            "word": (good.replace("<width>6<", "<width>six<"), "found 'six'"),
            "window": (good.replace("<width>6<", "<width>0<"), "expected 1 to 1024"),
            "outside": (cascade_text(6, random_cascade(6, 1)[1], [(4, 0, 1, 1)] * 7),
                        "not in a window of 6 x 6"),
            "feature": (cascade_text(6, random_cascade(6, 1)[1], [(0, 0, 2, 2)]), "expected one of 1"),
            "tree": (good.replace("0 -1 ", "1 -1 ", 1), "found a tree"),
            "numbers": (good.replace("<leafValues>\n", "<leafValues>\n 1", 1).replace(
                "</leafValues>", " 2</leafValues>", 1), "numbers, expected 2"),
            "deep": ("<a>" * 100, "more than 32"), "comment": ("<!-- <a>", "end of a comment"),
        }
        for name, (content, word) in faults.items():
            with self.subTest(name):
                path = self.write(name + ".xml", content)
                message = self.refusal("run", "face-detection", "--input", picture, "--cascade",
                                       path, code=BAD_INPUT)
                self.assertIn(word, message)
                self.assertIn(path, message)
        for options, code, word in (
            (("--cascade", cascade), BAD_INPUT, "--input"),
            (("--input", picture), BAD_INPUT, "--cascade"),
            (("--input", self.path("empty"), "--cascade", cascade), BAD_INPUT, "no picture"),
            (("--input", cascade, "--cascade", cascade), BAD_INPUT, "expected a picture"),
            (("--input", self.path("none.png"), "--cascade", cascade), BAD_INPUT, "none.png"),
            (("--input", picture, "--cascade", cascade, "--output", "faces.jpg"), BAD_INPUT, ".ppm"),
            (("--input", self.path("film"), "--cascade", cascade, "--output", "faces.png"),
             BAD_INPUT, "expected a folder"),
            (("--input", self.path("twins"), "--cascade", cascade, "--output", self.path("empty")),
             BAD_INPUT, "two pictures"),
            (("--input", picture, "--cascade", cascade, "--factor", 1), USAGE, "--factor"),
            (("--input", large, "--cascade", cascade, "--timeout", "1e-6"), DEADLINE,
             "is not at its end"),
            (("--input", picture, "--cascade", cascade, "--timeout", "1e-6", "--baseline"), DEADLINE,
             "was over"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "face-detection", *options, code=code))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("faces")])


if __name__ == "__main__":
    weir_cli.main()
