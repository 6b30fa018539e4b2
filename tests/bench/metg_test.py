"""How the suite metg evaluates the sweeps that its programs print."""

import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness.command import Command, Failed, Unmeasured  # noqa: E402
from harness.report import save  # noqa: E402
from harness.row import Row, ratio_at_least, report_row  # noqa: E402
from suites import metg  # noqa: E402

SWEEP, PEER, PEAK = (Command.of(name) for name in ("sweep", "peer", "peak"))


def sizes(*pairs, refused=0):
    """Sizes of length and rate, the longest tasks first, as programs print them."""
    return [{"iterations": 2**(len(pairs) - index), "task_us": length, "rate": rate,
             "refused": refused, "samples": 2}
            for index, (length, rate) in enumerate(pairs)]


def printed(points):
    return {"patterns": {"fft:8": points}, "config": "2 threads"}


def figure(sweep=SWEEP, label="weir"):
    return metg.Metg(label, "fft:8", sweep, PEAK)


class MetgTest(unittest.TestCase):
    def test_half_of_the_peak_is_found_between_two_sizes(self):
        # Efficiencies of 80 % at 4 us and 20 % at 1 us: 40 % of the way in logarithms is a half.
        found = metg.smallest_task(sizes((16, 95), (4, 80), (1, 20)), 100)
        self.assertAlmostEqual(found, 4**(1 - 0.339036), places=4)

    def test_a_size_that_reaches_exactly_half_is_the_figure(self):
        self.assertAlmostEqual(metg.smallest_task(sizes((4, 80), (2, 50), (1, 20)), 100), 2)

    def test_a_slow_sample_of_longer_tasks_does_not_count(self):
        points = sizes((16, 95), (8, 30), (4, 80), (1, 20))
        self.assertLess(metg.smallest_task(points, 100), 4)

    def test_a_refused_size_is_left_out(self):
        points = sizes((16, 95), (None, None), (1, 20))
        self.assertTrue(1 < metg.smallest_task(points, 100) < 16)

    def test_a_curve_on_one_side_of_the_half_has_no_figure(self):
        self.assertIsNone(metg.smallest_task(sizes((4, 45), (1, 20)), 100))
        self.assertIsNone(metg.smallest_task(sizes((4, 95), (1, 60)), 100))

    def test_the_peak_is_the_best_of_all_rounds(self):
        self.assertEqual(metg.peak_rate([{"value": 70}, {"value": None}, {"value": 75}]), 75)
        with self.assertRaisesRegex(Unmeasured, "a core was away"):
            metg.peak_rate([{"value": None}])

    def test_a_round_without_a_figure_takes_no_part_in_the_ratio(self):
        good, none = sizes((4, 80), (2, 50), (1, 20)), sizes((None, None), refused=4)
        slow = sizes((16, 80), (8, 50), (4, 20))
        outputs = {PEAK: [{"value": 100}] * 3, SWEEP: [printed(p) for p in (none, good, good)],
                   PEER: [printed(p) for p in (good, good, slow)]}
        row = Row("a", "us", figure(), figure(PEER, "peer"), "peer", ratio_at_least(2))
        report = report_row(row, outputs)
        self.assertAlmostEqual(report["ours"], 2)
        self.assertAlmostEqual(report["ratio"], 2.5)  # of 1 and 4
        self.assertTrue(report["ok"])

    def test_a_missing_figure_is_reported_with_its_reason(self):
        cases = ((sizes((None, None), refused=4), "a core was away in all samples"),
                 (sizes((4, 45), (1, 20)), "the best is 45.0%"),
                 (sizes((4, 95), (1, 60)), "the smallest tasks that were measured reach half"))
        for points, reason in cases:
            report = report_row(Row("a", "us", figure()), {PEAK: [{"value": 100}],
                                                          SWEEP: [printed(points)]})
            self.assertIn(reason, report["reason"])
            self.assertIsNone(report["ok"])

    def test_a_failed_program_fails_its_rows_and_has_no_curve(self):
        outputs = {PEAK: [{"value": 100}], SWEEP: Failed("task (graph 0, step 1, point 2) wants")}
        row = Row("METG(50 %), fft: queue", "us", figure())
        self.assertIs(report_row(row, outputs)["ok"], False)
        report = {}
        metg.complete(report, [([row], outputs)])
        self.assertEqual(report["curves"], {})

    def test_refused_samples_are_counted_once(self):
        outputs = {PEAK: [{"value": 100}], SWEEP: [printed(sizes((4, 80), (1, 20), refused=1))]}
        rows = [Row("METG(50 %), fft: queue", "us", figure())] * 2
        report = {}
        metg.complete(report, [(rows, outputs)])
        self.assertIn("2 of 6 samples", report["notes"][0])
        self.assertEqual(report["curves"], {"fft": {"weir": [[1, 0.2], [4, 0.8]]}})

    def test_curves_are_saved_as_pictures_that_the_page_shows(self):
        report = {"suite": "metg", "machine": dict.fromkeys(
            ("cpu", "cores", "memory_gb", "kernel", "compiler", "blas", "weir")), "date": "today",
            "rows": [], "notes": ["a note"],
            "curves": {"fft, width 8": {"a < b": [[1, 0.2], [4, 0.8]], "c": [[2, 0.5]]}}}
        with tempfile.TemporaryDirectory() as folder:
            save(report, folder)
            picture = ElementTree.parse(Path(folder) / "metg-fft-width-8.svg").getroot()
            page = (Path(folder) / "metg.md").read_text(encoding="utf-8")
        lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [2, 1])
        self.assertIn("a note", page)
        self.assertIn("(metg-fft-width-8.svg)", page)


if __name__ == "__main__":
    unittest.main()
