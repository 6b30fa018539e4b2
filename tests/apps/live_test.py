#!/usr/bin/python3
"""What pipelines tell while they run and afterwards, and the techniques that can be switched off."""

import json
import os
import pty
import re
import subprocess

import weir_cli
from weir_cli import MIXED, USAGE

UNSUPPORTED = 4
REYES = ("reyes", "--width", 320, "--height", 240)


class LiveTest(weir_cli.CliTest):
    def live(self, *arguments):
        output, said = self.weir("run", *arguments, "--live", "--repeat", 2, "--json")
        return json.loads(output), said.splitlines()

    def test_live_prints_lines_with_figures_of_stages_without_a_terminal(self):
        report, lines = self.live(*REYES)
        ends = [line for line in lines if ", all of it; " in line]
        self.assertTrue(all(line.startswith("weir: reyes, run ") for line in lines), lines)
        self.assertGreaterEqual(len(ends), 2)
        self.assertIn("run 2 of 2", lines[-1])
        for stage, items in report["stages"].items():
            self.assertRegex(lines[-1], rf"; {stage} [\d.]+( [kMG])?/s, {items:,} items, busy \d+ %, "
                                        r"waiting 0/\d+, p50 .* p95 .* p99 ")

    def test_live_reports_the_stages_of_raster_evolution_genes_and_stencil(self):
        fasta = self.write("a.fa", ">a\n" + "ACGTTGCAAGTCCGATAGCT" * 40 + "\n")
        query = self.write("q.fa", ">q\n" + "ACGTTGCAAGTCCGATAGCT" * 3 + "\n")
        for arguments, stage in (
                (("raster", "--width", 64, "--height", 48, "--pictures", 3), "vertex"),
                (("evolution", "--n", 20, "--generations", 3), "evaluate"),
                (("gene-alignment", "--input", fasta, "--query", query), "fine"),
                (("stencil", "--size", "tiny", "--domains", MIXED), "make"),
                (("stencil", "--size", "tiny", "--domains", MIXED, "--baseline"), "collect")):
            with self.subTest(arguments):
                _, lines = self.live(*arguments)
                self.assertIn(f"; {stage} ", lines[-1])

    def test_live_redraws_a_table_in_place_on_a_terminal(self):
        primary, secondary = pty.openpty()
        command = [weir_cli.program(0), "run", *map(str, REYES), "--live", "--repeat", "3"]
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=secondary, cwd=self.folder,
                              env=environment) as process:
            os.close(secondary)
            shown = b""
            while True:
                try:
                    more = os.read(primary, 65536)
                except OSError:  # no process has the other side open
                    break
                if not more:
                    break
                shown += more
            self.assertEqual(process.wait(timeout=120), 0)
        os.close(primary)
        frames = shown.decode().split("\x1b[?7l")[1:]
        self.assertGreaterEqual(len(frames), 3)
        lines = [frame.split("\x1b[?7h")[0].replace("\r", "").splitlines() for frame in frames]
        for frame in lines:
            self.assertRegex(frame[0], r"^reyes, run \d of 3, ")
            self.assertEqual(frame[1].split()[:4], ["stage", "items/s", "items", "busy"])
            self.assertEqual(len(frame), len(lines[0]))
        # Each frame is drawn over the one before.
        self.assertEqual(len(re.findall(rf"\x1b\[{len(lines[0])}A\r\x1b\[J", shown.decode())),
                         len(frames) - 1)
        self.assertEqual(lines[-1][2].split()[0], lines[0][2].split()[0])

    def test_live_is_refused_for_runs_without_a_pipeline(self):
        message = self.refusal("run", *REYES, "--baseline", "--live", code=UNSUPPORTED)
        self.assertIn("runs no pipeline, which --live needs", message)
        message = self.refusal("run", "cholesky", "--n", 64, "--live", code=weir_cli.USAGE)
        self.assertIn("--live: cholesky does not use this option", message)


