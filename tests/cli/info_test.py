"""weir info, help and version: pages, JSON, and what happens to bad input and bad outputs."""

import json
import os
import subprocess
import unittest

from tool import TOOL, weir

USAGE, BAD_INPUT = 2, 3


class Info(unittest.TestCase):
    def test_page_names_the_machine_and_every_domain(self):
        result = weir("info", "--domains", "host,sim:cores=1,gbps=3,duplex=half")
        self.assertEqual(result.returncode, 0, result.stderr)
        for part in ("Machine", "processor", "Domains", "sim:0", "3 GB/s half duplex", "WEIR_BLAS"):
            self.assertIn(part, result.stdout)
        self.assertEqual(result.stderr, "")

    def test_json_is_one_object_that_agrees_with_the_page(self):
        result = weir("info", "--json")
        description = json.loads(result.stdout)
        self.assertEqual(description["schema"], "weir.info/1")
        self.assertEqual(description["domains"][0]["name"], "host")
        self.assertIn(description["machine"]["processor"], weir("info").stdout)

    def test_domains_come_from_the_environment_unless_given(self):
        self.assertIn("sim:0", weir("info", WEIR_DOMAINS="sim").stdout)
        self.assertNotIn("sim:0", weir("info", "--domains", "null", WEIR_DOMAINS="sim").stdout)

    def test_unknown_variables_are_named(self):
        page = weir("info", WEIR_BLSA="x").stdout
        self.assertIn("WEIR_BLSA (did you mean 'WEIR_BLAS'?)", page)

    def test_bad_domains_are_bad_input(self):
        result = weir("info", "--domains", "sim:memroy=1GiB")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"^weir: .*did you mean 'memory'.*\n$")


class Colour(unittest.TestCase):
    def test_only_on_request_when_the_output_is_no_terminal(self):
        self.assertNotIn("\x1b", weir("info").stdout)
        self.assertIn("\x1b", weir("info", CLICOLOR_FORCE="1").stdout)
        self.assertNotIn("\x1b", weir("info", CLICOLOR_FORCE="0").stdout)
        self.assertNotIn("\x1b", weir("info", CLICOLOR_FORCE="1", NO_COLOR="1").stdout)


    def test_on_a_terminal_unless_it_is_dumb(self):
        for term, coloured in (("xterm", True), ("dumb", False)):
            try:
                terminal, output = os.openpty()
            except OSError as error:
                self.skipTest(f"this system gives no terminals: {error}")
            weir("info", stdout=output, TERM=term)
            self.assertEqual(b"\x1b[1mMachine" in os.read(terminal, 65536), coloured)
            os.close(output)
            os.close(terminal)


class Usage(unittest.TestCase):
    def expect(self, arguments, message):
        result = weir(*arguments)
        self.assertEqual(result.returncode, USAGE)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, f"weir: {message}\n")

    def test_unknown_names_get_the_nearest_one(self):
        self.expect(["inof"], "unknown command 'inof' (did you mean 'info'?); see 'weir --help'")
        self.expect(
            ["info", "--jsn"],
            "unknown option '--jsn' (did you mean '--json'?); see 'weir info --help'",
        )
        self.expect(["info", "--xyzzy=1"], "unknown option '--xyzzy'; see 'weir info --help'")
        self.expect(["doctor", "now"], "unexpected argument 'now'; see 'weir doctor --help'")

    def test_unknown_help_topic(self):
        result = weir("help", "inof")
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("did you mean 'info'", result.stderr)

    def test_without_a_command_the_help_is_talk(self):
        result = weir()
        self.assertEqual(result.returncode, USAGE)
        self.assertEqual(result.stdout, "")
        self.assertIn("doctor", result.stderr)


class Help(unittest.TestCase):
    def test_examples_come_before_the_options(self):
        for command in ("info", "run", "doctor"):
            page = weir("help", command).stdout
            self.assertEqual(page, weir(command, "--help").stdout)
            self.assertLess(page.index("Examples:"), page.index("Options:"))

    def test_lists_the_commands(self):
        for command in ("info", "run", "doctor", "help"):
            self.assertIn(f"\n  {command} ", weir("help").stdout)

    def test_version_names_the_backends(self):
        self.assertRegex(
            weir("--version").stdout, r"^weir \d+\.\d+\.\d+ \(backends: host, sim, null\)\n$"
        )


class Outputs(unittest.TestCase):
    def test_a_full_disk_is_reported(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("this system has no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments in (["info"], ["info", "--json"], ["help"], ["--version"], ["doctor"]):
                result = weir(*arguments, stdout=full)
                self.assertEqual(result.returncode, 1, arguments)
                self.assertIn("cannot write the output: No space left", result.stderr)

    def test_a_closed_output_is_reported(self):
        script = f'"{TOOL}" info >&-'
        result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write the output", result.stderr)

    def test_a_reader_that_has_gone_is_reported(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            result = weir("info", stdout=pipe)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Broken pipe", result.stderr)


if __name__ == "__main__":
    unittest.main()
