"""Checks the JSON of `weir run`, and that the bytes it reports are those that must move."""

import json
import math

import weir_cli
from weir_cli import DOMAINS, MIXED, SIM

NUMBER = (int, float)

REPORT = {
    "app": str,
    "params": dict,
    "domains": list,
    "places": int,
    "streams": int,
    "tiles": int,
    "seconds": {"median": NUMBER, "min": NUMBER, "max": NUMBER, "samples": list},
    "verified": bool,
    "error": {"metric": str, "value": NUMBER, "limit": NUMBER},
    "rate": {"value": NUMBER, "unit": str},
    "actions": int,
    "bytes": {"h2d": int, "d2h": int, "d2d": int},
    "overlap": {"transfer_s": NUMBER, "compute_s": NUMBER, "measured_s": NUMBER,
                "ideal_s": NUMBER, "ratio": NUMBER},
    "machine": dict,
    "gemm_peak": {"value": NUMBER, "unit": str, "share": (*NUMBER, type(None))},
}


def tile_edges(n, tile):
    return [min(tile, n - first) for first in range(0, n, tile)]


def lower_tile_bytes(n, tile, element):
    edges = tile_edges(n, tile)
    return element * sum(a * b for i, a in enumerate(edges) for b in edges[:i + 1])


class SchemaTest(weir_cli.CliTest):
    def check(self, value, schema, where):
        if isinstance(schema, dict):
            self.assertIsInstance(value, dict, where)
            for key, part in schema.items():
                self.assertIn(key, value, where)
                self.check(value[key], part, f"{where}.{key}")
        else:
            self.assertIsInstance(value, schema, where)
            self.assertEqual(isinstance(value, bool), schema is bool, where)

    def test_reports_have_all_fields_with_their_types(self):
        runs = [("cholesky", domains) for domains in DOMAINS] + [("matmul", "host")]
        for app, domains in runs:
            with self.subTest(app=app, domains=domains):
                output, _ = self.weir("run", app, "--n", 300, "--tile", 100, "--domains", domains,
                                      "--repeat", 3, "--verify", "--json")
                report = json.loads(output)
                self.check(report, REPORT, "report")
                self.assertEqual((report["app"], report["tiles"]), (app, 3))
                self.assertEqual(len(report["domains"]), domains.count(":cores") or 1)

    def test_values_of_a_cholesky_report_are_consistent(self):
        report = self.report("cholesky", "--n", 256, "--tile", 64, "--verify")
        self.assertIs(report["verified"], True)
        self.assertLessEqual(report["error"]["value"], report["error"]["limit"])
        self.assertEqual(report["rate"]["unit"], "GFLOP/s")
        self.assertGreater(report["rate"]["value"], 0)
        peak, rate = report["gemm_peak"], report["rate"]["value"]
        if peak["share"] is None:  # another process ran while the peak was measured
            self.assertGreater(rate, peak["value"])
            self.assertIn("problem", peak)
        else:
            self.assertTrue(math.isclose(peak["share"], rate / peak["value"], rel_tol=1e-3))
        # 4 tiles along an edge: 4 potrf, 6 trsm, 6 syrk, 4 gemm, and what orders the streams.
        self.assertGreaterEqual(report["actions"], 20)

    def test_min_max_and_median_agree_with_the_samples(self):
        output, _ = self.weir("run", "matmul", "--n", 64, "--repeat", 4, "--json")
        seconds = json.loads(output)["seconds"]
        self.assertIn(len(seconds["samples"]), (3, 4))  # the first may be dropped
        self.assertEqual(seconds["min"], min(seconds["samples"]))
        self.assertEqual(seconds["max"], max(seconds["samples"]))
        self.assertLessEqual(seconds["min"], seconds["median"])
        self.assertLessEqual(seconds["median"], seconds["max"])

    def test_a_run_without_verify_is_not_reported_as_verified(self):
        self.assertIsNot(self.report("matmul", "--n", 64)["verified"], True)

    def test_only_json_is_written_to_standard_output(self):
        output, _ = self.weir("run", "matmul", "--n", 64, "--repeat", 1, "--json", "--verify")
        json.loads(output)
        self.assertEqual(output.count("\n"), len(output.splitlines()))


class BytesTest(weir_cli.CliTest):
    def bytes(self, app, domains, *options):
        moved = self.report(app, "--domains", domains, *options)["bytes"]
        return moved["h2d"], moved["d2h"], moved["d2d"]

    def test_a_run_on_the_host_reports_no_copied_bytes(self):
        for app in ("cholesky", "matmul"):
            self.assertEqual(self.bytes(app, "host", "--n", 200, "--tile", 64), (0, 0, 0))

    def test_cholesky_moves_the_lower_triangle_of_tiles_once(self):
        for n, tile, precision, element in ((256, 64, "double", 8), (300, 64, "double", 8),
                                            (300, 128, "float", 4)):
            with self.subTest(n=n, tile=tile):
                expected = lower_tile_bytes(n, tile, element)
                moved = self.bytes("cholesky", SIM, "--n", n, "--tile", tile, "--precision",
                                   precision)
                self.assertEqual(moved, (expected, expected, 0))

    def test_matmul_moves_each_matrix_once(self):
        for n, tile, precision, element in ((256, 64, "double", 8), (300, 64, "float", 4)):
            with self.subTest(n=n, tile=tile):
                matrix = element * n * n
                moved = self.bytes("matmul", SIM, "--n", n, "--tile", tile, "--precision",
                                   precision)
                self.assertEqual(moved, (2 * matrix, matrix, 0))

    def test_a_device_beside_the_host_gets_only_its_share(self):
        to_card, back, between = self.bytes("matmul", MIXED, "--n", 256, "--tile", 64)
        matrix = 8 * 256 * 256
        self.assertTrue(0 < to_card <= 2 * matrix and 0 < back < matrix, (to_card, back))
        self.assertEqual((back % (8 * 64 * 64), between), (0, 0))

        to_card, back, between = self.bytes("cholesky", MIXED, "--n", 256, "--tile", 64)
        self.assertTrue(to_card > 0 and 0 < back < lower_tile_bytes(256, 64, 8), (to_card, back))
        self.assertEqual(between, 0)


class TraceTest(weir_cli.CliTest):
    def test_a_trace_names_the_tile_kernels(self):
        self.report("cholesky", "--n", 128, "--tile", 64, "--domains", SIM, "--trace",
                    self.path("timeline.json"))
        with open(self.path("timeline.json"), encoding="utf-8") as file:
            text = file.read()
        json.loads(text)
        for name in ("potrf 0,0", "trsm 1,0", "syrk 1,1", "potrf 1,1"):
            self.assertIn(name, text)


if __name__ == "__main__":
    weir_cli.main()
