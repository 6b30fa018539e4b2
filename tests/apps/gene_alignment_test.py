"""Aligns with `weir run gene-alignment`, and compares with a set of words and NumPy's alignments."""

import gzip
import os
import random
import re
import unittest

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, CARDS, DEADLINE, USAGE

try:
    import parasail
except ImportError:
    parasail = None

LAMBDA = "/usr/share/doc/bowtie2/examples/reference/lambda_virus.fa.gz"  # of bowtie2-examples
SEED, MATCH, MISMATCH, GAP = 11, 4, -1, -2


def letters(count, seed):
    return "".join(random.Random(seed).choices("ACGT", k=count))


def changed(sequence, seed, rate=0.1):
    """The same with letters replaced, left out and put in."""
    source, result = random.Random(seed), ""
    for letter in sequence:
        kind = source.random()
        if kind < rate / 2:
            letter = source.choice("ACGT")
        elif kind < rate * 3 / 4:
            letter = ""
        elif kind < rate:
            letter += source.choice("ACGT")
        result += letter
    return result


def fasta(*sequences, width=70):
    lines = []
    for name, bases in sequences:
        lines += [">" + name] + [bases[i:i + width] for i in range(0, len(bases), width)]
    return "\n".join(lines) + "\n"


def expected_hits(query, target):
    words = {query[i:i + SEED] for i in range(len(query) - SEED + 1)
             if "N" not in query[i:i + SEED]}
    return [p for p in range(len(target) - SEED + 1) if target[p:p + SEED] in words]


def expected_score(query, window):
    """Rows as prefix maxima."""
    window = np.frombuffer(window.encode(), np.uint8)
    slope = -GAP * np.arange(len(window) + 1)
    row = np.zeros(len(window) + 1, int)
    for i, letter in enumerate(query.encode(), 1):
        same = (window == letter) & (letter != ord("N"))
        across = row[:-1] + np.where(same, MATCH, MISMATCH)
        best = np.concatenate([[GAP * i], np.maximum(across, row[1:] + GAP)])
        row = np.maximum.accumulate(best + slope) - slope
    return row.max()


