"""weir report: the page holds what the recording says, and a browser shows it."""

import base64
import html
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from tool import weir

USAGE, BAD_INPUT = 2, 3

CARD = "sim:clock=virtual,cores=4,gbps=3,duplex=half,gflops=4,kernels=skip"
RUN = ("run", "cholesky", "--n", "512", "--tile", "128", "--domains", CARD, "--places", "2",
       "--repeat", "1")
KINDS = ("compute", "h2d", "d2h", "d2d", "sync")
HEAD = '{"otherData":{"producer":"weir","actions":1,"dropped_actions":0},"traceEvents":['


def slice_of(name="a", row=2, start=0.0, duration=1.0, category="compute", stream="s"):
    return {"ph": "X", "pid": 1, "tid": row, "ts": start, "dur": duration, "cat": category,
            "name": name, "args": {"id": 1, "stream": stream, "bytes": 8, "status": "ok",
                                   "enqueued_us": 0.0, "ready_us": start}}


def arrow(phase, number, row, moment):
    return {"ph": phase, "pid": 1, "tid": row, "ts": moment, "id": number, "cat": "dep"}


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def recording(self, events, rows=("p0", "link in"), name="trace.json"):
        names = [{"ph": "M", "pid": 1, "tid": 2 + i, "name": "thread_name", "args": {"name": row}}
                 for i, row in enumerate(rows)]
        return self.write(name, HEAD + ",".join(map(json.dumps, names + events)) + "]}")

    def weir(self, *arguments):
        result = weir(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def page(self, *inputs):
        self.weir("report", *inputs, "-o", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            return file.read()

    @staticmethod
    def data(page):
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                    page, re.S)[1])

    def part(self, *inputs):
        return self.data(self.page(*inputs))["parts"][0]

    @staticmethod
    def column(trace, name, code):
        raw = base64.b64decode(trace["columns"][name])
        return [value for value, in struct.iter_unpack("<" + code, raw)]


