#!/usr/bin/env python3
"""Tests how bench/run compares two builds, with programs that print a number."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness.command import Command, Figure, Sum  # noqa: E402
from harness.measure import measure  # noqa: E402
from harness.row import Row, against, at_most, report_row  # noqa: E402

PUTS = Figure(Command.of("puts_weir"))
PEER = Figure(Command.of("puts_peer"))


def write_build(folder, text):
    program = Path(folder) / "bench" / "programs" / "puts_weir"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return folder


class AgainstTest(unittest.TestCase):
    def test_a_figure_with_several_peers_is_compared_once(self):
        rows = [Row("puts, against MPI", "us", PUTS, PEER, "MPI", at_most(1)),
                Row("puts, against UCX", "us", PUTS, PEER, "UCX"),
                Row("both", "us", Sum((PUTS, PEER)))]
        compared = against(rows, "old", set())
        self.assertEqual([row.name for row in compared], ["puts, against MPI"])
        self.assertIsNone(compared[0].target)

    def test_the_ratio_says_how_much_better_this_build_is(self):
        with tempfile.TemporaryDirectory() as scratch:
            new = write_build(f"{scratch}/new", '{"value": 2}')
            old = write_build(f"{scratch}/old", '{"value": 3}')
            rows = against([Row("puts", "us", PUTS)], old, set())
            report = report_row(rows[0], measure([rows], 3, new)[0])
        self.assertEqual((report["ours"], report["peer"], report["ratio"]), (2, 3, 1.5))

    def test_a_program_that_the_other_build_lacks_is_a_reason(self):
        with tempfile.TemporaryDirectory() as scratch:
            new = write_build(f"{scratch}/new", '{"value": 2}')
            rows = against([Row("puts", "us", PUTS)], f"{scratch}/old", set())
            report = report_row(rows[0], measure([rows], 3, new)[0])
        self.assertIn("puts_weir is not built", report["reason"])
        self.assertIsNone(report["ratio"])


if __name__ == "__main__":
    unittest.main()
