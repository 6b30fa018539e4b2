"""Runs applications as tasks of a queue: the same results, on all policies and beyond a device's
memory."""

import itertools
import json
import os
import struct

import numpy as np

import weir_cli
from weir_cli import positive_definite, relative_error

N, TILE = 384, 64
POLICIES = ("finish", "steal", "locality", "static", "round-robin")
# A device in virtual time: the same on every machine.
DEVICE = "sim:clock=virtual,gflops=35,gbps=8,latency_us=10,kernels=skip"

HEADER = struct.Struct("=8sQQ")  # src/base/cache.cpp


def kept(content):
    """A file of the cache folder with a content."""
    checksum = 0xcbf29ce484222325
    for byte in content:
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return HEADER.pack(b"weirkep1", len(content), checksum) + content


class QueueTest(weir_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.environment = {"XDG_CACHE_HOME": self.folder}
        self.matrix = positive_definite(N)
        self.input = self.save("S.npy", self.matrix)

    def factor(self, domains, *more):
        report = self.report("cholesky", "--input", self.input, "--tile", TILE, "--domains", domains,
                             "--verify", "--output", self.path("L.npy"), *more)
        self.assertIs(report["verified"], True)
        self.assertLess(relative_error(np.load(self.path("L.npy")), np.linalg.cholesky(self.matrix)),
                        1e-12)
        return report

    def test_all_policies_give_the_same_factor(self):
        for policy in POLICIES:
            with self.subTest(policy):
                report = self.factor(weir_cli.MIXED, "--policy", policy)
                self.assertEqual(report["policy"], policy)
                self.assertEqual(len(report["shares"]), 2)
                self.assertEqual(sum(share["tasks"] for share in report["shares"]), 56)

    def test_shares_count_the_tasks_of_one_run_when_it_is_repeated(self):
        output, _ = self.weir("run", "cholesky", "--input", self.input, "--tile", TILE, "--domains",
                              weir_cli.MIXED, "--policy", "round-robin", "--repeat", 3, "--json")
        shares = json.loads(output)["shares"]
        self.assertEqual(sum(share["tasks"] for share in shares), 56)

    def test_lu_by_tasks_has_the_permutation_of_lu_by_streams(self):
        random = np.random.default_rng(7).standard_normal((N, N))
        given = self.save("R.npy", random)
        self.report("lu", "--input", given, "--permutation", self.path("streams.npy"))
        by_streams = np.load(self.path("streams.npy"))
        for domains in ("host", weir_cli.MIXED, "sim:cores=1,memory=1MiB"):
            with self.subTest(domains):
                tasks = self.report("lu", "--input", given, "--tile", TILE, "--domains", domains,
                                    "--policy", "finish", "--verify", "--permutation",
                                    self.path("tasks.npy"))
                self.assertIs(tasks["verified"], True)
                np.testing.assert_array_equal(np.load(self.path("tasks.npy")), by_streams)

    def test_sparse_cholesky_by_tasks_passes_verification(self):
        for domains in ("host", weir_cli.MIXED, "sim:cores=1,memory=4MiB"):
            with self.subTest(domains):
                report = self.report("sparse-cholesky", "--n", 12, "--tile", 48, "--domains",
                                     domains, "--policy", "finish", "--verify")
                self.assertIs(report["verified"], True)

    def test_a_queue_on_host_cores_copies_nothing(self):
        report = self.factor("host", "--policy", "finish")
        self.assertEqual(report["bytes"], {"h2d": 0, "d2h": 0, "d2d": 0, "evicted": 0})

    def test_data_larger_than_the_memory_of_a_device_is_processed_by_a_queue(self):
        megabyte = N * N * 8 // 4 // 2**10
        report = self.factor(f"sim:cores=1,memory={megabyte}KiB", "--policy", "finish")
        self.assertEqual(report["bytes"]["evicted"], 0)  # the queue makes room, not the domain
        self.assertGreater(report["bytes"]["h2d"], N * N * 8 // 2)
        report = self.report("matmul", "--n", 512, "--tile", 128, "--domains",
                             "sim:cores=1,memory=2MiB", "--policy", "finish", "--verify")
        self.assertIs(report["verified"], True)

    def test_a_problem_too_large_for_streams_is_run_with_policy_finish(self):
        device = "sim:cores=1,memory=1536KiB"
        for app, domains in itertools.product(("matmul", "cholesky", "lu"),
                                              (device, f"host:cores=1,{device}")):
            with self.subTest(app=app, domains=domains):
                output, said = self.weir("run", app, "--n", 512, "--tile", 64, "--repeat", 1,
                                         "--domains", domains, "--verify", "--json")
                report = json.loads(output)
                self.assertIs(report["verified"], True)
                self.assertEqual(report["policy"], "finish")
                self.assertRegex(said, r"\Aweir: [^\n]+ --policy finish\n\Z")
    def test_evictions_with_pieces_of_unequal_size_are_under_half_of_the_copies(self):
        """Panels of matmul are eight times as large as the tiles of its result."""
        for memory in ("1280KiB", "1536KiB", "2MiB"):
            with self.subTest(memory):
                moved = self.report("matmul", "--n", 512, "--tile", 64, "--policy", "finish",
                                    "--domains", f"{DEVICE},memory={memory}")["bytes"]
                self.assertLess(moved["evicted"], (moved["h2d"] + moved["d2h"]) / 2)

    def seconds(self, app, domains):
        report = self.report(app, "--n", 4096, "--tile", 256, "--domains", domains, "--policy",
                             "finish")
        return report["seconds"]["median"]

    def test_a_first_run_on_two_devices_is_nearly_twice_as_fast(self):
        for app, efficiency in (("cholesky", 0.90), ("matmul", 0.95)):
            one = self.seconds(app, DEVICE)
            self.environment["XDG_CACHE_HOME"] = self.path(app)  # nothing was learned
            two = self.seconds(app, f"{DEVICE},{DEVICE}")
            self.assertGreater(one / (2 * two), efficiency, app)

    def test_two_devices_of_unequal_speed_reach_96_percent_of_their_sum(self):
        fast = DEVICE.replace("gflops=35", "gflops=70")
        alone = 1 / self.seconds("cholesky", DEVICE) + 1 / self.seconds("cholesky", fast)
        together = 1 / self.seconds("cholesky", f"{fast},{DEVICE}")
        self.assertGreater(together / alone, 0.965)

    def test_static_shares_follow_the_speeds_that_were_measured(self):
        devices = f"{DEVICE.replace('gflops=35', 'gflops=70')},{DEVICE}"
        first, second = (self.report("matmul", "--n", 1024, "--tile", 128, "--domains", devices,
                                     "--policy", "static")["shares"] for _ in range(2))
        self.assertEqual([share["tasks"] for share in first], [32, 32])
        self.assertEqual([share["tasks"] for share in second], [43, 21])

    def test_tune_models_lists_the_kernel_times_of_earlier_runs(self):
        self.assertIn("No kernel times were measured", self.weir("tune", "models")[0])
        self.factor(weir_cli.MIXED, "--policy", "finish")
        self.assertIn("blas.dgemm", self.weir("tune", "models")[0])
        models = json.loads(self.weir("tune", "models", "--json")[0])["models"]
        self.assertTrue(all(model["mean_ns"] > 0 for model in models))

    def test_unusable_performance_models_are_reported_and_replaced(self):
        self.factor(weir_cli.MIXED, "--policy", "finish")
        folder = os.path.join(self.folder, "weir", "models")
        path = os.path.join(folder, *os.listdir(folder))
        with open(path, "rb") as file:
            models = file.read()[HEADER.size:]
        machine = models.splitlines()[1]
        self.environment["WEIR_LOG"] = "warning"
        for content, words in (
            (b"weir performance models 1\nanother machine\n", "is damaged"),
            (kept(models)[:-1], "is damaged"),
            (kept(models.replace(machine, b"another", 1)), "are of another machine, 'another'"),
            (kept(models + b"nonsense\n"), "is not a model"),
        ):
            with self.subTest(words):
                with open(path, "wb") as file:
                    file.write(content)
                _, said = self.weir("run", "cholesky", "--input", self.input, "--tile", TILE,
                                    "--domains", weir_cli.MIXED, "--policy", "finish", "--verify",
                                    "--repeat", 1)
                self.assertIn(words, said)
                self.assertIn("blas.dgemm", self.weir("tune", "models")[0])

    def test_policy_help_lists_the_policies_and_wrong_ones_are_refused(self):
        listed, _ = self.weir("run", "cholesky", "--policy", "help")
        for policy in POLICIES:
            self.assertIn(policy, listed)
        self.assertEqual(self.weir("run", "--policy", "help"), (listed, ""))
        _, message = self.weir("run", "cholesky", "--n", 64, "--policy", "finsh",
                               code=weir_cli.BAD_INPUT)
        self.assertIn("did you mean 'finish'?", message)
        _, message = self.weir("run", "wave", "--n", 16, "--policy", "finish",
                               code=weir_cli.USAGE)
        self.assertIn("--policy: wave does not use this option; remove it", message)


if __name__ == "__main__":
    weir_cli.main()