class Content(ReportTest):
    def run_with_trace(self):
        run = json.loads(self.weir(*RUN, "--trace", self.path("trace.json"), "--json"))
        self.write("run.json", json.dumps(run))
        with open(self.path("trace.json"), encoding="utf-8") as file:
            return run, json.load(file)

    def test_columns_are_the_recording(self):
        _, recording = self.run_with_trace()
        slices = [event for event in recording["traceEvents"] if event["ph"] == "X"]
        trace = self.part(self.path("run.json"))["trace"]
        self.assertEqual(trace["count"], len(slices))
        self.assertEqual(trace["tick_ns"], 1)
        for column, values in (
                ("started", [event["ts"] for event in slices]),
                ("duration", [event["dur"] for event in slices]),
                ("enqueued", [event["args"]["enqueued_us"] for event in slices]),
                ("ready", [event["args"]["ready_us"] for event in slices])):
            self.assertEqual(self.column(trace, column, "I"),
                             [round(1e3 * value) for value in values], column)
        self.assertEqual([trace["names"][i] for i in self.column(trace, "name", "I")],
                         [event["name"] for event in slices])
        self.assertEqual([trace["streams"][i] for i in self.column(trace, "stream", "I")],
                         [event["args"]["stream"] for event in slices])
        for kind, event in zip(self.column(trace, "kind", "B"), slices, strict=True):
            expected = event["name"] if event["cat"] == "transfer" else event["cat"]
            self.assertEqual(KINDS[kind], expected)

    def test_figures_are_those_of_the_library(self):
        run, _ = self.run_with_trace()
        ours, theirs = self.part(self.path("run.json"))["trace"]["analysis"], run["overlap"]
        for name, their_name in (("measured_s", "measured_s"), ("compute_s", "compute_s"),
                                 ("transfer_s", "transfer_s"), ("hidden_s", "hidden_s"),
                                 ("ideal_s", "ideal_s"), ("critical_s", "critical_path_s")):
            self.assertAlmostEqual(ours[name], theirs[their_name], delta=2e-9, msg=name)

    def test_critical_path_is_the_longest_chain(self):
        events = [slice_of("a", 2, 0, 3), arrow("s", 1, 2, 3), slice_of("b", 3, 0, 4),
                  arrow("s", 2, 3, 4), slice_of("c", 2, 5, 2), arrow("f", 1, 2, 5),
                  slice_of("d", 3, 5, 2), arrow("f", 2, 3, 5), slice_of("e", 2, 8, 5)]
        trace = self.part(self.recording(events, ("p0", "p1")))["trace"]
        names = [trace["names"][i] for i in self.column(trace, "name", "I")]
        self.assertEqual([names[i] for i in self.column(trace, "critical", "I")], ["b", "d"])
        self.assertAlmostEqual(trace["analysis"]["critical_s"], 6e-6)

    def findings(self, events, rows):
        analysis = self.part(self.recording(events, rows))["trace"]["analysis"]
        return "\n".join(finding["words"] for finding in analysis["findings"])

    def test_findings_are_in_words(self):
        copies = [slice_of("h2d", 4, 10 * i, 5, "transfer") for i in range(4)]
        kernels = [slice_of("k", 2, 10 * i + 4, 5) for i in range(4)]
        events = sorted(copies + kernels + [slice_of("k", 3, 4, 8)], key=lambda each: each["ts"])
        said = self.findings(events, ("d/p0", "d/p1", "d in"))
        # Of 20 us of copies four are beside kernels, and two beside the one on the other place.
        self.assertIn("copies hidden 30 %; try 2 streams", said)
        self.assertIn("2 of 2 places idle 49 % of the time or more", said)
        self.assertIn("the busiest place works 1.43 times as long as the mean", said)

    def test_good_recordings_are_praised(self):
        events = [slice_of("k", 2, 0, 100), slice_of("d2h", 3, 10, 5, "transfer")]
        said = self.findings(events, ("d/p0", "d out"))
        self.assertIn("copies hidden 100 %\n", said + "\n")
        self.assertIn("no place is idle", said)

    def test_what_never_ran_is_no_place(self):
        cancelled = slice_of("k", 3, 100, 0)
        cancelled["args"]["status"] = "cancelled"
        recording = self.recording([slice_of("k", 2, 0, 100), cancelled], ("d/p0", "sync"))
        analysis = self.part(recording)["trace"]["analysis"]
        self.assertEqual([each["name"] for each in analysis["resources"]], ["d/p0"])
        self.assertEqual(analysis["failed"], 1)
        self.assertIn("no place is idle", "".join(each["words"] for each in analysis["findings"]))

    def test_needs_nothing_else(self):
        self.run_with_trace()
        page = self.page(self.path("run.json"))
        self.assertNotRegex(page, r'(?i)\b(src|href)\s*=|@import|url\(|fetch\(|XMLHttp')
        self.assertEqual(set(re.findall(r"https?://[\w./]+", page)), {"http://www.w3.org/2000/svg"})

    def test_text_cannot_leave_the_data(self):
        evil = "</script><script>document.title=1//"
        page = self.page(self.recording([slice_of(evil)]))
        self.assertNotIn(evil, page)
        self.assertEqual(self.data(page)["parts"][0]["trace"]["names"], [evil])

    def test_both_formats_say_the_same(self):
        """Virtual time: two runs are the same."""
        traces = []
        for name in ("t.json", "t.pftrace"):
            self.weir(*RUN, "--trace", self.path(name))
            os.rename(self.path(name), self.path("recording"))  # the contents decide, not the name
            traces.append(self.data(self.page(self.path("recording")))["parts"][0]["trace"])
        self.assertGreater(traces[0]["count"], 20)
        self.assertGreater(traces[0]["analysis"]["critical_s"], 0)
        self.assertEqual(traces[0], traces[1])

    def test_a_run_names_its_recording_in_either_format(self):
        run = self.weir(*RUN, "--trace", self.path("t.pftrace"), "--json")
        page = self.page(self.write("run.json", run))
        self.assertGreater(self.data(page)["parts"][0]["trace"]["count"], 20)

    def test_ranks_have_files_of_their_own(self):
        for variable in ("WEIR_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"):
            result = weir(*RUN, "--trace", self.path(f"{variable}.json"), **{variable: "1"})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"{variable}.rank1.json", os.listdir(self.folder))
            self.assertNotIn(f"{variable}.json", os.listdir(self.folder))

    def test_so_have_those_of_srun_that_trace_by_themselves(self):
        result = weir(*RUN, WEIR_TRACE=self.path("own.json"), SLURM_PROCID="2")
        self.assertEqual(result.returncode, 0, result.stderr)
        names = os.listdir(self.folder)
        self.assertTrue(any(name.startswith("own.rank2.") for name in names), names)
        self.assertNotIn("own.json", names)

    def test_run_makes_it_in_one_go(self):
        for options in ((), ("--trace", self.path("t.json")), ("--trace", self.path("t.pftrace"))):
            before = set(os.listdir(self.folder))
            output = self.weir(*RUN, "--report", self.path("run.html"), *options)
            self.assertIn("run.html", output)
            made = set(os.listdir(self.folder)) - before - {"run.html"}
            self.assertEqual(made, {os.path.basename(name) for name in options[1:]})
            with open(self.path("run.html"), encoding="utf-8") as file:
                part = self.data(file.read())["parts"][0]
            self.assertEqual(part["facts"]["app"], "cholesky")
            self.assertIn("--report", part["facts"]["command"])
            self.assertGreater(part["trace"]["count"], 20)


