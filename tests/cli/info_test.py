"""weir info, help and version: pages, JSON, and what happens to bad input and bad outputs."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tool
from tool import TOOL

USAGE, BAD_INPUT, UNAVAILABLE = 2, 3, 4


def weir(*arguments, drivers=False, **options):
    """Runs the tool without the drivers of OpenCL, which take a second to say which devices they have."""
    if not drivers:
        options.setdefault("OCL_ICD_VENDORS", "/nonexistent")
    return tool.weir(*arguments, **options)


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

    def test_presets_list_their_settings_and_sources_and_can_be_run(self):
        page = weir("info", "--presets").stdout
        backends = json.loads(weir("info", "--presets", "--json").stdout)
        presets = [preset for backend in backends for preset in backend["presets"]]
        self.assertGreater(len(presets), 8)
        for preset in presets:
            self.assertIn(preset["domain"], page)
            self.assertIn("assumed", preset["sources"])
        for setting in presets[0]["settings"].split(","):
            self.assertIn(setting, page)
        result = weir("run", "cholesky", "--n", "512", "--verify", "--domains",
                      "host:hsw-e5-2697v3,cores=2,sim:knc-7120,cores=3")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_domains_of_the_environment_are_used_unless_others_are_given(self):
        self.assertIn("sim:0", weir("info", WEIR_DOMAINS="sim").stdout)
        self.assertNotIn("sim:0", weir("info", "--domains", "null", WEIR_DOMAINS="sim").stdout)

    def test_ranks_divide_the_cores(self):
        def cores(*arguments, **environment):
            result = weir("info", "--json", *arguments, HWLOC_SYNTHETIC="core:8 pu:1", **environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)["domains"][0]["cores"]

        rank = {"WEIR_RANK": "1", "WEIR_RANKS": "4"}
        self.assertEqual(cores(), 8)
        self.assertEqual(cores(**rank), 2)
        self.assertEqual(cores("--domains", "host:cores=5", **rank), 5)
        self.assertEqual(cores(WEIR_RANK_CORES="all", **rank), 8)
        wrong = weir("info", WEIR_RANK_CORES="some")
        self.assertEqual(wrong.returncode, BAD_INPUT)
        self.assertIn("WEIR_RANK_CORES is 'some': choose divided or all", wrong.stderr)

    def test_a_single_rank_says_that_nothing_connects_it(self):
        self.assertIn("nothing: it is the only rank", weir("info", "--ranks").stdout)
        alone = json.loads(weir("info", "--ranks", "--json").stdout)
        self.assertEqual((alone["schema"], alone["ranks"][0]["links"]), ("weir.ranks/1", ["self"]))

    def test_unknown_variables_are_named(self):
        page = weir("info", WEIR_BLSA="x").stdout
        self.assertIn("WEIR_BLSA (did you mean 'WEIR_BLAS'?)", page)

    def test_cuda_without_a_driver_says_what_to_install(self):
        result = weir("info", "--domains", "cuda", WEIR_CUDA_DRIVER="/nonexistent")
        self.assertEqual(result.returncode, UNAVAILABLE)
        self.assertRegex(result.stderr, r"^weir: .*CUDA.*(install|build).*\n$")

    def test_opencl_without_a_driver_says_what_to_install(self):
        result = weir("info", "--domains", "opencl", OCL_ICD_VENDORS="/nonexistent")
        self.assertEqual(result.returncode, UNAVAILABLE)
        self.assertRegex(result.stderr, r"^weir: .*OpenCL.*install.*\n$")

    def test_a_missing_opencl_device_is_refused_with_those_that_exist(self):
        if weir("info", "--domains", "opencl", drivers=True).returncode == UNAVAILABLE:
            self.skipTest("there is no OpenCL device")
        result = weir("info", "--domains", "host,opencl:999", drivers=True)
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertRegex(result.stderr, r"^weir: domain 'opencl:999': .*OpenCL has: 0 .*\n$")

    def test_all_devices_are_listed_and_the_named_ones_measured(self):
        two = {"POCL_DEVICES": "pthread pthread", "drivers": True}
        names = "host,opencl:0,alias=off,opencl:1,alias=off,sim:cores=1"
        result = weir("info", "--json", "--domains", names, **two)
        if result.returncode != 0:
            self.skipTest(f"there are no two OpenCL devices: {result.stderr.strip()}")
        description = json.loads(result.stdout)
        self.assertEqual([domain["backend"] for domain in description["domains"]],
                         ["host", "opencl", "opencl", "sim"])
        for domain in description["domains"][1:]:
            for rate in ("h2d_gbps", "d2h_gbps", "latency_us"):
                self.assertGreater(domain["measured"][rate], 0)
        # Without --domains only the host is opened; the others are listed all the same.
        description = json.loads(weir("info", "--json", **two).stdout)
        self.assertEqual([domain["name"] for domain in description["domains"]], ["host"])
        listed = [device for device in description["available"]
                  if device["domain"] in ("opencl:0", "opencl:1")]
        self.assertEqual([device["domain"] for device in listed], ["opencl:0", "opencl:1"])
        for device in listed:
            self.assertGreater(device["cores"], 0)
            self.assertGreater(device["memory_bytes"], 0)
            self.assertEqual(device["portable_kernels"], "compiled by the device")
        self.assertEqual(description["domains"][0]["portable_kernels"],
                         "compiled with the program")
        page = weir("info", **two).stdout
        self.assertRegex(page, r"opencl:1 .*compiled by the device")

    def test_without_drivers_no_devices_are_listed(self):
        nowhere = {"OCL_ICD_VENDORS": "/nonexistent", "WEIR_CUDA_DRIVER": "/nonexistent"}
        self.assertEqual(json.loads(weir("info", "--json", **nowhere).stdout)["available"], [])
        self.assertNotIn("Devices", weir("info", **nowhere).stdout)

    def test_a_misspelt_setting_of_a_domain_is_refused_with_a_suggestion(self):
        result = weir("info", "--domains", "sim:memroy=1GiB")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"^weir: .*did you mean 'memory'.*\n$")


class Measured(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-info-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "weir", "rates.json")

    def rates(self, domains, *options):
        result = weir("info", "--json", "--domains", domains, *options,
                      XDG_CACHE_HOME=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said = result.stderr
        return [domain.get("measured") for domain in json.loads(result.stdout)["domains"]]

    def test_rates_of_cores_and_links_are_measured_where_they_exist(self):
        host, card, null = self.rates("host:cores=1,sim:cores=1,gbps=0.5,latency_us=300,null")
        for key in ("gemm_gflops", "copy_gbps"):
            self.assertGreater(host[key], 0)
            self.assertGreater(card[key], 0)
        for key in ("h2d_gbps", "d2h_gbps", "both_gbps", "latency_us"):
            self.assertIsNone(host[key])
        # A simulated link is never faster than its model.
        self.assertLess(0.01, card["h2d_gbps"])
        self.assertLess(card["h2d_gbps"], 0.51)
        self.assertLess(card["both_gbps"], 1.02)
        self.assertGreater(card["latency_us"], 299)
        self.assertIsNone(null)

    def test_measured_rates_of_a_simulated_device_equal_its_model(self):
        (card,) = self.rates("sim:clock=virtual,gbps=4,latency_us=7,gflops=20,duplex=half")
        self.assertAlmostEqual(card["h2d_gbps"], 4, delta=0.1)
        self.assertAlmostEqual(card["both_gbps"], 4, delta=0.1)
        self.assertAlmostEqual(card["latency_us"], 7, delta=0.1)
        self.assertAlmostEqual(card["gemm_gflops"], 20, delta=0.1)
        self.assertIsNone(card["copy_gbps"])
        self.assertFalse(os.path.exists(self.file), "what is modelled is not kept")

    def test_rates_are_measured_once_and_again_with_refresh(self):
        self.rates("host:cores=1")
        with open(self.file, encoding="utf-8") as file:
            book = json.load(file)
        book["rates"][0]["measured"]["gemm_gflops"] = 123456
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump(book, file)
        self.assertEqual(self.rates("host:cores=1")[0]["gemm_gflops"], 123456)
        self.assertIn("123456 GFLOP/s", weir("info", "--domains", "host:cores=1",
                                             XDG_CACHE_HOME=self.folder).stdout)
        self.assertNotEqual(self.rates("host:cores=1", "--refresh")[0]["gemm_gflops"], 123456)
        self.assertNotEqual(self.rates("host:cores=1")[0]["gemm_gflops"], 123456)

    def test_damaged_files_of_rates_are_measured_again_without_a_message(self):
        os.makedirs(os.path.dirname(self.file))
        for text in ("{", '{"schema": 5}', '{"schema": "weir.rates/1", "rates": 7}',
                     '{"schema": "weir.rates/1", "rates": [1, null, {"of": 1, "measured": {"date": 1}}]}'):
            with open(self.file, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertGreater(self.rates("host:cores=1")[0]["gemm_gflops"], 0, text)
            self.assertEqual(self.said, "")

    def test_rates_that_cannot_be_stored_are_measured_with_a_warning(self):
        with open(os.path.join(self.folder, "weir"), "w", encoding="utf-8") as file:
            file.write("no folder")
        self.assertGreater(self.rates("host:cores=1")[0]["gemm_gflops"], 0)
        self.assertRegex(self.said, r"^weir: cannot store the measured rates: .*\n$")

    def test_a_device_that_is_lost_is_reported_and_others_are_measured(self):
        card, host = self.rates("sim:cores=1,lost_at=3,host:cores=1")
        self.assertIn("sim:0", card["problem"])
        self.assertGreater(host["gemm_gflops"], 0)
        page = weir("info", "--domains", "sim:lost_at=3", XDG_CACHE_HOME=self.folder).stdout
        self.assertRegex(page, r"not measured: sim:0: .*\n")


class Colour(unittest.TestCase):
    def test_output_that_is_not_to_a_terminal_is_coloured_only_on_request(self):
        self.assertNotIn("\x1b", weir("info").stdout)
        self.assertIn("\x1b", weir("info", CLICOLOR_FORCE="1").stdout)
        self.assertNotIn("\x1b", weir("info", CLICOLOR_FORCE="0").stdout)
        self.assertNotIn("\x1b", weir("info", CLICOLOR_FORCE="1", NO_COLOR="1").stdout)


    def is_coloured(self, **environment):
        try:
            terminal, output = os.openpty()
        except OSError as error:
            self.skipTest(f"this system gives no terminals: {error}")
        weir("info", stdout=output, **environment)
        text = os.read(terminal, 65536)
        os.close(output)
        os.close(terminal)
        self.assertIn(b"Machine", text)
        return b"\x1b[1mMachine" in text

    def test_output_to_a_terminal_is_coloured_unless_it_is_dumb(self):
        self.assertTrue(self.is_coloured(TERM="xterm"))
        self.assertFalse(self.is_coloured(TERM="dumb"))

    def test_output_under_mpirun_is_not_coloured_unless_forced(self):
        for variable in ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE"):
            self.assertFalse(self.is_coloured(TERM="xterm", **{variable: "1"}))
        self.assertTrue(self.is_coloured(TERM="xterm", OMPI_COMM_WORLD_SIZE="1",
                                         CLICOLOR_FORCE="1"))


class Usage(unittest.TestCase):
    def expect(self, arguments, message):
        result = weir(*arguments)
        self.assertEqual(result.returncode, USAGE)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, f"weir: {message}\n")

    def test_unknown_commands_and_options_suggest_the_nearest_name(self):
        self.expect(["inof"], "unknown command 'inof' (did you mean 'info'?); see 'weir --help'")
        self.expect(["tune", "modles"],
                    "unknown command 'modles' (did you mean 'models'?); see 'weir tune --help'")
        self.expect(
            ["info", "--jsn"],
            "unknown option '--jsn' (did you mean '--json'?); see 'weir info --help'",
        )
        self.expect(["info", "--xyzzy=1"], "unknown option '--xyzzy'; see 'weir info --help'")
        self.expect(["doctor", "now"], "unexpected argument 'now'; see 'weir doctor --help'")

    def test_an_unknown_help_topic_suggests_the_nearest_one(self):
        result = weir("help", "inof")
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("did you mean 'info'", result.stderr)

    def test_without_a_command_the_help_is_written_to_standard_error(self):
        result = weir()
        self.assertEqual(result.returncode, USAGE)
        self.assertEqual(result.stdout, "")
        self.assertIn("doctor", result.stderr)


class Help(unittest.TestCase):
    def test_help_shows_examples_before_the_options(self):
        for command in ("info", "run", "doctor"):
            page = weir("help", command).stdout
            self.assertEqual(page, weir(command, "--help").stdout)
            self.assertLess(page.index("Examples:"), page.index("Options:"))

    def test_help_of_a_subcommand_shows_examples_of_its_own_command(self):
        for command in (["run", "cholesky"], ["bench", "overlap"], ["tune", "models"], ["tune", "cholesky"]):
            page = weir(*command, "--help").stdout
            self.assertIn(f"weir {command[0]} ", page[page.index("Examples:"):page.index("Options:")])
            self.assertNotIn("weir doctor", page)

    def test_help_lists_the_commands(self):
        for command in ("info", "run", "bench", "tune", "report", "doctor", "help"):
            self.assertIn(f"\n  {command} ", weir("help").stdout)

    def test_help_of_every_application_shows_how_to_run_it(self):
        listed = weir("run", "--help").stdout.split("Subcommands:")[1]
        for application in re.findall(r"^  (\S+)", listed, re.MULTILINE):
            page = weir("run", application, "--help").stdout
            self.assertIn(f"\n  weir run {application} ", page[:page.index("Options:")])

    def test_version_ends_normally_when_signals_are_ignored(self):
        for ignored in ("TERM", "INT TERM HUP"):
            result = subprocess.run(["sh", "-c", f'trap "" {ignored}; exec "$0" --version', TOOL],
                                    stdout=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 0)
            self.assertIn("backends", result.stdout)

    def test_version_names_the_backends(self):
        self.assertRegex(
            weir("--version").stdout, r"^weir \d+\.\d+\.\d+( commit [0-9a-f]{12})? \(backends: host, sim, opencl, cuda, rank, null\)\n$"
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

    def test_messages_that_cannot_be_written_do_not_change_the_exit_code(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("this system has no /dev/full")
        warned = ["run", "matmul", "--n", "64", "--repeat", "1", "--tuned"]  # for which nothing was
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments, code in (
                    (["nothing"], 2), ([], 2), (["info", "--domains", "none"], 3), (warned, 0)):
                result = weir(*arguments, stderr=full, XDG_CACHE_HOME="/proc/nowhere")
                self.assertEqual(result.returncode, code, arguments)

    def test_a_closed_output_is_reported(self):
        script = f'"{TOOL}" info >&-'
        result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write the output", result.stderr)

    def test_a_broken_pipe_is_reported(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            result = weir("info", stdout=pipe)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Broken pipe", result.stderr)


if __name__ == "__main__":
    unittest.main()