class GeneAlignmentTest(weir_cli.CliTest):
    def align(self, target, query, *options, name="found.txt"):
        """Returns the report, and a dictionary for each line."""
        paths = [text if os.path.isabs(text) else self.write(f"{i}.fa", text)
                 for i, text in enumerate((target, query))]
        report = self.report("gene-alignment", "--input", paths[0], "--query", paths[1],
                             "--output", self.path(name), *options)
        with open(self.path(name), encoding="ascii") as file:
            head, *lines = file.read().splitlines()
        names = head.split("\t")
        return report, [dict(zip(names, line.split("\t"))) for line in lines]

    def check_line(self, line, query, target):
        window = target[int(line["hit"]):int(line["hit"]) + len(query)]
        begin, end = int(line["begin"]), int(line["end"])
        score = edits = i = 0
        j = begin
        for count, operation in re.findall(r"(\d+)(.)", line["cigar"]):
            for _ in range(int(count)):
                if operation in "=X":
                    same = query[i] == target[j] != "N"
                    self.assertEqual(same, operation == "=")
                    score += MATCH if operation == "=" else MISMATCH
                else:
                    score += GAP
                edits += operation != "="
                i += operation in "=XI"
                j += operation in "=XD"
        self.assertEqual((i, j), (len(query), end))
        self.assertGreaterEqual(begin, int(line["hit"]))
        self.assertLessEqual(end, int(line["hit"]) + len(window))
        self.assertEqual((score, edits), (int(line["score"]), int(line["edits"])))
        self.assertEqual(score, expected_score(query, window))
        if parasail is not None and "N" not in query + window:
            matrix = parasail.matrix_create("ACGT", MATCH, MISMATCH)
            self.assertEqual(score, parasail.sg_dx(query, window, -GAP, -GAP, matrix).score)

    def check(self, targets, queries, lines):
        expected = [(q, t, p) for q, query in queries for t, target in targets
                    for p in expected_hits(query, target)]
        self.assertEqual([(line["query"], line["target"], int(line["hit"])) for line in lines],
                         expected)
        queries, targets = dict(queries), dict(targets)
        for line in lines:
            self.check_line(line, queries[line["query"]], targets[line["target"]])

    def test_alignments_of_random_sequences_equal_those_of_numpy(self):
        target = letters(6000, 1)
        cases = [
            ([("t", target)], [("q", changed(target[2000:2300], 2))]),
            ([("one", target), ("two", letters(10, 3)), ("three", target[::-1])],
             [("a", changed(target[5800:], 4, 0.3)), ("b", letters(11, 5)), ("c", target[:40])]),
            ([("t", "A" * 300 + target[:100])], [("q", "A" * 30)]),
            ([("t", target[:11])], [("q", target[:11])]),
            ([("t", target)], [("q", "ACGT" * 3 + "C" * 11)]),
        ]
        for targets, queries in cases:
            with self.subTest(queries[0][0]):
                report, lines = self.align(fasta(*targets), fasta(*queries))
                self.check(targets, queries, lines)
                self.assertEqual(report["results"]["alignments"], len(lines))
                self.assertEqual(report["stages"]["fine"], len(lines))
                self.assertEqual(report["stages"]["write"], len(lines))

    def test_an_unknown_base_is_aligned_as_a_mismatch(self):
        """On a device its bits are those of a G."""
        target = letters(400, 30) + "G" * 20 + "N" * 30 + letters(400, 31)
        target = target[:100] + "N" + target[101:]
        query = target[60:140].replace("N", "A") + "G" * 15
        for other in (query, query[:20] + "N" + query[21:], "N" * 15 + target[:30], "N" * 40):
            for domains in ("host:cores=1", CARDS[0]):
                with self.subTest(query=other, domains=domains):
                    report, lines = self.align(fasta(("t", target)), fasta(("q", other)),
                                               "--domains", domains, "--verify")
                    self.assertIs(report["verified"], True)
                    self.check([("t", target)], [("q", other)], lines)
                    self.assertEqual(lines == [], other == "N" * 40)

    def test_without_files_genes_are_made_up_and_found(self):
        output, _ = self.weir("run", "gene-alignment", "--repeat", 1)
        self.assertRegex(output, r"input +made up: a genome of 100000 letters with 4 genes \(--seed 1\)")
        found = set()
        for options in ((), ("--seed", 2), ("--n", 2000, "--seed", 3),
                        ("--n", 3001, "--seed", 4, "--baseline"), ("--domains", CARDS[-1])):
            with self.subTest(options):
                report = self.report("gene-alignment", "--verify", *options)
                self.assertEqual(report["results"]["genes found"], 4)
                self.assertIs(report["verified"], True)
                self.assertIn(["genes that were not found where they are", 0],
                              [[check["metric"], check["value"]] for check in report["checks"]])
                found.add((report["params"]["n"], report["params"]["seed"], report["hash"]))
        self.assertEqual(len(found), 4)  # same on a device, another genome by another seed

    def test_the_default_query_is_named_after_its_range_in_the_target(self):
        target = self.write("short.fa", fasta(("t", letters(300, 1))))
        self.report("gene-alignment", "--input", target, "--output", self.path("found.txt"))
        with open(self.path("found.txt"), encoding="ascii") as file:
            self.assertTrue(file.read().splitlines()[1].startswith("t:1-300\tt\t0\t"))

    @unittest.skipUnless(os.path.exists(LAMBDA), "bowtie2-examples is not installed")
    def test_alignments_in_the_lambda_phage_equal_those_of_numpy(self):
        with gzip.open(LAMBDA, "rt") as file:
            name, *lines = file.read().split("\n")
        target = ("".join(lines)).upper()
        self.assertEqual([target.count(base) for base in "ACGT"], [12334, 11362, 12820, 11986])
        query = changed(target[20000:20400], 6)
        report, lines = self.align(LAMBDA, fasta(("q", query)))
        self.assertEqual(report["params"]["n"], 48502)
        self.check([(name[1:].split()[0], target)], [("q", query)], lines)
        best = max(lines, key=lambda line: int(line["score"]))
        self.assertLess(abs(int(best["begin"]) - 20000), 40)
        # Without a query, that is the first 1024 letters: 1014 words of its own, and 20 by chance.
        output, _ = self.weir("run", "gene-alignment", "--input", LAMBDA, "--repeat", 1, "--json")
        report = weir_cli.json.loads(output)
        self.assertEqual(report["results"]["alignments"], 1034)
        self.assertEqual(report["results"]["best score"], 4096)

    def test_alignments_do_not_depend_on_the_pipeline_options(self):
        target = letters(20000, 7)
        query = changed(target[7000:7200], 8)
        expected = self.align(fasta(("t", target)), fasta(("q", query)))[1]
        self.assertGreater(len(expected), 50)
        for options in (("--domains", "host:cores=1"), ("--baseline",), ("--no-batching",),
                        ("--end", "timeout"), ("--relief", "off"), ("--relief", "warp"),
                        ("--places", 2), ("--chunk", 1), ("--chunk", 1000000),
                        ("--chunk", 100, "--baseline", "--places", 2)):
            with self.subTest(options):
                _, lines = self.align(fasta(("t", target)), fasta(("q", query)), *options)
                self.assertEqual(lines, expected)

    def test_alignments_on_a_device_equal_those_on_the_host(self):
        targets = [("one", letters(5000, 21)), ("two", letters(11, 22)), ("three", letters(10, 23)),
                   ("four", letters(2058, 24))]
        queries = [("a", changed(targets[0][1][900:1100], 25)), ("b", targets[3][1][1020:1060]),
                   ("c", targets[1][1])]
        expected = self.align(fasta(*targets), fasta(*queries), "--domains", "host:cores=1")[1]
        self.check(targets, queries, expected)
        blocks = 3 * (5 + 1 + 2)
        for domains in CARDS:
            for options in ((), ("--no-batching",), ("--baseline",), ("--chunk", 1000000)):
                with self.subTest(domains=domains, options=options):
                    report, lines = self.align(fasta(*targets), fasta(*queries), "--domains",
                                               domains, *options)
                    self.assertEqual(lines, expected)
                    self.assertEqual(report["stages"]["coarse"], blocks)
        for chunk in (1, 100, 1025):
            _, lines = self.align(fasta(*targets[1:]), fasta(*queries[1:]), "--domains", CARDS[-1],
                                  "--chunk", chunk)
            self.assertEqual(lines, [line for line in expected
                                     if line["target"] != "one" and line["query"] != "a"])

    def test_the_pipeline_on_a_device_is_not_slower_than_its_baseline(self):
        """The host takes nearly all of the time."""
        path = self.write("t.fa", fasta(("t", letters(20000, 28))))
        self.assertGreater(self.gain("gene-alignment", "--input", path), 1)

    def test_alignments_on_opencl_equal_those_of_numpy(self):
        target = letters(20000, 26)
        query = changed(target[3000:3300], 27)
        _, lines = self.align(fasta(("t", target)), fasta(("q", query)), "--domains",
                              self.require_opencl())
        self.check([("t", target)], [("q", query)], lines)

    def test_compressed_and_oddly_written_files_give_the_same_alignments(self):
        target = letters(3000, 9)
        query = target[1000:1100]
        expected = self.align(fasta(("t", target)), fasta(("q", query)))[1]
        half = len(fasta(("t", target))) // 2
        plain = fasta(("t", target)).encode()
        members = gzip.compress(plain[:half]) + gzip.compress(plain[half:])
        odd = "\n\r\n>t and more words\r\n" + "\r\n\n".join(
            target.lower()[i:i + 7] + " " for i in range(0, 3000, 7))
        for content in (gzip.compress(plain), members, odd):
            path = self.write("target", content)
            self.assertEqual(self.align(path, fasta(("q", query)))[1], expected)

    def test_sam_output_holds_the_alignments_of_the_text_output(self):
        target = letters(5000, 10)
        queries = [("a", changed(target[100:200], 11)), ("b", target[3000:3050])]
        text = self.align(fasta(("t", target)), fasta(*queries))[1]
        self.report("gene-alignment", "--input", self.path("0.fa"), "--query", self.path("1.fa"),
                    "--output", self.path("found.sam"))
        with open(self.path("found.sam"), encoding="ascii") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[:2], ["@HD\tVN:1.6\tSO:unknown", "@SQ\tSN:t\tLN:5000"])
        records = [line.split("\t") for line in lines if not line.startswith("@")]
        self.assertEqual(len(records), len(text))
        seen = set()
        for record, line in zip(records, text):
            name, further = line["query"], line["query"] in seen
            seen.add(name)
            self.assertEqual(record, [
                name, "256" if further else "0", "t", str(int(line["begin"]) + 1), "255",
                line["cigar"], "*", "0", "0", "*" if further else dict(queries)[name], "*",
                "AS:i:" + line["score"], "NM:i:" + line["edits"]])

    def test_less_than_half_of_30000_alignments_are_kept_at_a_time(self):
        """Tens of thousands of alignments, of which few are there at a time."""
        report, lines = self.align(fasta(("t", "A" * 30000)), fasta(("q", "A" * 11)))
        self.assertEqual(len(lines), 29990)
        self.assertLess(report["shelf"], 29990 / 2)
        self.assertEqual({line["cigar"] for line in lines}, {"11="})

    def test_verification_passes_with_the_default_query(self):
        target = letters(1500, 12)
        self.write("t.fa", fasta(("t", target)))
        report = self.report("gene-alignment", "--input", self.path("t.fa"), "--verify")
        self.assertIs(report["verified"], True)
        self.assertEqual([check["value"] for check in report["checks"]], [0, 0])

    def test_faulty_sequences_and_options_are_refused_without_output(self):
        good = self.write("good.fa", fasta(("t", letters(200, 13))))
        files = {
            "none.fa": (None, "No such file"), "empty.fa": ("", "no sequence"),
            "letters.fa": (">t\nACGT\nACXGT\n", "letters.fa:3: found 'X' in column 3"),
            "headless.fa": ("ACGT\n", "headless.fa:1:"), "bare.fa": (">t\n>u\nACGT\n", "'t'"),
            "last.fa": (">t\nACGT\n>u\n", "'u'"), "nameless.fa": (">\nACGT\n", "nameless.fa:1:"),
            "binary.fa": (">t\nAC\x1b[31mGT\n", "'\\x1b'"),
            "cut.fa.gz": (gzip.compress(fasta(("t", letters(9999, 14))).encode())[:-700], "cut"),
            "wrong.fa.gz": (b"\x1f\x8b" + b"nonsense" * 9, "damaged gzip"),
        }
        for name, (content, word) in files.items():
            path = self.path(name) if content is None else self.write(name, content)
            for files_given in (("--input", path), ("--input", good, "--query", path)):
                with self.subTest(files_given):
                    message = self.refusal("run", "gene-alignment", *files_given, code=BAD_INPUT)
                    self.assertIn(word, message)
                    self.assertIn(path, message)
        short = self.write("short.fa", ">q\nACGTACGTAC\n")
        endless = self.write("endless.fa", ">q\n" + "A" * 1000000 + "\n")
        long = self.write("long.fa", ">q\n" + "A" * 16385 + "\n")
        for options, code, word in (
            (("--query", good), BAD_INPUT, "--input"),
            (("--n", 1999), BAD_INPUT, "1999 letters"),
            (("--input", good, "--query", short), BAD_INPUT, "10 letters"),
            (("--input", good, "--query", long), BAD_INPUT, "16385 letters"),
            (("--input", short), BAD_INPUT, "10 letters"),
            (("--input", good, "--output", "found.bam"), BAD_INPUT, ".sam"),
            (("--input", good, "--chunk", 0), USAGE, "--chunk"),
            (("--input", endless, "--timeout", "1e-6"), DEADLINE, "is not at its end"),
            (("--input", good, "--timeout", "1e-6", "--baseline"), DEADLINE, "was over"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "gene-alignment", *options, code=code))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("found")])


if __name__ == "__main__":
    weir_cli.main()
