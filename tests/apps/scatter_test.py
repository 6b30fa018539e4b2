"""Counts keys with `weir run scatter` on ranks of one process and on processes, and compares."""

import gzip
import json
import os
import re
import shutil
import subprocess
import unittest
from collections import Counter

import weir_cli
from weir_cli import BAD_INPUT, USAGE

TEXT = """It was the best of times, it was the worst of times, it was the age of wisdom,
it was the age of foolishness; 1789 and 1859, d\u00e9j\u00e0 vu: it was IT."""
FASTA = ">one\nACGTACGTAC\nGTNNACGTTT\n>two\nacgt\nacgta\n"


class ScatterTest(weir_cli.CliTest):
    def scatter(self, *options):
        report = self.report("scatter", "--domains", "host:cores=1", "--verify", *options)
        self.assertIs(report["verified"], True)
        self.assertEqual(report["params"]["n"], report["scatter"]["items"])
        return report["scatter"]

    def test_all_patterns_pass_verification_on_simulated_ranks(self):
        for ranks in (1, 2, 5):
            for pattern in ("stream", "random", "repeat"):
                with self.subTest(ranks=ranks, pattern=pattern):
                    counts = self.scatter("--n", 30_000, "--bins", 5_001, "--pattern", pattern,
                                          "--simulate", ranks, "--producers", 2, "--delivery",
                                          7 * (pattern == "random"))
                    self.assertEqual(counts["ranks"], ranks)
                    self.assertEqual(counts["items"], 30_000)
                    self.assertEqual(counts["payload_bytes"], 240_000)
                    self.assertLessEqual(counts["most_blocks_in_flight"], 8)

    def test_verification_passes_on_1_2_and_4_processes(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks):
                counts = self.scatter("--n", 50_000, "--ranks", ranks)
                self.assertEqual((counts["ranks"], counts["items"]), (ranks, 50_000))

    def test_verification_passes_under_mpirun_on_2_and_4_ranks(self):
        for mpirun in ("mpirun.openmpi", "mpirun.mpich"):
            for ranks in (2, 4):
                with self.subTest(mpirun, ranks=ranks):
                    if shutil.which(mpirun) is None:
                        self.skipTest(f"{mpirun} is not installed")
                    more = ["--oversubscribe"] if "openmpi" in mpirun else []
                    done = subprocess.run(
                        [mpirun, *more, "-n", str(ranks), weir_cli.program(0), "run", "scatter", "--n",
                         "20000", "--domains", "host:cores=1", "--repeat", "1", "--verify", "--json"],
                        capture_output=True, text=True, timeout=200, check=False,
                        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
                    self.assertEqual(done.returncode, 0, done.stderr)
                    report = json.loads(done.stdout)  # of one rank alone
                    self.assertIs(report["verified"], True)
                    self.assertEqual(report["scatter"]["ranks"], ranks)
                    self.assertEqual(report["scatter"]["items"], 20_000)

    def test_coalescing_saves_messages_and_bytes(self):
        on, off = (self.scatter("--n", 20_000, "--bins", 20_000, "--pattern", "stream",
                                "--simulate", 2, "--age", -1, "--coalesce", switch) for switch in ("on", "off"))
        self.assertEqual(off["blocks"], 20_000)
        self.assertLess(on["blocks"], 20)
        self.assertGreater(on["joined"], 19_000)
        self.assertLess(on["wire_per_payload"], 1.05)
        self.assertGreater(off["wire_per_payload"], 5)

    def test_repeated_keys_are_combined(self):
        counts = self.scatter("--n", 200_000, "--pattern", "repeat", "--simulate", 2, "--age", -1)
        self.assertGreater(counts["combined"], 150_000)
        self.assertLess(counts["wire_per_payload"], 0.1)

    def test_all_words_of_a_text_are_counted(self):
        words = len(re.findall(r"[\w]+", TEXT))
        path = self.write("text.txt", TEXT * 100)
        for ranks in (1, 3):
            counts = self.scatter("--input", path, "--simulate", ranks, "--producers", 3)
            self.assertEqual(counts["items"], 100 * words)
            self.assertEqual(counts["keys"], "words")

    def test_all_kmers_of_length_4_are_counted(self):
        expected = Counter()
        for sequence in ("ACGTACGTACGT", "ACGTTT", "ACGTACGTA"):
            expected.update(sequence[at:at + 4] for at in range(len(sequence) - 3))
        path = self.write("genes.fa", FASTA)
        for ranks in (1, 2, 4):
            counts = self.scatter("--input", path, "--kmer", 4, "--simulate", ranks)
            self.assertEqual(counts["items"], sum(expected.values()))
            self.assertEqual(counts["bins"], 256)

    def test_unusable_inputs_and_options_are_refused(self):
        empty, short = self.write("empty", ""), self.write("short.fa", ">x\nACG\n")
        message = self.refusal("run", "scatter", "--input", empty, code=BAD_INPUT)
        self.assert_names(message, "is empty")
        message = self.refusal("run", "scatter", "--input", short, "--kmer", 4, code=BAD_INPUT)
        self.assert_names(message, "3 bases", 4)
        packed = self.write("genome.fa.gz", gzip.compress(FASTA.encode()))
        message = self.refusal("run", "scatter", "--input", packed, "--kmer", 4, code=BAD_INPUT)
        self.assertIn(f"{packed}: found what gzip has packed", message)
        message = self.refusal("run", "scatter", "--output", "table.npy", code=USAGE)
        self.assertIn("--output: scatter does not use this option", message)
        self.weir("run", "scatter", "--bins", 0, code=USAGE)
        self.weir("run", "scatter", "--delivery", 1, code=USAGE)
        self.weir("run", "scatter", "--pattern", "odd", code=USAGE)


if __name__ == "__main__":
    weir_cli.main()
