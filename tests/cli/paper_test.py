"""weir paper: the figures of the papers have the shapes that the papers describe."""

import json
import os
import tempfile
import unittest

from tool import TOOL, weir

USAGE, BAD_INPUT, MISMATCH = 2, 3, 5


class Paper(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def paper(self, number, *options):
        result = weir("paper", number, "-o", os.path.join(self.folder, number), *options,
                      XDG_CACHE_HOME=self.folder, seconds=300)
        self.assertIn(result.returncode, (0, MISMATCH), result.stderr)
        return result

    def check(self, number, figures, expectations):
        result = self.paper(number, "--quick")
        self.assertEqual(result.returncode, 0, result.stdout)
        with open(os.path.join(self.folder, number + ".json"), encoding="utf-8") as file:
            facts = json.load(file)
        self.assertEqual(facts["schema"], "weir.paper/1")
        self.assertLessEqual(set(figures), {each["figure"] for each in facts["papers_figures"]})
        judged = [each for figure in facts["papers_figures"] for each in figure["expectations"]]
        self.assertGreaterEqual(sum(each["holds"] for each in judged), expectations)
        for each in judged:
            self.assertTrue(each["holds"] or each["known"], each)
        with open(os.path.join(self.folder, number + ".html"), encoding="utf-8") as file:
            self.assertIn(facts["title"], file.read())
        return facts

    def test_streams_on_a_xeon_phi_have_the_shapes_of_paper_000(self):
        self.check("000", ("4a", "4b", "5", "6", "7a", "7b", "8a", "8b", "9"), 25)

    def test_hosts_with_coprocessors_have_the_shapes_of_paper_001(self):
        self.check("001", ("matmul", "cholesky", "pipelining"), 6)

    def test_pipelines_with_a_device_have_the_shapes_of_paper_002(self):
        self.check("002", ("10, GTX 1080", "11"), 15)

    def figures(self, number, *options):
        """Measures the figures of a paper in real time, which does not decide a test."""
        self.paper(number, *options)
        with open(os.path.join(self.folder, number + ".json"), encoding="utf-8") as file:
            facts = json.load(file)
        found = {each["figure"]: each for each in facts["papers_figures"]}
        for figure in found.values():
            for series in figure["series"]:
                values = [value for value in series["values"] if value is not None]
                self.assertGreater(len(values), 0, series)
                self.assertGreaterEqual(min(values), 0, series)
        return found

    def check_shapes(self, figure):
        for each in figure["expectations"]:
            self.assertTrue(each["holds"] or each["known"], each)

    def test_message_counts_between_ranks_have_the_shapes_of_paper_003(self):
        found = self.figures("003", "--quick")
        self.assertEqual(list(found), ["1", "2", "3", "5.5, messages", "5.5, bandwidth"])
        self.check_shapes(found["5.5, messages"])  # counts
        self.assertEqual(len(found["5.5, messages"]["expectations"]), 3)

    def test_option_pricing_on_unequal_devices_has_the_shapes_of_paper_004(self):
        found = self.figures("004", "--quick")
        self.assertEqual(list(found), ["9", "9, this machine", "10", "11", "12"])
        for figure in ("9", "10", "12"):  # virtual time
            self.check_shapes(found[figure])

    def test_the_launch_option_starts_ranks_and_refuses_a_missing_program(self):
        launcher = f"{TOOL} launch --no-prefix -n 2"
        found = self.figures("003", "--quick", "--figures", "2", "--launch", launcher)
        commands = {command for series in found["2"]["series"] for command in series["commands"]}
        self.assertEqual(len(commands), 1)
        self.assertTrue(commands.pop().startswith(f"{launcher} weir bench messages --sizes"))
        result = weir("paper", "003", "--figures", "2", "--launch", "nosuch -n 2", "-o", os.path.join(self.folder, "x"))
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("there is no program 'nosuch'", result.stderr)

    def test_the_number_of_a_figure_selects_all_its_parts(self):
        found = self.figures("004", "--quick", "--figures", "9")
        self.assertEqual(list(found), ["9", "9, this machine"])

    def test_a_shape_that_differs_is_an_error(self):
        """Damages a value of an earlier run, which is not measured again."""
        path = os.path.join(self.folder, "000.json")
        self.paper("000", "--quick", "--figures", "8g")
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        four, = (command for command in facts["measured"] if "--tiles 4 " in command)
        facts["measured"][four]["seconds"] *= 1000
        with open(path, "w", encoding="utf-8") as file:
            json.dump(facts, file)
        result = self.paper("000", "--quick", "--figures", "8g")
        self.assertEqual(result.returncode, MISMATCH)
        self.assertIn("DIFFERS", result.stdout)
        self.assertEqual(self.paper("000", "--quick", "--figures", "8g", "--fresh").returncode, 0)

    def test_a_file_that_is_damaged_is_measured_anew(self):
        path = os.path.join(self.folder, "000.json")
        version = weir("--version").stdout.strip()
        for kept in ("", "[]", '{"schema": 5}', '{"schema": "weir.paper/1", "version": "%s"}' % version,
                     '{"schema": "weir.paper/1", "version": "%s", "measured": [1, {"seconds": "x"}]}' % version):
            with open(path, "w", encoding="utf-8") as file:
                file.write(kept)
            result = self.paper("000", "--quick", "--figures", "8g")
            self.assertEqual(result.returncode, 0, kept)

    def test_unknown_papers_and_figures_and_missing_folders_are_refused(self):
        for arguments, words in ((["005"], "there is no paper '005': choose from 000, 001, 002, 003, 004"),
                                 (["000", "--figures", "7z"], "paper 000 has no figure '7z'"),
                                 (["000", "--figures", "7a", "-o", "/nowhere/x"], "/nowhere/x.json")):
            result = weir("paper", *arguments)
            self.assertEqual(result.returncode, BAD_INPUT, result.stderr)
            self.assertIn(words, result.stderr)
        self.assertEqual(weir("paper").returncode, USAGE)


if __name__ == "__main__":
    unittest.main()
