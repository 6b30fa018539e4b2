"""Compares `weir run laplacian` with NumPy and with one domain, and gives it what it must refuse."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, DOMAINS, TYPES, USAGE

DEVICE = "sim:clock=virtual,gflops=35,memory_gbps=14,gbps=6"


def mode(n, dims):
    """The lowest mode of the Laplacian, and what a step leaves of it."""
    wave = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    field = wave
    for _ in range(dims - 1):
        field = np.multiply.outer(field, wave)
    return field, 1 + 0.25 * (2 * np.cos(np.pi / (n + 1)) - 2)


class LaplacianTest(weir_cli.CliTest):
    def verified(self, *options):
        report = self.report("laplacian", "--verify", *options)
        self.assertIs(report["verified"], True, report)
        self.assertEqual(set(report["breakdown"]), {"compute_s", "communicate_s", "synchronise_s"})
        return report

    def test_verification_passes_for_all_domains_blocks_and_transforms(self):
        domains = DOMAINS + ("sim:cores=1,sim:cores=1,sim:cores=1",)
        for domain, (dims, blocks), transform in itertools.product(
                domains, ((2, "1x1"), (2, "3x2"), (3, "2x2x2"), (3, "1x3x1")), ("on", "off")):
            with self.subTest(domain=domain, blocks=blocks, transform=transform):
                report = self.verified("--n", 14, "--dims", dims, "--iterations", 9, "--blocks",
                                       blocks, "--domains", domain, "--transform", transform)
                self.assertEqual(report["blocks"], np.prod([int(b) for b in blocks.split("x")]))

    def test_verification_passes_in_both_precisions_on_two_places(self):
        for precision in TYPES:
            self.verified("--n", 33, "--iterations", 11, "--precision", precision, "--domains",
                          "host", "--places", 2)

    def test_the_lowest_mode_decays_at_the_analytic_rate(self):
        for dims, domain in ((2, "host"), (3, weir_cli.SIM)):
            start, decay = mode(15, dims)
            self.verified("--n", 15, "--dims", dims, "--start", "mode", "--iterations", 60,
                          "--domains", domain, "--output", self.path("x.npy"))
            field = np.load(self.path("x.npy")).T.reshape(start.shape)
            np.testing.assert_allclose(field, decay ** 60 * start, rtol=1e-12)

    def test_fused_steps_of_one_block_have_the_bits_of_single_steps(self):
        for dims, n, iterations, fuse, precision in (
                (3, 14, 9, 2, "double"), (3, 33, 10, 4, "float"), (3, 5, 7, 7, "double"),
                (2, 60, 11, 3, "float"), (2, 9, 16, 16, "double"), (3, 160, 5, 3, "double")):
            for domain in ("host", "host:cores=1", "sim:cores=1,sim:cores=1"):
                with self.subTest(dims=dims, n=n, fuse=fuse, domain=domain):
                    self.verified("--n", n, "--dims", dims, "--iterations", iterations, "--fuse",
                                  fuse, "--precision", precision, "--domains", domain)
        self.verified("--n", 15, "--start", "mode", "--iterations", 60, "--fuse", 4)

    def test_fused_steps_of_several_blocks_have_the_bits_of_single_steps(self):
        """Slabs as wide as the halo, less than twice as wide, and wider; the first sweep shorter."""
        inproc = ("--transport", "inproc", "--check")
        for (options, blocks), (fuse, transform) in itertools.product(
                ((("--blocks", "1x1x4"), 4), (("--dims", 2, "--blocks", "1x3"), 3),
                 (("--blocks", "1x1x3", "--domains", weir_cli.MIXED), 3),
                 (("--weights", "2,1,1"), 3),
                 (("--domains", "sim:cores=1,sim:cores=1"), 2), (("--ranks", 2), 2),
                 ((*inproc, "--simulate", 2, "--blocks", "1x1x4", "--delivery", 7), 4),
                 ((*inproc, "--simulate", 3, "--dims", 2, "--delivery", 1), 3)),
                ((2, "on"), (4, "on"), (4, "off"))):
            with self.subTest(options=options, fuse=fuse, transform=transform):
                report = self.verified("--n", 16, "--iterations", 10, "--fuse", fuse,
                                       "--transform", transform, *options)
                self.assertEqual(report["blocks"], blocks)

    def test_verification_passes_when_one_sweep_has_fewer_steps_than_the_others(self):
        """A sweep of less steps than the others reads less of what would tell it that."""
        for _ in range(10):
            self.verified("--n", 16, "--iterations", 10, "--fuse", 4, "--blocks", "1x1x3",
                          "--domains", weir_cli.MIXED)

    def test_fused_steps_are_refused_for_blocks_that_are_no_slabs_or_too_thin(self):
        for options, words in (
                (("--fuse", 2, "--blocks", "1x2x3"), "in z alone: choose --blocks 1x1x6"),
                (("--fuse", 2, "--dims", 2, "--blocks", "2x1"), "in y alone: choose --blocks 1x2"),
                (("--fuse", 7, "--ranks", 2), "--fuse 7 takes blocks of 7 cells in z or more")):
            message = self.weir("run", "laplacian", "--n", 12, *options, code=BAD_INPUT)[1]
            self.assertIn(words, message)

    def test_verification_passes_on_simulated_ranks_of_one_process(self):
        orders = itertools.cycle((0, 1, 7))
        for ranks, dims, transform in itertools.product((1, 2, 5), (2, 3), ("on", "off")):
            with self.subTest(ranks=ranks, dims=dims, transform=transform):
                report = self.verified("--n", 20, "--dims", dims, "--iterations", 10,
                                       "--transport", "inproc", "--simulate", ranks, "--check",
                                       "--transform", transform, "--delivery", next(orders))
                self.assertEqual(report["ranks"], ranks)

    def test_verification_passes_on_three_processes(self):
        for transform in ("on", "off"):
            with self.subTest(transform=transform):
                report = self.verified("--n", 20, "--iterations", 10, "--blocks", "1x2x3",
                                       "--transform", transform, "--ranks", 3)
                self.assertEqual((report["ranks"], report["blocks"]), (3, 6))

    def test_each_process_writes_a_trace_and_a_page_of_its_own(self):
        self.environment = {"WEIR_TRACE": self.path("all.json")}
        _, errors = self.weir("run", "laplacian", "--n", 16, "--iterations", 2, "--ranks", 3,
                              "--repeat", 1, "--trace", self.path("last.json"), "--report",
                              self.path("page.html"))
        warning = "is the file of rank 0; the names of the other ranks' files contain .rank1 "
        self.assertEqual(sum(warning in line for line in errors.splitlines()), 2, errors)
        ends = ("", ".rank1", ".rank2")
        expected = {name + end + suffix for end in ends
                    for name, suffix in (("all", ".json"), ("last", ".json"), ("page", ".html"))}
        self.assertEqual(set(os.listdir(self.folder)), expected)
        for name in expected:
            if name.endswith(".json"):
                with open(self.path(name), encoding="utf-8") as file:
                    self.assertIn("traceEvents", json.load(file))

    def test_several_processes_write_the_same_result_as_one(self):
        for precision, options in itertools.product(TYPES, (("--ranks", 3, "--blocks", "2x1x3"),
                                                            ("--ranks", 2, "--dims", 2))):
            problem = ("--n", 40, "--iterations", 7, "--precision", precision)
            files = [self.path("alone.npy"), self.path("together.npy")]
            with self.subTest(precision=precision, options=options):
                self.report("laplacian", *problem, *options[2:], "--output", files[0])
                self.report("laplacian", *problem, *options, "--output", files[1])
                alone, together = map(np.load, files)
                self.assertEqual(alone.dtype, together.dtype)
                np.testing.assert_array_equal(alone, together)

    def under(self, mpirun, ranks, *options):
        """Runs ranks under a launcher, which rank 0 reports."""
        if shutil.which(mpirun) is None:
            self.skipTest(f"there is no {mpirun}")
        arguments = ["--oversubscribe"] if mpirun.endswith("openmpi") else []
        command = [mpirun, *arguments, "-n", ranks, weir_cli.program(0), "run", "laplacian",
                   "--verify", "--repeat", 1, "--json", *options]
        self.environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        with tempfile.TemporaryDirectory(prefix="w", dir="/tmp") as short:  # for names of sockets
            result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                    timeout=120, check=False,
                                    env=os.environ | self.environment | {"TMPDIR": short})
        if "weir was built without" in result.stderr:
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        report = json.loads(result.stdout)
        self.assertIs(report["verified"], True, report)
        self.assertEqual(report["ranks"], ranks)

    def test_verification_passes_under_mpirun_on_2_and_4_ranks(self):
        for mpirun, ranks in itertools.product(("mpirun.openmpi", "mpirun.mpich"), (2, 4)):
            with self.subTest(mpirun=mpirun, ranks=ranks):
                self.under(mpirun, ranks, "--n", 20, "--iterations", 10)
                self.under(mpirun, ranks, "--n", 24, "--dims", 2, "--iterations", 30, "--start",
                           "mode", "--domains", weir_cli.SIM)

    def test_verification_passes_for_blocks_of_unequal_weight(self):
        for options, blocks in (
                (("--weights", "3,1", "--domains", "sim:cores=1,sim:cores=1"), 2),
                (("--weights", "1,3", "--domains", "host:cores=1,sim:cores=1"), 2),
                (("--weights", "2,1,1", "--dims", 2), 3),
                (("--blocks", "2x1x2", "--weights", "2,1"), 4),
                (("--blocks", "2x1x2", "--weights", "1x1x2,1"), 4),
                (("--weights", "5,1", "--transport", "inproc", "--simulate", 2, "--check"), 2),
                (("--weights", "1.5,1", "--ranks", 2), 2)):
            with self.subTest(options):
                report = self.verified("--n", 14, "--iterations", 9, *options)
                self.assertEqual(report["blocks"], blocks)
        report = self.verified("--n", 16, "--iterations", 3, "--weights", "3,1x1,3x3,1")
        self.assertEqual(report["params"]["tile"], 12)

    def test_verification_passes_on_simulated_ranks_with_devices(self):
        self.verified("--n", 16, "--blocks", "2x2x1", "--iterations", 7, "--transport", "inproc",
                      "--simulate", 2, "--domains", weir_cli.MIXED)

    def test_verification_passes_with_four_blocks_on_each_rank(self):
        report = self.verified("--n", 16, "--blocks", "3x2x2", "--iterations", 6, "--transport",
                               "inproc", "--simulate", 3)
        self.assertEqual((report["blocks"], report["ranks"]), (12, 3))

    def test_verification_passes_on_opencl(self):
        _, message = self.weir("info", "--domains", "opencl:0", code=tuple(range(7)))
        if message:
            self.skipTest(f"there is no opencl:0: {message.strip()}")
        for domains, dims in itertools.product(("opencl:0", "host,opencl:0,alias=off"), (2, 3)):
            self.verified("--n", 18, "--dims", dims, "--iterations", 8, "--domains", domains)

    def time(self, transform):
        report = self.report("laplacian", "--n", 48, "--iterations", 20, "--blocks", "1x1x2",
                             "--domains", f"{DEVICE},kernels=skip,{DEVICE},kernels=skip",
                             "--transform", transform)
        return report["seconds"]["median"]

    def test_overlapped_halos_make_two_devices_over_10_percent_faster(self):
        self.assertGreater(self.time("off") / self.time("on"), 1.1)

    def test_invalid_options_are_refused_with_a_reason(self):
        for options, code, word in (
            (("--n", 2000000000), BAD_INPUT, "--n"),
            (("--blocks", "2x2"), BAD_INPUT, "--blocks"),
            (("--blocks", "2x0x2"), BAD_INPUT, "--blocks"),
            (("--blocks", "2x2x2x2"), BAD_INPUT, "--blocks"),
            (("--blocks", "two"), BAD_INPUT, "--blocks"),
            (("--n", 4, "--blocks", "5x1x1"), BAD_INPUT, "5 blocks"),
            (("--n", 2, "--transport", "inproc", "--simulate", 9), BAD_INPUT, "9 ranks"),
            (("--weights", "2,0"), BAD_INPUT, "found '0'"),
            (("--weights", "nan"), BAD_INPUT, "found 'nan'"),
            (("--weights", "2,"), BAD_INPUT, "found ''"),
            (("--weights", "3,x"), BAD_INPUT, "found '', expected numbers above 0"),
            (("--weights", "1x2"), BAD_INPUT, "found 2 lists, expected 1, or 3 as 1x1x2,1"),
            (("--blocks", "1x1x2", "--weights", "1,2,3"), BAD_INPUT, "found 3 in z"),
            (("--n", 2, "--weights", "9,1"), BAD_INPUT, "none of 2 cells"),
            (("--input", "A.mtx"), USAGE, "--input: laplacian does not use this option"),
            (("--output", "u.txt"), BAD_INPUT, "'.txt'"),
            (("--dims", 4), USAGE, "--dims"),
            (("--start", "cold"), USAGE, "--start"),
            (("--transport", "pigeon"), USAGE, "--transport"),
            (("--simulate", 2), USAGE, "--transport"),
            (("--delivery", 2), USAGE, "--transport"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "laplacian", *options, code=code))


if __name__ == "__main__":
    weir_cli.main()