class SwitchTest(weir_cli.CliTest):
    def test_reports_record_the_pipeline_switches_that_were_given(self):
        on = self.report(*REYES)
        self.assertEqual([on[each] for each in ("batching", "end", "relief")],
                         [True, "tracking", "both"])
        self.assertNotIn("end_wait_s", on)
        for options, member, value in ((("--no-batching",), "batching", False),
                                       (("--end", "timeout"), "end", "timeout"),
                                       (("--relief", "warp"), "relief", "warp"),
                                       (("--relief", "off"), "relief", "off"),
                                       (("--batch", 7), "batch", 7),
                                       (("--in-flight", 2), "in_flight", 2)):
            off = self.report(*REYES, *options)
            self.assertEqual(off[member], value)
            self.assertEqual(off["stages"], on["stages"])
            self.assertEqual([stage["name"] for stage in off["pipeline"]["stages"]],
                             [stage["name"] for stage in on["pipeline"]["stages"]])

    def test_fixed_batches_take_longer_than_those_that_the_pipeline_chooses(self):
        """Than those that the pipeline chooses: on a device whose copies take 50 us each."""
        device = ("--domains", "sim:clock=virtual,cores=1,gbps=16,gflops=8000,latency_us=50")
        chosen = self.report(*REYES, *device)
        for options in (("--batch", 4), ("--batch", 64, "--in-flight", 1)):
            fixed = self.report(*REYES, *device, *options)
            self.assertEqual(fixed["stages"], chosen["stages"])
            self.assertGreater(fixed["seconds"]["median"], 1.5 * chosen["seconds"]["median"])

    def test_an_end_by_timeout_reports_a_wait_of_at_least_20_ms(self):
        report = self.report(*REYES, "--end", "timeout")
        self.assertGreaterEqual(report["end_wait_s"], 0.02)
        self.assertGreaterEqual(report["seconds"]["median"], report["end_wait_s"])

    def test_switches_are_refused_for_baselines_virtual_time_and_unknown_values(self):
        for options in (("--no-batching",), ("--end", "timeout"), ("--relief", "warp"),
                        ("--relief", "off"), ("--batch", 7), ("--in-flight", 2)):
            message = self.refusal("run", *REYES, "--baseline", *options, code=UNSUPPORTED)
            self.assertIn("leave --baseline out", message)
        message = self.refusal("run", *REYES, "--overlap", "none", code=UNSUPPORTED)
        self.assertIn("add --baseline", message)
        message = self.refusal("run", *REYES, "--end", "timeout", "--domains", "sim:clock=virtual",
                               code=UNSUPPORTED)
        self.assertIn("time that passes by itself", message)
        for options in (("--end", "never"), ("--relief", "on"), ("--lazy", "off")):
            self.refusal("run", *REYES, *options, code=USAGE)


class GraphTest(weir_cli.CliTest):
    def test_figures_of_stages_and_tunnels_in_the_report_are_consistent(self):
        report = self.report(*REYES)
        graph = report["pipeline"]
        names = [stage["name"] for stage in graph["stages"]]
        for stage in graph["stages"]:
            if not stage["source"]:
                self.assertEqual(stage["items"], report["stages"][stage["name"]])
            self.assertGreaterEqual(stage["busy_share"], 0)
            self.assertLessEqual(stage["busy_share"], 1)
        for number, tunnel in enumerate(graph["tunnels"]):
            reader = graph["stages"][tunnel["stage"]]
            self.assertEqual(tunnel["items"], reader["items"])
            writers = [stage for stage in graph["stages"] if number in stage["outputs"]]
            self.assertTrue(writers)
            if all(len(writer["outputs"]) == 1 for writer in writers):
                self.assertEqual(sum(writer["put"] for writer in writers), tunnel["items"])
        self.assertIn(graph["bottleneck"], names)
        self.assertEqual(len(graph["findings"]), 1)
        self.assertIn(graph["bottleneck"], graph["findings"][0]["words"])

    def test_a_slow_device_is_reported_as_the_bottleneck(self):
        """In virtual time only the device takes any."""
        report = self.report(*REYES, "--domains", "sim:clock=virtual,cores=1,gbps=1,gflops=0.1")
        graph = report["pipeline"]
        self.assertEqual((graph["bottleneck"], graph["saturated"]), ("dice", True))
        self.assertIn("Stage 'dice' is the bottleneck: its device was busy",
                      graph["findings"][0]["words"])


if __name__ == "__main__":
    weir_cli.main()
