"""--kernels: whether a core or all cores of a place compute a tile."""

import weir_cli
from weir_cli import USAGE, CliTest

CARD = "sim:clock=virtual,cores=4,gbps=1000000,latency_us=0,gflops=1,kernels=skip"
DENSE = ("matmul", "cholesky", "lu")


class KernelsTest(CliTest):
    def milliseconds(self, kernels, n, *more):
        report = self.report("matmul", "--n", n, "--tile", 128, "--domains", CARD,
                             "--kernels", kernels, *more)
        return report["seconds"]["median"] * 1e3

    def test_nine_tiles_take_3_tile_times_serially_and_9_quarters_with_a_team(self):
        one = 2 * 128 * 128 * 384 / 1e6  # ms of a tile on a core
        self.assertAlmostEqual(self.milliseconds("serial", 384), 3 * one, delta=0.1)
        self.assertAlmostEqual(self.milliseconds("team", 384), 9 * one / 4, delta=0.1)

    def test_nine_tiles_take_as_long_in_a_queue_as_in_streams(self):
        one = 2 * 128 * 128 * 384 / 1e6
        self.assertAlmostEqual(self.milliseconds("serial", 384, "--policy", "finish"), 3 * one, delta=0.1)
        self.assertAlmostEqual(self.milliseconds("team", 384, "--policy", "finish"), 9 * one / 4, delta=0.1)

    def test_auto_takes_team_kernels_for_4_tiles_and_serial_ones_for_9(self):
        for n, same in ((256, "team"), (384, "serial")):  # 4 and 9 tiles for 4 cores
            with self.subTest(n=n):
                self.assertEqual(self.milliseconds("auto", n), self.milliseconds(same, n))

    def test_dense_results_pass_verification_with_all_kernels(self):
        for app in DENSE:
            for domains in ("host", "host:cores=1,sim:cores=1"):
                for kernels in ("auto", "serial", "team"):
                    for more in ((), ("--policy", "finish")):
                        with self.subTest(app=app, domains=domains, kernels=kernels, more=more):
                            self.report(app, "--n", 200, "--tile", 64, "--domains", domains,
                                        "--verify", "--kernels", kernels, *more)

    def test_the_kernels_option_is_refused_by_srad_and_with_an_unknown_value(self):
        self.refusal("run", "srad", "--kernels", "team", code=USAGE)
        self.refusal("run", "matmul", "--kernels", "some", code=USAGE)


if __name__ == "__main__":
    weir_cli.main()
