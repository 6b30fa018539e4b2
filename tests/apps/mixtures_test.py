"""Runs the applications on mixtures of devices: the same result on all, and the bytes are counted."""

import os

import numpy as np

import weir_cli
from weir_cli import positive_definite, relative_error

N, TILE = 300, 64

# Two devices of the driver for processors, where there is one.
os.environ["POCL_DEVICES"] = "pthread pthread"

MIXTURES = (
    "host,opencl:0",
    "host,opencl:0,alias=off",
    "opencl:0,native=off",
    "host,opencl:0,native=off",
    "opencl:0,opencl:1",
    "opencl:0,alias=off,opencl:1,alias=off",
    "host:cores=1,sim:cores=1",
    "host:cores=1,sim:cores=1,sim:cores=1",
    "sim:cores=1,sim:cores=1",
    "sim:cores=2,order=device",
)


def moves(domains):
    """Whether there is memory beside the host's."""
    return any(word in domains for word in ("sim", "alias=off", "native=off"))


class MixturesTest(weir_cli.CliTest):
    on_host = {}  # results, by application
    missing = {}  # why there is no such device, by its name; "": there is

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(7)
        left, right = random.standard_normal((N, N)), random.standard_normal((N, N))
        self.inputs = {
            "matmul": ("--input", self.save("A.npy", left), "--second",
                       self.save("B.npy", right)),
            "cholesky": ("--input", self.save("S.npy", positive_definite(N))),
        }

    def result(self, app, domains):
        """Runs and verifies; returns the report and the matrix."""
        report = self.report(app, *self.inputs[app], "--tile", TILE, "--domains", domains,
                             "--verify", "--output", self.path("out.npy"))
        self.assertIs(report["verified"], True)
        return report, np.load(self.path("out.npy"))

    def skip_without(self, domains):
        for name in {"opencl:0", "opencl:1"}:
            if name not in domains:
                continue
            if name not in self.missing:
                _, message = self.weir("info", "--domains", name, code=tuple(range(7)))
                self.missing[name] = message.strip()
            if self.missing[name]:
                self.skipTest(f"there is no {name}: {self.missing[name]}")

    def check(self, app, domains):
        self.skip_without(domains)
        if app not in self.on_host:
            _, self.on_host[app] = self.result(app, "host")
        report, found = self.result(app, domains)
        self.assertLess(relative_error(found, self.on_host[app]), 10 * N * np.finfo(float).eps)
        moved = report["bytes"]
        if moves(domains):
            self.assertGreater(moved["h2d"], 0)
            self.assertGreater(moved["d2h"], 0)
        else:
            self.assertEqual((moved["h2d"], moved["d2h"]), (0, 0))


def add_tests():
    for app in ("matmul", "cholesky"):
        for domains in MIXTURES:
            name = f"test_{app}_on_{domains}"
            setattr(MixturesTest, name,
                    lambda self, app=app, domains=domains: self.check(app, domains))


add_tests()

if __name__ == "__main__":
    weir_cli.main()
