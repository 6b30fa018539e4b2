"""weir bench: on a simulated device the shapes that Fang et al. measured on a device of 57 cores."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from tool import TOOL, weir

USAGE, BAD_INPUT, UNAVAILABLE = 2, 3, 4

CORES = 56
LINK = "gbps=6.4,latency_us=10"
CARD = (f"sim:clock=virtual,cores={CORES + 1},reserved=1,threads=4,{LINK},duplex=half,gflops=0.57,"
        "launch_us=20,fork_us=0.1,contention=1.25,kernels=skip")
MIB = 1 << 20


def bench(*arguments):
    result = weir("bench", *arguments, "--json")
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)


def transfer_s(blocks):
    return blocks * (10e-6 + MIB / 6.4e9)


class Transfers(unittest.TestCase):
    """Figure 4a."""

    def curves(self, card):
        result = bench("transfers", "--domains", card)["results"][0]
        return result, {curve["case"]: curve for curve in result["cases"]}

    def check(self, curve, blocks):
        for hd, dh, seconds in zip(curve["hd"], curve["dh"], curve["seconds"], strict=True):
            self.assertAlmostEqual(seconds, transfer_s(blocks(hd, dh)), delta=1e-7, msg=(hd, dh))

    def test_a_half_duplex_link_serves_one_direction_at_a_time(self):
        result, curves = self.curves(CARD)
        self.assertEqual(result["duplex"], "half")
        for curve in curves.values():
            self.check(curve, lambda hd, dh: hd + dh)
        self.assertEqual(len(set(curves["CC"]["seconds"])), 1)
        self.assertEqual(curves["IC"]["seconds"], sorted(curves["IC"]["seconds"]))
        self.assertEqual(curves["CD"]["seconds"], curves["IC"]["seconds"][::-1])

    def test_a_full_duplex_link_serves_both_directions_at_once(self):
        result, curves = self.curves(CARD.replace("duplex=half", "duplex=full"))
        self.assertEqual(result["duplex"], "full")
        for curve in curves.values():
            self.check(curve, max)

    def test_transfers_on_the_host_report_no_duplex(self):
        self.assertEqual(bench("transfers", "--repeat", "1", "--block", "4KiB")
                         ["results"][0]["duplex"], "none")


class Balance(unittest.TestCase):
    """Figures 9 to 12 of paper 004, on devices of speed 1 and 2."""

    def test_balance_measures_figures_9_to_12_on_devices_of_speed_1_and_2(self):
        cards = ",".join(f"sim:clock=virtual,gflops=1,latency_us=0,speed={speed}"
                         for speed in (1, 2))
        result = bench("balance", "--domains", cards, "--n", "24", "--repeat", "1", "--ranks", "2",
                       "--chunks", "1,24")
        figures = {figure["figure"]: figure["points"] for figure in result["figures"]}
        self.assertEqual(list(figures), [9, 10, 11, 12])
        alone = {tuple(point["label"]): point for point in figures[9]}
        self.assertEqual(len(alone), 4)
        slow, fast = (alone[card, "mt"]["path_steps_per_s"]
                      for card in dict.fromkeys(label[0] for label in alone))
        self.assertAlmostEqual(fast / slow, 2, delta=0.02)
        self.assertEqual([point["visits"] for point in figures[10]], [24, 1])
        self.assertLess(figures[10][0]["idle"], 0.2)
        self.assertAlmostEqual(figures[10][1]["idle"], 0.5)  # of the device that has none
        self.assertEqual([point["communication_of_most"] for point in figures[10]], [1, 1 / 24])
        self.assertEqual([point["label"] for point in figures[11]],
                         [[scheduler, progress] for scheduler in ("onesided", "master")
                          for progress in ("thread", "manual")])
        for point in figures[11]:
            self.assertGreaterEqual(point["visits"], 2)
        for point in figures[12]:
            self.assertLessEqual(point["of_sum"], 1.001)
        self.assertGreater(max(point["of_sum"] for point in figures[12]), 0.8)

    def test_balance_text_on_one_rank_has_figure_12_and_no_figure_11(self):
        result = weir("bench", "balance", "--n", "2", "--repeat", "1", "--ranks", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("figure 12", result.stdout)
        self.assertNotIn("figure 11", result.stdout)


    def test_sigterm_ends_balance_and_the_run_that_it_started(self):
        with subprocess.Popen([TOOL, "bench", "balance", "--n", "1000", "--repeat", "1000000",
                               "--ranks", "1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            try:
                runs = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
                if not runs.exists():
                    self.skipTest("the system does not list children")
                while process.poll() is None and not runs.read_text(encoding="utf-8"):
                    pass
                process.terminate()
                process.communicate(timeout=60)  # the run has the same standard error
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_balance_reports_an_unknown_domain_once(self):
        result = weir("bench", "balance", "--domains", "host:cores=1,nosuch")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"^weir: no backend 'nosuch'[^\n]*\n$")


class Messages(unittest.TestCase):
    """Figure 2 of paper 003: bandwidth by the size of a message."""

    def test_messages_are_measured_for_all_sizes_and_joined_up_to_256_bytes(self):
        result = bench("messages", "--ranks", "2", "--sizes", "8,256,4096", "--repeat", "1")
        self.assertEqual((result["link"], result["ranks"]), ("shm", 2))
        self.assertEqual([point["bytes"] for point in result["points"]], [8, 256, 4096])
        for point in result["points"]:
            for name in ("messages_gb_per_s", "puts_gb_per_s", "half_round_trip_s", "put_s"):
                self.assertGreater(point[name], 0, name)
        joined = [point["joined_gb_per_s"] for point in result["points"]]
        self.assertGreater(min(joined[:2]), 0)
        self.assertIsNone(joined[2], "a conveyor has items of at most 256 bytes")

    def test_the_text_of_messages_names_the_link(self):
        result = weir("bench", "messages", "--ranks", "3", "--sizes", "12", "--repeat", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("messages from rank 0 to rank 1 over shm", result.stdout)
        self.assertRegex(result.stdout, r"\n +12 .* - ", "12 is not a multiple of 8")

    def test_messages_halos_and_cache_are_refused_on_one_rank(self):
        for name in ("messages", "halos", "cache"):
            result = weir("bench", name)
            self.assertEqual(result.returncode, BAD_INPUT)
            self.assertRegex(result.stderr, rf"^weir: {name} needs two ranks: [^\n]*--ranks 2[^\n]*\n$")


class Halos(unittest.TestCase):
    """Figure 3 of paper 003: faces by their layout in memory."""

    def test_halos_are_measured_in_four_layouts_of_each_edge(self):
        result = bench("halos", "--ranks", "3", "--edges", "16,20", "--repeat", "1")
        self.assertEqual([(point["edge"], point["face_bytes"]) for point in result["points"]],
                         [(16, 1024), (20, 1600)])
        for point in result["points"]:
            for layout in ("contiguous", "rows", "cells", "wide"):
                self.assertGreater(point[f"{layout}_gb_per_s"], 0, layout)

    def test_halos_of_edges_below_16_cells_are_refused(self):
        result = weir("bench", "halos", "--ranks", "2", "--edges", "15")
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("--edges", result.stderr)


class Cache(unittest.TestCase):
    """Section 5.5 of paper 003. The command itself fails when a line does not arrive."""

    LINE, LINES = 64, 100_000

    def points(self, sets, ways, *by):
        result = bench("cache", "--ranks", "2", "--repeat", "1", "--lines", str(self.LINES), "--sets", sets,
                       "--ways", ways, "--by", ",".join(by))
        for point in result["points"]:
            for pattern in ("stream", "random", "repeat"):
                self.assertGreater(point[f"{pattern}_gb_per_s"], 0)
        return result["points"]

    def test_sequential_lines_fill_a_way_before_it_is_sent(self):
        for point in self.points("64", "1,2", "first-free", "round-robin"):
            messages = -(-self.LINES // point["sets"])
            self.assertAlmostEqual(point["stream_message_bytes"], self.LINES * self.LINE / messages)

    def test_repeated_lines_replace_one_another(self):
        point, = self.points("256", "1", "first-free")  # as many sets as lines that are repeated
        self.assertEqual(point["repeat_message_bytes"], 256 * self.LINE)

    def test_placement_makes_no_difference_to_random_lines(self):
        first, robin = self.points("128", "8", "first-free", "round-robin")
        self.assertAlmostEqual(robin["random_message_bytes"] / first["random_message_bytes"], 1, delta=0.1)
        self.assertLess(first["random_message_bytes"], 128 * self.LINE)

    def test_a_conveyor_fills_over_80_percent_of_the_same_memory(self):
        point, = self.points("64", "8", "conveyor")
        self.assertGreater(point["stream_message_bytes"], 0.8 * point["bytes"])
        self.assertLessEqual(point["stream_message_bytes"], point["bytes"])


class Overlap(unittest.TestCase):
    """Figure 4b."""

    def test_the_longer_of_transfers_and_kernels_hides_the_other(self):
        for duplex in ("half", "full"):
            result = bench("overlap", "--domains", CARD.replace("half", duplex))["results"][0]
            curves = result["curves"]
            self.assertEqual(len(set(curves["data"])), 1)
            self.assertEqual(curves["kernel"], sorted(curves["kernel"]))
            self.assertLess(curves["kernel"][0], curves["data"][0])
            self.assertGreater(curves["kernel"][-1], curves["data"][0])
            crossing = result["crossing"]
            before = max(i for i, each in enumerate(result["iterations"]) if each <= crossing)
            few, many = result["iterations"][before:before + 2]
            short, long = curves["kernel"][before:before + 2]
            self.assertAlmostEqual(short + (long - short) * (crossing - few) / (many - few),
                                   curves["data"][0])
            for data, kernel, ideal, measured, ratio in zip(
                    curves["data"], curves["kernel"], curves["ideal"], curves["measured"],
                    result["ratio"], strict=True):
                self.assertEqual(ideal, max(data, kernel))
                self.assertGreaterEqual(measured, ideal)
                self.assertAlmostEqual(ratio, measured / ideal)
                self.assertLessEqual(ratio, 1.05)
            self.assertEqual(result["worst_ratio"], max(result["ratio"]))

    def test_the_reported_crossing_is_where_transfers_and_kernels_take_as_long(self):
        """A link of so many GB/s moves 32 MiB while the kernel makes 4 Mi additions a millisecond;
        the kernels take 1 ms for each iteration."""
        card = "sim:clock=virtual,cores=1,duplex=half,latency_us=0,gflops=4.194304,kernels=skip,gbps="
        for data_ms, options, crossing, words in (
                (1.9, (), 1.9, "transfers and kernels take as long at 1.9 iterations;"),
                (1.0001, (), 1, "transfers and kernels take as long at 1 iteration;"),
                (1.5, ("--iterations", "4,1"), 1.5, "take as long at 1.5 iterations;"),
                (39.8, (), 39.8, "take as long at 40 iterations;"),
                (0.5, (), None, "kernels take longer than the transfers from 1 iteration on;"),
                (9, ("--iterations", "2,5"), None,
                 "transfers take longer than the kernels up to 5 iterations;")):
            with self.subTest(data_ms=data_ms, options=options):
                domains = card + repr(2 * 16 * MIB / data_ms / 1e6)
                found = bench("overlap", "--domains", domains, *options)["results"][0]["crossing"]
                if crossing is None:
                    self.assertIsNone(found)
                else:
                    self.assertAlmostEqual(found, crossing, delta=1e-3 * crossing)
                text = weir("bench", "overlap", "--domains", domains, *options).stdout
                self.assertIn(words, text)

    def test_one_block_overlaps_nothing(self):
        result = bench("overlap", "--domains", CARD, "--blocks", "1")["results"][0]
        for data, kernel, measured in zip(*(result["curves"][name] for name in
                                            ("data", "kernel", "measured")), strict=True):
            self.assertAlmostEqual(measured, data + kernel, delta=1e-6)

    def test_overlap_results_are_verified_on_all_kinds_of_domains(self):
        for domains in ("host", "sim:duplex=half", "sim:clock=virtual", "opencl", "host,sim"):
            with self.subTest(domains=domains):
                result = weir("bench", "overlap", "--domains", domains, "--size", "64KiB",
                              "--blocks", "5", "--iterations", "1,30", "--repeat", "1",
                              "--verify", "--json")
                if result.returncode == UNAVAILABLE:
                    self.skipTest(result.stderr.strip())
                self.assertEqual(result.returncode, 0, result.stderr)
                for each in json.loads(result.stdout)["results"]:
                    self.assertIs(each["verified"], True)

    def test_verification_fails_when_kernels_are_skipped(self):
        result = weir("bench", "overlap", "--domains", CARD, "--iterations", "1", "--verify")
        self.assertEqual(result.returncode, 5)
        self.assertIn("WRONG", result.stdout)


class Spatial(unittest.TestCase):
    """Figure 5."""

    def test_times_are_shortest_where_places_divide_the_cores_evenly(self):
        result = bench("spatial", "--domains", CARD)["results"][0]
        self.assertEqual(result["whole_cores"], CORES)
        self.assertEqual(result["places"], list(range(1, CORES + 1)))
        for series in result["series"]:
            times = dict(zip(result["places"], series["seconds"], strict=True))
            best = min(times, key=times.get)
            self.assertEqual(CORES % best, 0)
            self.assertEqual(series["best_places"], best)
            # It falls, then rises; what is not divided is faster than all.
            self.assertGreater(times[1], times[best])
            self.assertGreater(times[CORES], times[best])
            self.assertLess(series["ref_s"], times[best])
            # Each divisor is faster than its neighbours, which are not; 56 ends a plateau.
            for places in (4, 7, 8, 14, 28):
                for other in (places - 1, places + 1):
                    if CORES % other != 0:
                        self.assertLess(times[places], times[other], (places, other))

    def test_without_contention_all_even_divisions_take_the_same_time(self):
        card = f"sim:clock=virtual,cores={CORES},gflops=1,kernels=skip"
        result = bench("spatial", "--domains", card, "--sizes", "32KiB", "--places", "1,2,4,8")
        for seconds in result["results"][0]["series"][0]["seconds"]:
            self.assertAlmostEqual(seconds, 128 * 8192 * 100 / CORES / 1e9, delta=1e-6)


class Overhead(unittest.TestCase):
    def test_overhead_reports_positive_costs_of_four_operations(self):
        result = bench("overhead", "--actions", "50", "--domains", "host,sim")
        for each in result["results"]:
            self.assertEqual(sorted(each["ns"]),
                             ["action", "cross_stream_dependence", "event_wait", "place"])
            for cost in each["ns"].values():
                self.assertGreater(cost, 0)


class Figures(unittest.TestCase):
    """Figures 6 to 9, with an application on a small device."""

    CARD = "sim:clock=virtual,cores=4,gbps=6,latency_us=2,gflops=0.5,kernels=skip"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "f")

    def figures(self, *options):
        result = weir("bench", "figures", "--apps", "matmul", "--n", "256", "--domains", self.CARD,
                      "--repeat", "1", "--json", "-o", self.output, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_each_figure_is_made_and_nothing_is_measured_twice(self):
        first = self.figures()
        six, seven, eight, nine = first["figures"]
        self.assertEqual([each["figure"] for each in first["figures"]], [6, 7, 8, 9])
        self.assertEqual(seven["x"], [1, 2, 3, 4])
        self.assertEqual(eight["x"][:6], [1, 2, 3, 4, 6, 8])
        self.assertEqual(six["seconds"][1], min(seven["seconds"] + eight["seconds"]))
        self.assertLess(six["seconds"][1], six["seconds"][0])
        self.assertLess(nine["seconds"][1], nine["seconds"][0])
        with open(self.output + ".json", encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual(kept["times"], first["times"])
        key = next(iter(kept["times"]))
        kept["times"][key] = 12345.0
        with open(self.output + ".json", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        self.assertEqual(self.figures()["times"], kept["times"])
        self.assertEqual(self.figures("--fresh")["times"], first["times"])
        with open(self.output + ".html", encoding="utf-8") as file:
            self.assertIn("weir.figures/1", file.read())

    def test_weir_domains_is_used_for_all_figures(self):
        result = weir("bench", "figures", "--apps", "matmul", "--n", "64", "--repeat", "1",
                      "--json", "-o", self.output, WEIR_DOMAINS=self.CARD)
        self.assertEqual(result.returncode, 0, result.stderr)
        for key in json.loads(result.stdout)["times"]:
            self.assertIn(self.CARD, key)
            self.assertNotIn("host", key)

    def test_a_time_that_is_missing_is_measured_again(self):
        first = self.figures()
        with open(self.output + ".json", encoding="utf-8") as file:
            kept = json.load(file)
        kept["times"][next(iter(kept["times"]))] = None
        with open(self.output + ".json", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        self.assertEqual(self.figures()["times"], first["times"])

    def test_times_of_zero_are_shown_without_a_gain(self):
        self.figures()
        with open(self.output + ".json", encoding="utf-8") as file:
            kept = json.load(file)
        kept["times"] = dict.fromkeys(kept["times"], 0.0)
        with open(self.output + ".json", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        result = weir("bench", "figures", "--apps", "matmul", "--n", "256", "--domains", self.CARD,
                      "--repeat", "1", "-o", self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        row = next(line for line in result.stdout.splitlines() if line.startswith("matmul"))
        self.assertNotIn("nan", row)
        self.assertIn(" - ", row)

    def test_times_of_another_seed_are_not_reused(self):
        first = self.figures("--fresh")
        with open(self.output + ".json", encoding="utf-8") as file:
            kept = json.load(file)
        kept["times"][next(iter(kept["times"]))] = 12345.0
        with open(self.output + ".json", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        self.assertEqual(self.figures("--seed", "2")["times"], first["times"])

    def test_options_that_an_application_does_not_take_are_refused(self):
        for options, words in (
                (("--apps", "lu", "--size", "tiny"), "lu has no size 'tiny': use --n"),
                (("--apps", "matmul,lu", "--size", "small"), "lu has no size 'small'"),
                (("--apps", "wave", "--seed", "3"), "wave does not use --seed"),
                (("--apps", "wave", "--input", "a.npy"), "wave does not use --input"),
                (("--apps", "laplacian", "--size", "tiny"), "laplacian has no tiles"),
                (("--apps", "scatter"), "scatter has no tiles"),
                (("--apps", "nn", "--policy", "finish"), "unknown option '--policy'")):
            with self.subTest(options):
                result = weir("bench", "figures", *options, "--domains", self.CARD, "--repeat", "1",
                              "-o", self.output)
                self.assertEqual((result.returncode, result.stdout), (USAGE, ""), result.stderr)
                self.assertIn(words, result.stderr)
                self.assertIn("see 'weir bench figures --help'", result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertFalse(os.path.exists(self.output + ".json"))

    def test_unknown_applications_are_named(self):
        result = weir("bench", "figures", "--apps", "nothing", "-o", self.output)
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("nothing", result.stderr)


class Command(unittest.TestCase):
    def test_json_holds_the_command_that_repeats_the_benchmark(self):
        self.assertEqual(bench("overhead", "--actions", "2")["command"],
                         "weir bench overhead --actions 2 --json")

    def test_invalid_options_of_benchmarks_are_refused_in_one_line(self):
        for arguments, code, word in (
                (["overlap", "--blocks", "0"], USAGE, "--blocks"),
                (["overlap", "--iterations", "x"], USAGE, "--iterations"),
                (["transfers", "--block", "1"], USAGE, "--block"),
                (["overhead", "--repeat", "3"], USAGE, "--repeat"),
                (["spatial", "--domains", CARD, "--places", "300"], BAD_INPUT, "300"),
                (["spatial", "--domains", "sim:cores=2,reserved=2"], BAD_INPUT, "reserved"),
                ([], USAGE, "transfers, overlap, spatial, overhead, figures")):
            result = weir("bench", *arguments)
            self.assertEqual((result.returncode, result.stdout), (code, ""))
            self.assertIn(word, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
