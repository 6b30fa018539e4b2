"""Runs the command line tool for the tests of this folder."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

OK, RUN_FAILED, USAGE, BAD_INPUT, UNAVAILABLE, MISMATCH, DEADLINE = range(7)

SIM = "sim:cores=1,gbps=6,latency_us=10"
MIXED = "host:cores=1,sim:cores=1"
DOMAINS = ("host", SIM, MIXED)
CARD = "sim:cores=1,gbps=6,gflops=100,clock=virtual"  # where only the device has time of its own
CARDS = (MIXED, "host:cores=1,sim:order=device,cores=1", CARD)

SLOWDOWN = int(os.environ.get("WEIR_TEST_SLOWDOWN", "1"))  # of a sanitizer or emulator, at most

TYPES = {"double": np.float64, "float": np.float32}

_programs = []


def main():
    """Takes the paths of programs from the command line, up to the first option."""
    while len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        _programs.append(os.path.abspath(sys.argv.pop(1)))
    if not _programs:
        sys.exit(f"usage: {sys.argv[0]} WEIR [OTHER PROGRAM] [unittest options]")
    unittest.main(module="__main__")


def program(index):
    return _programs[index]


class CliTest(unittest.TestCase):
    """A test with a folder of its own, in which it runs the tool."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {}  # variables for the tool

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, matrix):
        np.save(self.path(name), matrix)
        return self.path(name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def weir(self, *arguments, code=OK):
        """Runs the tool, requires an exit code or one of several; returns (stdout, stderr)."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("WEIR_")}
        environment.update(self.environment)
        command = [program(0)] + [str(argument) for argument in arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120 * SLOWDOWN, check=False,
                                cwd=self.folder, env=environment)
        self.assertIn(result.returncode, code if isinstance(code, tuple) else (code,),
                      f"{' '.join(command)}\n{result.stdout}{result.stderr}")
        return result.stdout, result.stderr

    def report(self, *arguments, repeat=1):
        """Runs an application, once unless told otherwise, and returns its report."""
        output, _ = self.weir("run", *arguments, "--repeat", repeat, "--json")
        return json.loads(output)

    def gain(self, *arguments):
        """How much faster a pipeline is than the scheme of Hetero-Mark on the device of paper 002."""
        domains = "host:clock=virtual,cores=16,gflops=16,sim:gtx-1080"
        baseline, pipeline = (
            self.report(*arguments, "--domains", domains, *form, repeat=3)["seconds"]["median"]
            for form in (("--baseline", "--overlap", "stages"), ()))
        return baseline / pipeline

    def require_opencl(self):
        """Skips the test where there is no device, and returns domains with one."""
        _, message = self.weir("info", "--domains", "opencl:0", code=tuple(range(7)))
        if message:
            self.skipTest(f"there is no opencl:0: {message.strip()}")
        return "host:cores=1,opencl:0,alias=off"

    def refusal(self, *arguments, code):
        """Runs what must fail with a message of one line and without data; returns the message."""
        output, message = self.weir(*arguments, code=code)
        self.assertEqual(output, "")
        self.assertRegex(message, r"\A[^\n]+\n\Z")
        return message

    def assert_names(self, message, *words):
        for word in words:
            self.assertRegex(message, r"(?<![\w.])" + re.escape(str(word)) + r"(?![\w.]\w)")


def relative_error(ours, expected):
    return np.linalg.norm(ours - expected) / np.linalg.norm(expected)


def positive_definite(n, seed=1):
    """A well-conditioned one, so that its factor is known to almost full precision."""
    part = np.random.default_rng(seed).standard_normal((n, n))
    return part @ part.T / n + np.eye(n)
