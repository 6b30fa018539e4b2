"""weir paper: the figures of the papers have the shapes that the papers describe."""

import json
import os
import tempfile
import unittest

from tool import weir

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

    def test_streams_of_a_xeon_phi(self):
        self.check("000", ("4a", "4b", "5", "6", "7a", "7b", "8a", "8b", "9"), 25)

    def test_hosts_and_coprocessors(self):
        self.check("001", ("matmul", "cholesky", "pipelining"), 6)

    def test_pipelines_with_a_device(self):
        self.check("002", ("10, GTX 1080", "11"), 15)

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

    def test_names_are_checked(self):
        for arguments, words in ((["005"], "there is no paper '005': choose from 000, 001, 002"),
                                 (["000", "--figures", "7z"], "paper 000 has no figure '7z'"),
                                 (["000", "--figures", "7a", "-o", "/nowhere/x"], "/nowhere/x.json")):
            result = weir("paper", *arguments)
            self.assertEqual(result.returncode, BAD_INPUT, result.stderr)
            self.assertIn(words, result.stderr)
        self.assertEqual(weir("paper").returncode, USAGE)


if __name__ == "__main__":
    unittest.main()
