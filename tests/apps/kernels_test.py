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

    def test_nine_tiles_take_three_rounds_of_four_cores_or_a_ninth_each_of_the_place(self):
        one = 2 * 128 * 128 * 384 / 1e6  # ms of a tile on a core
        self.assertAlmostEqual(self.milliseconds("serial", 384), 3 * one, delta=0.1)
        self.assertAlmostEqual(self.milliseconds("team", 384), 9 * one / 4, delta=0.1)

    def test_a_queue_takes_the_same_kernels(self):
        one = 2 * 128 * 128 * 384 / 1e6
        self.assertAlmostEqual(self.milliseconds("serial", 384, "--policy", "finish"), 3 * one, delta=0.1)
        self.assertAlmostEqual(self.milliseconds("team", 384, "--policy", "finish"), 9 * one / 4, delta=0.1)

    def test_auto_takes_the_place_for_few_tiles(self):
        for n, same in ((256, "team"), (384, "serial")):  # 4 and 9 tiles for 4 cores
            with self.subTest(n=n):
                self.assertEqual(self.milliseconds("auto", n), self.milliseconds(same, n))

    def test_results_are_right(self):
        for app in DENSE:
            for domains in ("host", "host:cores=1,sim:cores=1"):
                for kernels in ("auto", "serial", "team"):
                    for more in ((), ("--policy", "finish")):
                        with self.subTest(app=app, domains=domains, kernels=kernels, more=more):
                            self.report(app, "--n", 200, "--tile", 64, "--domains", domains,
                                        "--verify", "--kernels", kernels, *more)

    def test_other_applications_refuse_it(self):
        self.refusal("run", "srad", "--kernels", "team", code=USAGE)
        self.refusal("run", "matmul", "--kernels", "some", code=USAGE)


if __name__ == "__main__":
    weir_cli.main()
