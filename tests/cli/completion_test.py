#!/usr/bin/python3
"""Completions and the manual page: bash completes in fact; zsh, fish and man read theirs where they are."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tool import weir

DRIVER = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_weir
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def script(self, shell):
        path = Path(self.folder.name) / shell
        path.write_text(weir("completion", shell).stdout)
        return path

    def complete(self, *words):
        done = subprocess.run(["bash", "-c", DRIVER, "driver", self.script("bash"), "weir", *words],
                              capture_output=True, text=True, check=True, cwd=self.folder.name)
        return done.stdout.split()

    def test_bash_offers_commands_and_applications(self):
        self.assertLessEqual({"info", "run", "tune", "completion", "--version"}, set(self.complete("")))
        self.assertEqual(self.complete("run", "l"), ["laplacian", "lu"])
        self.assertEqual(self.complete("help", "ru"), ["run"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])

    def test_bash_offers_the_options_of_the_application_alone(self):
        self.assertEqual(self.complete("run", "cholesky", "--si"), ["--size"])
        self.assertIn("--rhs", self.complete("run", "cholesky", "--"))
        self.assertNotIn("--rhs", self.complete("run", "reyes", "--"))

    def test_bash_fish_and_the_manual_omit_options_that_an_application_refuses(self):
        self.assertIn("--seed", self.complete("run", "matmul", "--"))
        refused = {"--n", "--seed", "--input", "--policy"}  # not in `weir run reyes --help`
        self.assertEqual(set(self.complete("run", "reyes", "--")) & refused, set())
        fish = [line for line in self.script("fish").read_text().splitlines()
                if '= "weir run reyes"' in line]
        self.assertEqual([line for line in fish if re.search(r" -l (n|seed|input|policy) ", line)], [])
        section = weir("help", "--man").stdout.split(".SS weir run reyes\n")[1].split(".SS")[0]
        self.assertIn("\\-\\-width", section)
        self.assertNotRegex(section, r"\\-\\-(seed|policy)\b")
        said = weir("run", "reyes", "--polic", "finish").stderr
        self.assertIn("unknown option '--polic'", said)
        self.assertNotIn("did you mean", said)

    def test_bash_offers_choices_files_and_nothing_for_numbers(self):
        (Path(self.folder.name) / "matrix.mtx").touch()
        self.assertEqual(self.complete("run", "cholesky", "--size", ""), ["tiny", "small", "paper"])
        self.assertEqual(self.complete("run", "cholesky", "--input", "mat"), ["matrix.mtx"])
        self.assertEqual(self.complete("run", "cholesky", "--n", ""), [])

    def test_zsh_and_fish_accept_their_completion_scripts(self):
        for shell in ("zsh", "fish"):
            path = self.script(shell)
            self.assertIn("cholesky", path.read_text())
            if shutil.which(shell):
                subprocess.run([shell, "-n", path], check=True)

    def test_an_unknown_shell_is_refused(self):
        done = weir("completion", "tcsh")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash, zsh, fish", done.stderr)

    def test_the_manual_page_has_its_sections_and_groff_accepts_it(self):
        page = weir("help", "--man").stdout
        for words in (".SH weir run\n", ".SS weir run cholesky\n", "\\-\\-domains", ".SH EXIT STATUS"):
            self.assertIn(words, page)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True,
                                  check=True)
            self.assertEqual(done.stderr, "")

    def test_the_prefix_is_the_folder_above_the_tool(self):
        tool = Path(os.environ["WEIR_TOOL"]).resolve()
        self.assertEqual(weir("--prefix").stdout.strip(), str(tool.parent.parent))


if __name__ == "__main__":
    unittest.main()
