"""What applications gain by streams, in virtual time: the rows of the suite `evaluate` of bench/run
that are the same on every machine."""

import os
import sys
import unittest

import weir_cli

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))

from harness.measure import measure  # noqa: E402
from harness.row import report_row  # noqa: E402
from suites import evaluate  # noqa: E402

# Lloyd's iteration leaves less to hide than the paper's card gained by other means: docs/adr/0035.
KMEANS_GAIN = 1.03


class GainsTest(unittest.TestCase):
    def reports(self, rows):
        build = os.path.dirname(os.path.dirname(weir_cli.program(0)))
        outputs = measure([rows], 1, build)
        for row in rows:
            report = report_row(row, outputs)
            self.assertNotIn("reason", report)
            yield report

    def check(self, rows):
        for report in self.reports(rows):
            with self.subTest(report["name"]):
                self.assertIs(report["ok"], True, report)

    def test_transfers_hide_behind_kernels(self):
        rows = [evaluate.overlap(*case) for case in evaluate.OVERLAPS if case[2] is not None]
        self.assertEqual(len(rows), 2)
        self.check(rows)

    def test_applications_gain_by_streams(self):
        self.check([evaluate.gain(app, target) for app, target in evaluate.GAINS.items()
                    if app != "kmeans"])

    def test_transformed_iterations_overlap(self):
        for app, targets in evaluate.TRANSFORMED.items():
            self.check(evaluate.transformed(app, *targets))

    def test_kmeans_gains_what_its_dependences_allow(self):
        self.check(evaluate.kmeans_share())
        report, = self.reports([evaluate.gain("kmeans", KMEANS_GAIN)])
        self.assertIs(report["ok"], True, report)

    def test_they_are_the_same_each_time(self):
        row = evaluate.gain("nn", 1)
        first, second = (next(self.reports([row])) for _ in range(2))
        self.assertEqual(first, second)


if __name__ == "__main__":
    weir_cli.main()
