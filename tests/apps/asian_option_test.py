"""Prices options with `weir run asian-option` and compares with QuantLib, closed forms, itself."""

import csv
import math
import unittest

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, UNAVAILABLE, USAGE

try:
    import QuantLib as ql
except ImportError:
    ql = None

HEADER = "spot,strike,rate,volatility,maturity,steps,paths,type,style"
BOOK = [
    (100, 95, 0.09, 0.3, 1, 52, 4000, "call", "fixed"),
    (100, 105, 0.09, 0.3, 1, 53, 4001, "put", "fixed"),
    (80, 0, 0.05, 0.4, 0.5, 25, 1000, "call", "floating"),
    (80, 0, 0.05, 0.4, 0.5, 26, 999, "put", "floating"),
    (50, 50, 0.0, 0.2, 0.25, 1, 4, "call", "fixed"),
    (50, 40, 0.02, 0.0, 2, 7, 100, "call", "fixed"),
]
VIRTUAL = "sim:clock=virtual,gflops=1,speed={}"


class AsianOptionTest(weir_cli.CliTest):
    def book(self, rows=None, name="book.csv"):
        lines = [HEADER] + [",".join(map(str, row)) for row in rows or BOOK]
        return self.write(name, "\n".join(lines) + "\n")

    def price(self, *options, rows=None):
        return self.report("asian-option", "--input", self.book(rows), *options)

    def test_prices_are_identical_on_all_domains_shapes_and_chunk_policies(self):
        expected = self.price("--domains", "host:cores=1")["results"]
        self.assertEqual([result["line"] for result in expected], [2, 3, 4, 5, 6, 7])
        domains = ["host", "sim:cores=2", "host:cores=1,sim:speed=0.5", "sim:order=device",
                   ",".join(VIRTUAL.format(speed) for speed in (1, 2, 4)),
                   VIRTUAL.format(1) + "," + VIRTUAL.format(1) + ",lost_at=5"]
        _, message = self.weir("info", "--domains", "opencl:0", code=tuple(range(7)))
        domains += [] if message else ["opencl:0", "host:cores=1,opencl:0,alias=off"]
        for domain in domains:
            for options in (("--shape", "mt"), ("--shape", "mo"), ("--chunk", "one"),
                            ("--shape", "hybrid", "--chunk", "static")):
                with self.subTest(domains=domain, options=options):
                    report = self.price("--domains", domain, *options)
                    self.assertEqual(report["results"], expected)
        for chunk in ("fixed:4", "guided", "factoring", "weighted-factoring", "static:1,3"):
            with self.subTest(chunk=chunk):
                report = self.price("--domains", "host:cores=1,sim", "--chunk", chunk)
                self.assertEqual(report["results"], expected)
                self.assertEqual(report["share"]["chunks"], chunk)
        self.environment["WEIR_PORTABLE_BACKWARDS"] = "1"
        self.assertEqual(self.price()["results"], expected)

    def test_prices_are_identical_on_1_to_3_ranks_with_all_schedulers(self):
        expected = self.price("--domains", "host:cores=1")["results"]
        for ranks in (1, 2, 3):
            for options in ((), ("--chunk", "one", "--shape", "mt"),
                            ("--chunk", "static", "--shape", "mo"),
                            ("--scheduler", "master", "--progress", "thread"),
                            ("--scheduler", "master", "--progress", "manual"),
                            ("--progress", "manual")):
                with self.subTest(ranks=ranks, options=options):
                    report = self.price("--ranks", str(ranks), "--domains", "host:cores=1",
                                        *options)
                    self.assertEqual(report["results"], expected)
                    share = report["share"]
                    self.assertEqual(share["ranks"], ranks)
                    self.assertEqual([part["rank"] for part in share["places"]],
                                     list(range(ranks)))
                    self.assertEqual(sum(part["options"] for part in share["places"]), len(BOOK))
        report = self.report("asian-option", "--n", 8, "--ranks", "2", "--domains",
                             "host:cores=1,sim:cores=1", "--verify")
        self.assertIs(report["verified"], True)
        report = self.price("--ranks", "2", "--domains", "host:cores=1,rank:1")  # of rank 0
        self.assertEqual(report["results"], expected)
        self.weir("run", "asian-option", "--n", 8, "--ranks", "2", "--repeat", "3")
        _, message = self.weir("run", "asian-option", "--ranks", "2", "--domains",
                               VIRTUAL.format(1), code=UNAVAILABLE)
        self.assertIn("needs real time", message)

    def test_all_prices_are_computed_when_a_device_is_lost(self):
        cards = VIRTUAL.format(1) + "," + VIRTUAL.format(2) + ",lost_at=9"
        report = self.report("asian-option", "--n", 40, "--domains", cards)
        whole = self.report("asian-option", "--n", 40, "--domains", VIRTUAL.format(1))
        self.assertEqual(report["results"], whole["results"])
        self.assertEqual([part["lost"] for part in report["share"]["places"]], [False, True])
        self.assertEqual(sum(part["options"] for part in report["share"]["places"]), 40)

    def test_devices_of_unequal_speed_end_within_2_percent_of_the_ideal_makespan(self):
        rows = [(100, 95, 0.09, 0.3, 1, 8, 128, "call", "fixed")] * 300
        for speeds in ((1, 2), (1, 2, 4)):
            cards = ",".join(VIRTUAL.format(speed) + ",latency_us=0" for speed in speeds)
            with self.subTest(speeds):
                report = self.price("--domains", cards, "--shape", "mt", rows=rows)
                self.assertLessEqual(report["share"]["ratio"], 1.02)

    def test_verification_passes_with_three_checks_on_host_and_device(self):
        report = self.report("asian-option", "--n", 12, "--domains", "host:cores=1,sim:speed=0.5",
                             "--verify")
        self.assertIs(report["verified"], True)
        self.assertEqual(len(report["checks"]), 3)

    def test_verification_accepts_options_that_hardly_ever_pay(self):
        rows = [(100, strike, 0.03, 0.2, 1, 12, paths, "call", "fixed")
                for strike in range(140, 200, 10) for paths in (4, 1000)]
        self.assertIs(self.price("--verify", rows=rows)["verified"], True)

    def test_prices_without_volatility_equal_the_closed_form(self):
        rows = [(50, 40, 0.02, 0.0, 2, 8, 100, "call", "fixed"),
                (50, 40, 0.02, 0.0, 2, 8, 100, "put", "floating")]
        times = 2 * np.arange(1, 9) / 8
        mean, last, discount = np.mean(50 * np.exp(0.02 * times)), 50 * math.exp(0.04), math.exp(-0.04)
        call, put = self.price(rows=rows)["results"]
        self.assertAlmostEqual(call["price"], discount * (mean - 40), places=10)
        self.assertAlmostEqual(call["delta"], discount * mean / 50, places=10)
        self.assertLess(call["standard_error"], 1e-6)
        self.assertAlmostEqual(put["price"], discount * max(0, mean - last), places=10)

    def test_greeks_equal_differences_of_prices(self):
        """The same random numbers in both prices make the difference as exact as the derivative."""
        bump = 1e-4
        for row in BOOK[:4]:
            row = row[:5] + (12, 20000) + row[7:]
            for greek, column in (("delta", 0), ("rho", 2), ("vega", 3)):
                with self.subTest(row=row, greek=greek):
                    size = bump * max(1, row[column])
                    rows = [row[:column] + (row[column] + sign * size,) + row[column + 1:]
                            for sign in (-1, 1)]
                    # Each in a book of its own: an option's random numbers follow its number.
                    low, high = (self.price("--control", "off", rows=[r])["results"][0]["price"]
                                 for r in rows)
                    exact = self.price(rows=[row])["results"][0][greek]
                    self.assertAlmostEqual((high - low) / (2 * size), exact,
                                           delta=2e-3 * max(1, abs(exact)))

    def test_control_variate_narrows_the_error(self):
        rows = [(100, 100, 0.05, 0.3, 1, 12, 20000, "call", "fixed")]
        with_control = self.price(rows=rows)["results"][0]
        without = self.price("--control", "off", rows=rows)["results"][0]
        self.assertLess(10 * with_control["standard_error"], without["standard_error"])
        self.assertLess(abs(with_control["price"] - without["price"]),
                        5 * without["standard_error"])

    def test_prices_agree_with_published_values(self):
        """Calls of strike 2 on the average of all times: Linetsky, "Spectral expansions for Asian
        (average price) options", 2004, table 3."""
        table = [(0.02, 0.10, 1, 2.0, 0.0559860415), (0.18, 0.30, 1, 2.0, 0.2183875466),
                 (0.0125, 0.25, 2, 2.0, 0.1722687410), (0.05, 0.50, 1, 1.9, 0.1931737903),
                 (0.05, 0.50, 1, 2.0, 0.2464156905), (0.05, 0.50, 1, 2.1, 0.3062203648),
                 (0.05, 0.50, 2, 2.0, 0.3500952190)]
        rows = [(spot, 2, rate, volatility, maturity, steps, 65536, "call", "fixed")
                for rate, volatility, maturity, spot, _ in table for steps in (64, 128)]
        results = self.price("--domains", "host", rows=rows)["results"]
        for i, (*_, published) in enumerate(table):
            coarse, fine = results[2 * i], results[2 * i + 1]
            # Twice as many steps halve the distance to the average of all times.
            price = 2 * fine["price"] - coarse["price"]
            error = math.hypot(2 * fine["standard_error"], coarse["standard_error"])
            with self.subTest(row=rows[2 * i]):
                self.assertLess(error, 2e-3 * published)
                self.assertLess(abs(price - published), 5 * error)

    @unittest.skipIf(ql is None, "QuantLib is not installed")
    def test_prices_agree_with_quantlib(self):
        today = ql.Date(2, 1, 2025)
        ql.Settings.instance().evaluationDate = today
        days = ql.Actual365Fixed()
        rows, expected = [], []
        for spot, strike, rate, volatility, weeks, call in (
                (100, 95, 0.09, 0.3, 52, True), (100, 110, 0.03, 0.5, 26, False),
                (20, 21, 0.06, 0.15, 40, True), (60, 60, 0.0, 0.25, 13, False)):
            rows.append((spot, strike, rate, volatility, 7 * weeks / 365, weeks, 40000,
                         "call" if call else "put", "fixed"))
            process = ql.BlackScholesProcess(
                ql.QuoteHandle(ql.SimpleQuote(spot)),
                ql.YieldTermStructureHandle(ql.FlatForward(today, rate, days)),
                ql.BlackVolTermStructureHandle(
                    ql.BlackConstantVol(today, ql.NullCalendar(), volatility, days)))
            dates = [today + 7 * week for week in range(1, weeks + 1)]
            option = ql.DiscreteAveragingAsianOption(
                ql.Average.Arithmetic, 0.0, 0, dates,
                ql.PlainVanillaPayoff(ql.Option.Call if call else ql.Option.Put, strike),
                ql.EuropeanExercise(dates[-1]))
            option.setPricingEngine(ql.MCDiscreteArithmeticAPEngine(
                process, "pseudorandom", antitheticVariate=True, controlVariate=True,
                requiredSamples=10000, seed=42))
            expected.append((option.NPV(), option.errorEstimate()))
        for row, ours, (price, error) in zip(rows, self.price(rows=rows)["results"], expected):
            with self.subTest(row):
                self.assertLess(abs(ours["price"] - price),
                                4 * math.hypot(ours["standard_error"], error))

    def test_csv_output_holds_the_results_of_the_report(self):
        report = self.price("--output", self.path("prices.csv"))
        with open(self.path("prices.csv"), newline="") as file:
            table = list(csv.DictReader(file))
        for row, result in zip(table, report["results"], strict=True):
            self.assertEqual({name: float(value) for name, value in row.items()}, result)

    def test_bad_lines_are_named_and_the_rest_is_priced(self):
        good = ",".join(map(str, BOOK[0]))
        bad = {3: "100,100,0.05,-0.2,1,12,1000,call,fixed", 4: "100,100,0.05,0.2,-1,12,1000,call,fixed",
               5: "100,100,0.05,0.2,1,12,0,call,fixed", 6: "100,100,0.05,0.2,1,12",
               7: "100,ten,0.05,0.2,1,12,1000,call,fixed", 8: "100,100,0.05,0.2,1,1.5,1000,call,fixed",
               9: "100,100,0.05,0.2,1,12,1000,buy,fixed", 10: "nan,100,0.05,0.2,1,12,1000,call,fixed"}
        path = self.write("book.csv", "\n".join([HEADER, good, *bad.values(), good]) + "\n")
        output, messages = self.weir("run", "asian-option", "--input", path, "--repeat", 1, "--json",
                                     code=BAD_INPUT)
        report = weir_cli.json.loads(output)
        self.assertEqual([result["line"] for result in report["results"]], [2, 11])
        self.assertEqual([rejected["line"] for rejected in report["rejected"]], list(bad))
        for line, word in zip(bad, ("volatility -0.2", "maturity -1", "paths 0", "6 fields", "'ten'",
                                    "steps 1.5", "'buy'", "'nan'")):
            self.assertRegex(messages, rf"book.csv:{line}: .*{word}")

    def test_unusable_files_chunk_policies_and_options_are_refused_with_a_reason(self):
        empty = self.write("empty.csv", "")
        for options, code, word in (
            (("--input", self.path("none.csv")), BAD_INPUT, "none.csv"),
            (("--input", empty), BAD_INPUT, "no option"),
            (("--chunk", "lerned"), BAD_INPUT, "did you mean 'learned'"),
            (("--chunk", "static:1,2", "--domains", "host"), BAD_INPUT, "2 weights for 1 place"),
            (("--shape", "round"), USAGE, "--shape"),
            (("--precision", "float"), BAD_INPUT, "double"),
            (("--policy", "finish"), USAGE, "--policy: asian-option does not use this option"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "asian-option", *options,
                                                 code=(code, weir_cli.UNAVAILABLE)))

    def test_chunk_help_lists_the_chunk_policies(self):
        output, _ = self.weir("run", "asian-option", "--chunk", "help")
        for name in ("static", "one", "fixed:N", "guided", "factoring", "weighted-factoring",
                     "learned"):
            self.assertIn(name, output)


if __name__ == "__main__":
    weir_cli.main()