class BadInput(ReportTest):
    def refuse(self, *words, code=BAD_INPUT):
        def check(*arguments):
            result = weir("report", *arguments, "-o", self.path("page.html"))
            self.assertEqual((result.returncode, result.stdout), (code, ""))
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)
            self.assertFalse(os.path.exists(self.path("page.html")))
        return check

    def test_files_that_are_something_else(self):
        for name, text in (("a.json", ""), ("b.json", "hello"), ("c.json", "{}"),
                           ("d.json", '{"schema":1}'), ("e.json", '{"traceEvents":[]}')):
            self.refuse(name)(self.write(name, text))
        self.refuse("nowhere.json")(self.path("nowhere.json"))
        self.refuse("directory")(self.folder)

    def test_recordings_that_are_broken(self):
        event = json.dumps(slice_of())
        for text in (HEAD, HEAD + event, HEAD + event[:-9], HEAD + '{"ph":"X","ts":-1}]}',
                     HEAD + '{"ph":"X","ts":1e300}]}', HEAD + '{"ph":"X","ts":nan}]}',
                     HEAD + '{"ph":"s","id":99999999999999,"tid":1}]}', HEAD + '["x"]]}',
                     HEAD + '{"ph":"X","args":{"bytes":"many"}}]}', HEAD + '{"ph":{"a":[[['):
            self.refuse("broken.json", "byte")(self.write("broken.json", text))

    def test_recordings_of_perfetto_that_are_broken(self):
        self.weir(*RUN, "--trace", self.path("t.pftrace"))
        with open(self.path("t.pftrace"), "rb") as file:
            good = file.read()
        second = 3 + good[1] + 128 * (good[2] if good[1] > 127 else 0)
        refused = 0
        for bad in (*(good[:len(good) * i // 37] for i in range(1, 37)),
                    *(good[:at] + b"\xff" * 9 + good[at + 9:] for at in range(400, 4000, 150)),
                    good[:second] + good[second:].replace(b"\x48\x01", b"\x48\x02")):
            with open(self.path("bad"), "wb") as file:
                file.write(bad)
            result = weir("report", self.path("bad"), "-o", self.path("page.html"))
            self.assertIn(result.returncode, (0, BAD_INPUT), result.stderr)
            if result.returncode == BAD_INPUT:
                refused += 1
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn("bad: ", result.stderr)
        self.assertGreater(refused, 20)

    def test_no_input(self):
        self.refuse(code=USAGE)()

    def test_output_in_no_folder(self):
        recording = self.recording([slice_of()])
        result = weir("report", recording, "-o", self.path("no/page.html"))
        self.assertEqual(result.returncode, BAD_INPUT)
        result = weir(*RUN, "--report", self.path("no/page.html"))
        self.assertEqual(result.returncode, BAD_INPUT)

    def test_a_page_that_cannot_be_written_costs_no_results(self):
        os.mkdir(self.path("folder"))
        result = weir(*RUN, "--report", self.path("folder"))
        self.assertEqual(result.returncode, 0)
        self.assertIn("cholesky", result.stdout)
        self.assertIn("the report is not written", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["folder"])

    def test_an_empty_recording_says_so(self):
        analysis = self.part(self.recording([]))["trace"]["analysis"]
        self.assertEqual([each["words"] for each in analysis["findings"]],
                         ["the recording holds no actions"])


@unittest.skipUnless(shutil.which("chromium"), "chromium is not installed")
class Browser(ReportTest):
    def chromium(self, *arguments):
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                   f"--user-data-dir={self.path('profile')}", "--window-size=1400,1600",
                   "--virtual-time-budget=10000", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def dom(self, part=""):
        result = self.chromium("--dump-dom", f"file://{self.path('page.html')}{part}")
        self.assertIn('data-ready="yes"', result.stdout, result.stderr)
        return result.stdout

    @staticmethod
    def shown(dom):
        return int(re.search(r'id="status" data-shown="(\d+)"', dom)[1])

    def test_shows_all_and_a_part(self):
        events = [slice_of(f"k {i}", 2 + i % 2, 10 * i, 8, stream=f"d/p{i % 2}/s0")
                  for i in range(1000)]
        self.page(self.recording(events, ("d/p0", "d/p1")))
        dom = self.dom()
        self.assertEqual(self.shown(dom), 1000)
        for word in ("Findings", "Overlap", "Places and links", "Timeline", "To reproduce",
                     "weir report"):
            self.assertIn(word, dom)
        self.assertEqual(self.shown(self.dom("#0.5-0.6")), 100)
        self.assertEqual(self.shown(self.dom("#0.5-0.6,places,critical")), 100)

    def test_sweeps_and_benchmarks(self):
        inputs, times = [], []
        for places in ("1", "2"):
            for tile in ("128", "256"):
                name = f"run{places}-{tile}.json"
                inputs.append(self.write(name, self.weir(
                    "run", "matmul", "--n", "512", "--tile", tile, "--domains", CARD, "--places",
                    places, "--repeat", "1", "--json")))
                with open(inputs[-1], encoding="utf-8") as file:
                    times.append(json.load(file)["seconds"]["median"])
        for bench in ("transfers", "overlap", "spatial", "overhead"):
            options = ("--actions", "2") if bench == "overhead" else ()
            inputs.append(self.write(bench + ".json", self.weir(
                "bench", bench, "--domains", CARD, "--json", *options)))
        self.page(*inputs)
        dom = self.dom()
        heat = re.search(r'<section id="heatmap">(.*?)</section>', dom, re.S)[1]
        self.assertEqual(heat.count('class="cell'), 4)
        self.assertEqual(heat.count('class="cell best"'), times.count(min(times)))
        self.assertEqual(dom.count("<svg"), 1 + 1 + 3)
        self.assertEqual(len(re.findall(r"<polyline", dom)), 4 + 4 + 2 * 3)

    def test_draws_a_pipeline(self):
        self.weir("run", "reyes", "--width", "320", "--height", "240", "--repeat", "1", "--report",
                  self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            graph = self.data(file.read())["parts"][0]["facts"]["pipeline"]
        dom = self.dom()
        drawn = re.search(r'<section id="pipeline0">(.*?)</section>', dom, re.S)[1]
        self.assertEqual(len(re.findall(r'<g class="stage', drawn)), len(graph["stages"]))
        marked = re.findall(r'<g class="stage bottleneck">.*?</g>', drawn, re.S)
        self.assertEqual(len(marked), 1)
        self.assertIn(f">{graph['bottleneck']}</text>", marked[0])
        arrows = sum(len(stage["outputs"]) for stage in graph["stages"])
        self.assertEqual(len(re.findall(r'<path [^>]*class="tunnel"', drawn)), arrows)
        for stage in graph["stages"]:
            self.assertIn(f"{stage['put' if stage['source'] else 'items']:,} items", drawn)
        said = re.search(r'<section id="findings">(.*?)</section>', dom, re.S)[1]
        self.assertIn(graph["findings"][0]["words"], html.unescape(said))

    def test_draws_a_pipeline_without_a_recording(self):
        run = self.weir("run", "reyes", "--width", "64", "--height", "48", "--repeat", "1", "--json")
        self.page(self.write("run.json", run))
        drawn = re.search(r'<section id="pipeline0">(.*?)</section>', self.dom(), re.S)[1]
        words = json.loads(run)["pipeline"]["findings"][0]["words"]
        self.assertIn(words, html.unescape(drawn))

    def test_takes_a_picture(self):
        self.weir(*RUN, "--report", self.path("page.html"))
        self.chromium(f"--screenshot={self.path('page.png')}", f"file://{self.path('page.html')}")
        with open(self.path("page.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
