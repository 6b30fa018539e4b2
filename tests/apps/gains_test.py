"""What applications gain by streams and pipelines, in virtual time: the rows of the suites `evaluate`
and `stages` of bench/run that are the same on every machine."""

import os
import sys
import unittest

import weir_cli

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))

from harness.command import Command, Figure, NotBuilt  # noqa: E402
from harness.measure import measure  # noqa: E402
from harness.row import Row, report_row  # noqa: E402
from suites import evaluate, stages  # noqa: E402

# Lloyd's iteration leaves less to hide than the paper's device gained by other means:
# docs/adr/0035.
KMEANS_GAIN = 1.03
# Where pipelines are slower than overlapped chunks (docs/measurements/stages.md): what they must keep.
SHORT_OF_CHUNKS = {"evolution": 0.95, "raster": 0.97}


class GainsTest(unittest.TestCase):
    def measured(self, groups, rounds):
        return measure(groups, rounds, os.path.dirname(os.path.dirname(weir_cli.program(0))))

    def reports(self, rows):
        outputs, = self.measured([rows], 1)
        for row in rows:
            report = report_row(row, outputs)
            self.assertNotIn("reason", report)
            yield report

    def check(self, rows):
        for report in self.reports(rows):
            with self.subTest(report["name"]):
                self.assertIs(report["ok"], True, report)

    def test_overlap_of_transfers_and_kernels_reaches_its_targets(self):
        rows = [evaluate.overlap(*case) for case in evaluate.OVERLAPS if case[2] is not None]
        self.assertEqual(len(rows), 2)
        self.check(rows)

    def test_streams_speed_up_each_application_by_its_target(self):
        self.check([evaluate.gain(app, target) for app, target in evaluate.GAINS.items()
                    if app != "kmeans"])

    def test_pipelines_reach_their_target_gains_where_launches_are_expensive(self):
        """16 GB/s and 8 TFLOP/s: all but the latency of a copy is brief."""
        self.check([stages.row(application, "16 GB/s, 8 TFLOP/s")
                    for application in ("reyes", "face-detection")])
        for application, least in SHORT_OF_CHUNKS.items():
            report, = self.reports([stages.row(application, "16 GB/s, 8 TFLOP/s")])
            with self.subTest(application):
                self.assertGreaterEqual(report["ratio"], least, report)

    def test_transformed_iterations_reach_their_target_gains(self):
        for app, targets in evaluate.TRANSFORMED.items():
            self.check(evaluate.transformed(app, *targets))

    def test_kmeans_gains_what_its_dependences_allow(self):
        self.check(evaluate.kmeans_share())
        report, = self.reports([evaluate.gain("kmeans", KMEANS_GAIN)])
        self.assertIs(report["ok"], True, report)

    def test_two_places_do_not_speed_up_applications_bound_by_memory(self):
        """What memory limits gains nothing by places, which do not multiply its bandwidth."""
        rows = []
        for app in ("kmeans", "hotspot", "srad"):
            one, two = (Figure(evaluate.run(app, "--places", places), "seconds.median")
                        for places in (1, 2))
            rows.append(Row(f"{app} in two places", "s", two, one, "one place"))
        for report in self.reports(rows):
            with self.subTest(report["name"]):
                self.assertAlmostEqual(report["ratio"], 1, delta=0.01)

    def test_a_dot_product_takes_the_same_time_in_1_to_8_places(self):
        """64 MB at 10 GB/s, after the 4 us that the first tiles of two vectors travel."""
        card = ("sim:clock=virtual,cores=8,gbps=1000,latency_us=0,gflops=1000,memory_gbps=10,"
                "kernels=skip")
        for places in (1, 2, 4, 8):
            command = Command.of("weir", "run", "dotproduct", "--size", "small", "--domains", card,
                                 "--places", places, "--repeat", 1, "--json", once=True)
            report, = self.reports([Row("dotproduct", "s", Figure(command, "seconds.median"))])
            self.assertAlmostEqual(report["ours"], 0.006404, delta=2e-9)

    def test_a_command_of_two_groups_is_measured_in_the_rounds_of_each(self):
        """A command that two groups have in common is one of the rounds of each."""
        command = Command("weir", ("run", "nn", "--size", "tiny", "--repeat", "1", "--json"))
        missing = Command("no_such_program")
        rows = [Row("seconds", "s", Figure(command, "seconds.median")),
                Row("nothing", "s", Figure(missing))]
        for outputs in self.measured([rows, rows], 2):
            self.assertEqual(len(outputs[command]), 2)
            self.assertIsInstance(outputs[missing], NotBuilt)

    def test_a_measurement_in_virtual_time_is_identical_when_repeated(self):
        row = evaluate.gain("nn", 1)
        first, second = (next(self.reports([row])) for _ in range(2))
        self.assertEqual(first, second)


if __name__ == "__main__":
    weir_cli.main()
