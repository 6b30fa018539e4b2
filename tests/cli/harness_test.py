"""How bench/run starts programs, with programs that measure nothing."""

import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import main as command_line  # noqa: E402
from harness.command import Command, Failed, Figure, Formula  # noqa: E402
from harness.measure import measure  # noqa: E402
from harness.report import cell  # noqa: E402
from harness.row import Row, ratio_at_least, report_row  # noqa: E402


class HarnessTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "bin").mkdir()

    def program(self, name, *lines):
        path = self.build / "bin" / name
        path.write_text("\n".join((f"#!{sys.executable}", *lines)) + "\n", encoding="utf-8")
        path.chmod(0o755)
        return Command.of(name)

    def test_programs_get_an_empty_cache_folder_instead_of_the_users(self):
        tell = self.program(
            "tell", "import json, os, tempfile",
            'folders = [os.environ[name] for name in ("XDG_CACHE_HOME", "STARPU_HOME")]',
            'print(json.dumps({"value": len(os.listdir(folders[0])), "folders": folders}))',
            "tempfile.mkstemp(dir=folders[0])")
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.build)}):
            outputs, = measure([[Row("tell", "files", Figure(tell))]], 2, self.build)
        self.assertEqual([said["value"] for said in outputs[tell]], [0, 1])
        for said in outputs[tell]:
            self.assertNotIn(str(self.build), said["folders"])

    def test_a_figure_of_zero_leaves_no_ratio(self):
        row = Row("a", "s", Figure(Command.of("a")), Figure(Command.of("b")), "b", ratio_at_least(1))
        times = {row.ours.command: [{"value": 0}, {"value": 2}],
                 row.peer.command: [{"value": 3}, {"value": 4}]}
        report = report_row(row, times)
        self.assertEqual((report["ours"], report["peer"], report["ratio"], report["ok"]),
                         (1, 3.5, None, None))
        self.assertEqual(report["reason"], "a figure is 0 s: there is no ratio")
        times[row.ours.command][0]["value"] = 1
        self.assertEqual(report_row(row, times)["ratio"], 2.5)

    def test_a_figure_that_is_not_a_number_fails_its_row(self):
        command = Command.of("a")
        for figure in (Figure(command), Formula(command, formula=lambda said: said["value"]),
                       Formula(command, formula=lambda said: said["value"] / 2)):
            report = report_row(Row("a", "s", figure), {command: [{"value": 1}, {"value": None}]})
            self.assertEqual((report["ours"], report["ok"]), (None, False))
            self.assertIn("a printed ", report["reason"])

    def test_the_spread_of_a_negative_figure_has_no_sign(self):
        row = {"ours": -2.0, "spread": {"ours": [-3.0, -1.0]}}
        self.assertEqual(cell(row, "ours"), "-2 ±50%")

    def test_all_suites_are_searched_for_a_row(self):
        (self.build / "bench" / "programs").mkdir(parents=True)
        asked = []

        def run_suite(name, _):
            asked.append(name)
            return {"suite": name, "rows": [{"ok": True}] if name == "queue" else []}

        options = ["--build", str(self.build), "--json", "--only", "x"]
        with mock.patch.object(command_line, "run_suite", run_suite), \
             mock.patch("sys.stdout", io.StringIO()) as printed, mock.patch("sys.stderr"):
            self.assertEqual(command_line.main(["all", *options]), 0)
            self.assertEqual(asked, command_line.suites())
            self.assertEqual(json.loads(printed.getvalue()), [run_suite("queue", None)])
            self.assertEqual(command_line.main(["core", *options]), 2)
            printed.truncate(printed.seek(0))
            self.assertEqual(command_line.main(["queue", *options]), 0)
            self.assertEqual(json.loads(printed.getvalue()), run_suite("queue", None))

    def test_a_program_that_takes_too_long_is_ended_with_its_children(self):
        end = self.build / "alive"
        os.mkfifo(end)
        reader = os.open(end, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        stuck = self.program(
            "stuck", "import signal, subprocess",
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            f'subprocess.run(["sleep", "1000"], stdin=open({str(end)!r}, "w"))')
        with mock.patch("harness.command.TO_END_S", 0):
            self.assertRaisesRegex(Failed, "did not end within 1 s", stuck.run, self.build, {}, 1)
        os.set_blocking(reader, True)
        self.assertEqual(os.read(reader, 1), b"")  # no process has the other end


if __name__ == "__main__":
    unittest.main()
