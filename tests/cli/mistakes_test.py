"""Mistakes on the command line, and whether messages say what, where and what to do."""

import os
import tempfile
import unittest

from tool import weir

OK, RUN_FAILED, USAGE, BAD_INPUT, UNAVAILABLE, _, DEADLINE = range(7)
SMALL = ("run", "cholesky", "--n", "64", "--repeat", "1")

MISTAKES = (
    # the command
    (("runn",), USAGE, r"unknown command 'runn' \(did you mean 'run'\?\)"),
    (("run",), USAGE, "choose what to run: asian-option, .*wave"),
    (("run", "--policy", "finish"), USAGE, "choose what to run: asian-option, .*wave"),
    (("run", "choleski"), USAGE, r"unknown application 'choleski' \(did you mean 'cholesky'\?\)"),
    (("tune", "nothing"), USAGE, "unknown command 'nothing'"),
    (("bench",), USAGE, "choose what to bench: transfers, "),
    (("bench", "overlapp"), USAGE, "did you mean 'overlap'"),
    (("bench", "figures", "--apps", "kmean"), BAD_INPUT,
     r"no application 'kmean' \(did you mean 'kmeans'\?\); 'weir run --help' lists all"),
    (("help", "foo"), USAGE, "^weir: no command 'foo'; see 'weir help --help'$"),
    (("help", "run", "choleski"), USAGE, r"no command 'choleski' \(did you mean 'cholesky'\?\)"),
    (("help", "info", "more"), USAGE, "no command 'more'; see"),
    (("report",), USAGE, "FILE is required"),
    # options
    ((*SMALL, "--nn", "5"), USAGE, r"unknown option '--nn' \(did you mean '--n'\?\)"),
    (("run", "cholesky", "4096"), USAGE, "unexpected argument '4096'"),
    (("run", "cholesky", "--n"), USAGE, "^weir: --n needs a value; see 'weir run cholesky --help'$"),
    (("run", "cholesky", "--policy"), USAGE, "--policy needs a value"),
    (("run", "cholesky", "--n", "0"), USAGE, "--n: '0' is not a number from 1 to 2147483647"),
    (("run", "cholesky", "--n=4k"), USAGE, "--n: '4k' is not a number from 1 to"),
    ((*SMALL, "--timeout", "0"), USAGE, "^weir: --timeout: '0' is not a number above 0; see"),
    (("run", "srad", "--lambda", "2"), USAGE, "--lambda: '2' is not a number from 0 to 1; see"),
    (("run", "srad", "--lambda", "nan"), USAGE, "--lambda: 'nan' is not a number from 0 to 1; see"),
    (("run", "nn", "--latitude", "NaN"), USAGE, "--latitude: 'NaN' is not a number from -90 to 90; see"),
    ((*SMALL, "--timeout", "nan"), USAGE, "--timeout: 'nan' is not a number above 0; see"),
    ((*SMALL, "--precision", "half"), USAGE, "--precision: 'half' is not one of double, float;"),
    (("run", "hotspot", "--size", "big"), USAGE, "--size: 'big' is not one of tiny, small, paper;"),
    ((*SMALL, "--tile", "8", "--tiles", "8"), USAGE, "--tile excludes --tiles"),
    ((*SMALL, "--input", "text"), USAGE, "^weir: --n excludes --input; see 'weir run cholesky --help'$"),
    (("tune", "matmul", "--n", "64", "--input", "text"), USAGE, "--n excludes --input"),
    (("tune", "matmul", "--tile", "64"), USAGE,
     "^weir: --tile: weir tune chooses its value; remove it; see 'weir tune matmul --help'$"),
    (("tune", "reyes", "--streams", "3"), USAGE, "--streams: weir tune chooses its value"),
    (("tune", "reyes", "--tile", "64"), USAGE, "unknown option '--tile'"),
    ((*SMALL, "--policy", "fastest"), BAD_INPUT, "no policy 'fastest'; there is: finish"),
    ((*SMALL, "--places", "999"), BAD_INPUT, r"domain 'host' has \d+ cores: choose up to \d+ --places"),
    ((*SMALL, "--places", "2", "--domains", "host:cores=1"), BAD_INPUT,
     "domain 'host' has 1 core: choose up to 1 --places, not 2"),
    ((*SMALL, "--verify", "--domains", "sim:phi-31sp,kernels=skip"), BAD_INPUT,
     "^weir: --verify: with kernels=skip nothing is computed: leave out one of the two$"),
    ((*SMALL, "--live"), USAGE, "^weir: --live: cholesky does not use this option; remove it; see"),
    (("run", "cholesky", "--n", "1024", "--timeout", "1e-6"), DEADLINE,
     "a run of cholesky did not end within 1e-06 s"),
    (("run", "laplacian", "--tile", "4"), USAGE, "unknown option '--tile'"),
    (("run", "raster", "--tiles", "4"), USAGE, "unknown option '--tiles'"),
    (("run", "reyes", "--policy", "finish"), USAGE, "--policy: reyes does not use this option; remove it"),
    (("run", "reyes", "--n", "100"), USAGE, "^weir: --n: reyes does not use this option; remove it; see"),
    (("run", "reyes", "--seed", "4"), USAGE, "--seed: reyes does not use this option"),
    (("run", "reyes", "--input", "text"), USAGE, "--input: reyes does not use this option"),
    (("run", "reyes", "--streams", "2"), USAGE, "--streams requires --baseline"),
    (("run", "wave", "--streams", "3"), USAGE, "--streams: wave does not use this option"),
    (("run", "wave", "--streams"), USAGE, "--streams: wave does not use this option"),
    (("run", "scatter", "--places", "2", "--ranks", "2"), USAGE, "--places: scatter does not use this option"),
    (("run", "scatter", "--output", "x.npy"), USAGE, "--output: scatter does not use this option"),
    (("run", "sparse-cholesky", "--input", "text"), USAGE, "--input: sparse-cholesky does not use"),
    (("tune", "reyes", "--n", "100"), USAGE, "--n: reyes does not use this option"),
    ((*SMALL, "--policy", "finish", "--streams", "2"), USAGE, "--streams excludes --policy"),
    # values that a script forgot to set
    ((*SMALL, "--domains", ""), USAGE,
     "^weir: --domains: '' is empty: give it a value or leave it out; see 'weir run cholesky --help'$"),
    ((*SMALL, "--domains="), USAGE, "--domains needs a value"),
    (("info", "--domains", ""), USAGE, "--domains: '' is empty"),
    (("bench", "overlap", "--domains", ""), USAGE, "--domains: '' is empty"),
    (("tune", "cholesky", "--domains", ""), USAGE, "--domains: '' is empty"),
    (("run", "cholesky", "--input", ""), USAGE, "--input: '' is empty"),
    ((*SMALL, "--trace", ""), USAGE, "--trace: '' is empty"),
    # domains
    ((*SMALL, "--domains", "hots"), BAD_INPUT, "no backend 'hots' .*'host'.*; known: host, sim"),
    ((*SMALL, "--domains", "sim:gpbs=6"), BAD_INPUT, "no setting 'gpbs' .*'gbps'"),
    ((*SMALL, "--domains", "sim:gbps=fast"), BAD_INPUT, "gbps=fast is not a number between"),
    ((*SMALL, "--domains", "host:cores=9999"), BAD_INPUT, r"cores=9999 is not between 1 and \d"),
    ((*SMALL, "--domains", "host,,sim"), BAD_INPUT, "'' is not a domain: KIND"),
    (("run", "reyes", "--domains", "sim"), UNAVAILABLE, "needs a host domain .*: add host to its domains"),
    # files and memory
    (("run", "cholesky", "--input", "none.mtx"), BAD_INPUT, "none.mtx: cannot be read: No such file"),
    (("run", "cholesky", "--input", "folder"), BAD_INPUT, "folder: found a directory"),
    (("run", "cholesky", "--input", "text"), BAD_INPUT, r"text: byte 0: found 'hello.*expected %%Matrix"),
    (("run", "reyes", "--output", "none/x.png"), BAD_INPUT, "'none' is not a folder"),
    (("run", "reyes", "--output", "x.jpg"), BAD_INPUT, "found the extension '.jpg', expected .png"),
    ((*SMALL, "--trace", "none/x.json"), BAD_INPUT, "'none' is not a folder"),
    ((*SMALL, "--trace", "x.png"), BAD_INPUT, r"'x.png': the timeline is .*\.json or \.pftrace"),
    ((*SMALL, "--report", "x.pdf"), BAD_INPUT, "'x.pdf': the report is a web page: .*html"),
    (("run", "gene-alignment", "--query", "text"), BAD_INPUT, "give it --input FILE, in FASTA"),
    (("run", "gene-alignment", "--n", "9"), BAD_INPUT, "9 letters .*--n from 2000"),
    (("run", "face-detection", "--cascade", "text"), BAD_INPUT, "give it --input FILE"),
    (("run", "face-detection", "--input", "text"), BAD_INPUT, "give it --cascade FILE"),
    (("report", "text"), BAD_INPUT, "text: is neither a recording nor"),
    (("run", "cholesky", "--n", "20000000"), BAD_INPUT, "GiB of memory and the machine has .*smaller --n"),
    (("run", "hotspot", "--n", "1024", "--repeat", "1", "--domains", "sim:memory=1M"), RUN_FAILED,
     r"need \S+ MiB of domain 'sim:0', which has 1 MiB"),
)


class Mistakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.mkdir("folder")
        with open("text", "w", encoding="utf-8") as file:
            file.write("hello\n")

    def test_each_mistake_is_reported_in_one_line_with_its_exit_code(self):
        for arguments, code, words in MISTAKES:
            with self.subTest(" ".join(arguments)):
                result = weir(*arguments)
                self.assertRegex(result.stderr, words)
                self.assertRegex(result.stderr, r"\Aweir: [^\n]+\n\Z")
                self.assertEqual((result.returncode, result.stdout), (code, ""))

    def test_a_bad_domain_in_the_environment_is_reported_with_its_variable(self):
        result = weir(*SMALL, WEIR_DOMAINS="bad")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertRegex(result.stderr, r"\Aweir: WEIR_DOMAINS: no backend 'bad'; known: [^\n]+\n\Z")

    def test_ranks_that_all_compute_the_whole_problem_are_reported(self):
        result = weir(*SMALL, "--ranks", "2")
        self.assertEqual(result.returncode, OK)
        self.assertEqual(result.stderr, "weir: each of the 2 ranks computes the whole problem of cholesky: "
                                        "--domains 'rank:*' divides it\n")
        self.assertEqual(weir(*SMALL, "--ranks", "2", "--domains", "rank:*").stderr, "")

    def test_ranks_of_srun_are_counted_and_only_the_first_reports(self):
        self.assertIn("each of the 3 ranks computes the whole problem of cholesky",
                      weir(*SMALL, SLURM_STEP_NUM_TASKS="3", SLURM_LOCALID="0").stderr)
        self.assertEqual(weir(*SMALL, SLURM_STEP_NUM_TASKS="3", SLURM_LOCALID="1").stderr, "")
        self.assertEqual(weir(*SMALL, SLURM_NTASKS="3").stderr, "")  # in a batch script

    def test_the_output_omits_what_a_run_does_not_have(self):
        said = weir("run", "scatter", "--n", "1000", "--repeat", "1").stdout
        self.assertTrue(said.startswith("scatter: n 1000\n"), said)
        for word in ("overlap", "streams", "places"):
            self.assertNotIn(word, said)
        brief = weir("run", "cholesky", "--n", "1", "--repeat", "1").stdout
        self.assertRegex(brief, r"\n  speed +[0-9.e-]*[1-9][0-9.e-]* GFLOP/s\n")
        self.assertRegex(weir(*SMALL).stdout, r"\Acholesky: n 64, tile \d+, double\n(.*\n)*  overlap")

    def test_help_and_the_help_option_print_the_same_for_nested_commands(self):
        for words in (("doctor",), ("run",), ("run", "cholesky"), ("tune", "models")):
            self.assertEqual(weir("help", *words).stdout, weir(*words, "--help").stdout)

    def test_help_shows_the_default_sizes_and_tiles(self):
        for app, n, tile, tiles in (("cholesky", "4096", "chosen for the problem", None),
                                    ("hotspot", "2048", "256", None),
                                    ("prefixsum", "1048576", "chosen by --tiles", "16"),
                                    ("wave", "96", "chosen for the problem", None),
                                    ("sparse-cholesky", "32", "256", None)):
            with self.subTest(app):
                said = " ".join(weir("run", app, "--help").stdout.split())
                self.assertIn(f"Problem size [{n}] ", said)
                self.assertIn(f"Edge of a tile [{tile}] ", said)
                self.assertIn("instead of --tile " + (f"[{tiles}] " if tiles else "--"), said)
                self.assertIn(f"[{n}] ", " ".join(weir("tune", app, "--help").stdout.split()))

    def test_help_names_the_type_of_a_number_once(self):
        said = " ".join(weir("run", "srad", "--help").stdout.split())
        self.assertIn("--places UINT in [1 - 2147483647] Places", said)
        self.assertIn("--lambda FLOAT in [0 - 1] ", said)
        self.assertIn("--timeout FLOAT:POSITIVE ", said)
        self.assertIn("--precision TEXT:{double,float} ", said)

    def test_help_shows_only_the_options_that_an_application_uses(self):
        everything = {"--n", "--seed", "--input", "--output", "--streams", "--places", "--policy",
                      "--live"}
        for app, *hidden in (("reyes", "--n", "--seed", "--input", "--policy"),
                             ("wave", "--streams", "--seed", "--input", "--policy", "--live"),
                             ("scatter", "--streams", "--places", "--output", "--policy", "--live"),
                             ("sparse-cholesky", "--input", "--output", "--live"),
                             ("cholesky", "--live")):
            with self.subTest(app):
                said = weir("run", app, "--help").stdout
                shown = {option for option in everything if f"\n  {option} " in said}
                self.assertEqual(shown, everything - set(hidden))
                self.assertNotRegex(said, "(?i)means nothing|takes none")

    def test_the_streams_option_of_a_pipeline_applies_to_its_baseline(self):
        small = ("run", "reyes", "--width", "64", "--height", "48", "--repeat", "1")
        baseline = weir(*small, "--baseline", "--streams", "3")
        self.assertEqual((baseline.returncode, baseline.stderr), (OK, ""))
        self.assertIn("places 1, streams 3 each\n", baseline.stdout)
        self.assertIn("places 1\n", weir(*small).stdout)
        said = " ".join(weir("run", "reyes", "--help").stdout.split())
        self.assertIn("Streams per place, for --baseline [2]", said)

    def test_the_tile_that_was_asked_for_is_reported(self):
        said = weir("run", "wave", "--n", "64", "--tile", "12", "--steps", "1", "--repeat", "1").stdout
        self.assertTrue(said.startswith("wave: n 64, tile 12, double\n"), said)
        self.assertNotIn("streams", said)


if __name__ == "__main__":
    unittest.main()
