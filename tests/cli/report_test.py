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

    def test_columns_of_the_page_equal_the_events_of_the_recording(self):
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
            direction, _, buffer = event["name"].partition(" ")
            expected = direction if event["cat"] == "transfer" else event["cat"]
            self.assertEqual(KINDS[kind], expected)
            if event["cat"] == "transfer":
                self.assertEqual(buffer, "A")

    def test_figures_of_the_page_equal_those_of_the_run(self):
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

    def test_findings_state_hidden_copies_and_idle_places_in_percent(self):
        copies = [slice_of("h2d", 4, 10 * i, 5, "transfer") for i in range(4)]
        kernels = [slice_of("k", 2, 10 * i + 4, 5) for i in range(4)]
        events = sorted(copies + kernels + [slice_of("k", 3, 4, 8)], key=lambda each: each["ts"])
        said = self.findings(events, ("d/p0", "d/p1", "d in"))
        # Of 20 us of copies four are beside kernels, and two beside the one on the other place.
        self.assertIn("copies hidden 30 %\n", said)
        self.assertIn("2 of 2 places idle 49 % of the time or more", said)

    def test_a_good_recording_shows_hidden_copies_and_no_idle_place(self):
        events = [slice_of("k", 2, 0, 100), slice_of("d2h", 3, 10, 5, "transfer")]
        said = self.findings(events, ("d/p0", "d out"))
        self.assertIn("copies hidden 100 %\n", said + "\n")
        self.assertIn("no place is idle", said)

    def test_a_recording_is_of_the_last_run(self):
        run = json.loads(self.weir(*RUN[:-1], "3", "--report", self.path("run.html"), "--json"))
        self.assertEqual(run["seconds"]["recorded"], run["seconds"]["samples"][-1])
        with open(self.path("run.html"), encoding="utf-8") as file:
            part = self.data(file.read())["parts"][0]
        self.assertAlmostEqual(part["trace"]["analysis"]["measured_s"], run["seconds"]["recorded"],
                               delta=2e-9)

    def test_a_row_with_only_cancelled_actions_is_not_a_place(self):
        cancelled = slice_of("k", 3, 100, 0)
        cancelled["args"]["status"] = "cancelled"
        recording = self.recording([slice_of("k", 2, 0, 100), cancelled], ("d/p0", "sync"))
        analysis = self.part(recording)["trace"]["analysis"]
        self.assertEqual([each["name"] for each in analysis["resources"]], ["d/p0"])
        self.assertEqual(analysis["failed"], 1)
        self.assertIn("no place is idle", "".join(each["words"] for each in analysis["findings"]))

    def test_the_page_loads_nothing_from_elsewhere(self):
        self.run_with_trace()
        page = self.page(self.path("run.json"))
        self.assertNotRegex(page, r'(?i)\b(src|href)\s*=|@import|url\(|fetch\(|XMLHttp')
        self.assertEqual(set(re.findall(r"https?://[\w./]+", page)), {"http://www.w3.org/2000/svg"})

    def test_markup_in_a_recording_is_escaped_in_the_page(self):
        evil = "</script><script>document.title=1//"
        page = self.page(self.recording([slice_of(evil)]))
        self.assertNotIn(evil, page)
        self.assertEqual(self.data(page)["parts"][0]["trace"]["names"], [evil])

    def test_json_and_perfetto_recordings_give_the_same_data(self):
        """Virtual time: two runs are the same."""
        traces = []
        for name in ("t.json", "t.pftrace"):
            self.weir(*RUN, "--trace", self.path(name))
            os.rename(self.path(name), self.path("recording"))  # the contents decide, not the name
            traces.append(self.data(self.page(self.path("recording")))["parts"][0]["trace"])
        self.assertGreater(traces[0]["count"], 20)
        self.assertGreater(traces[0]["analysis"]["critical_s"], 0)
        self.assertEqual(traces[0], traces[1])

    def test_a_run_names_its_recording_in_the_perfetto_format(self):
        run = self.weir(*RUN, "--trace", self.path("t.pftrace"), "--json")
        page = self.page(self.write("run.json", run))
        self.assertGreater(self.data(page)["parts"][0]["trace"]["count"], 20)

    def test_trace_names_contain_the_rank_of_every_known_launcher(self):
        for variable in ("WEIR_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"):
            result = weir(*RUN, "--trace", self.path(f"{variable}.json"), **{variable: "1"})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"{variable}.rank1.json", os.listdir(self.folder))
            self.assertNotIn(f"{variable}.json", os.listdir(self.folder))

    def test_names_of_weir_trace_contain_the_rank_of_srun(self):
        result = weir(*RUN, WEIR_TRACE=self.path("own.json"), SLURM_PROCID="2")
        self.assertEqual(result.returncode, 0, result.stderr)
        names = os.listdir(self.folder)
        self.assertTrue(any(name.startswith("own.rank2.") for name in names), names)
        self.assertNotIn("own.json", names)

    def test_run_writes_the_report_and_only_the_traces_that_were_asked_for(self):
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


def kernel(start, duration, row=2, *, enqueued=0.0, ready=None, stream="a", cores=1, of=1):
    made = slice_of("k", row, start, duration, stream=stream)
    made["args"].update(enqueued_us=enqueued, ready_us=start if ready is None else ready)
    if of > 1:
        made["args"].update(cores=cores, place_cores=of)
    return made


def copy(start, duration, row=3, *, enqueued=0.0, ready=None, stream="a", name="h2d"):
    made = slice_of(name, row, start, duration, "transfer", stream)
    made["args"].update(enqueued_us=enqueued, ready_us=start if ready is None else ready)
    return made


def alternating(stream, rounds=5):
    """Copies that wait for the kernels before them, and are not hidden; times in us."""
    return [action for at in range(0, 300 * rounds, 300)
            for action in (copy(at, 150, ready=at, stream=stream(at // 300)),
                           kernel(at + 150, 150, stream=stream(at // 300)))]


ONE_PLACE = ("d/p0", "d in", "d out")
TWO_PLACES = ("d/p0", "d/p1")

#: What a recording shows, and the one sentence that an expert would say of it.
SITUATIONS = {
    "kernels fill the cores": (
        ONE_PLACE, [kernel(0, 960), copy(10, 50)],
        "kernels fill 100 % of the cores' time: only faster kernels or more cores gain more"),
    "kernels nearly fill the cores": (
        ONE_PLACE, [copy(0, 120, name="h2d x"), kernel(120, 880, ready=120)],
        "kernels fill 88 % of the cores' time; copies that no kernel hides take 12 % of the time, 100 % "
        "of it before the first kernel: smaller actions overlap copies with kernels; 1 transfer of 'x', "
        "8 B, takes 100 % of the time of all transfers"),
    "a place waits for copies while another computes": (
        (*TWO_PLACES, "d in"), [action for at in range(0, 1000, 100) for action in
                                (kernel(at, 100), copy(at, 80, 4, name="h2d the grid"),
                                 kernel(at + 80, 20, 3))],
        "40 % of the cores' time is idle while copies move data to or from them: fewer bytes, or more "
        "work on them, gain most; 10 transfers of 'the grid', 8 B each, take 100 % of the time of all "
        "transfers"),
    "a place waits for nothing while another computes": (
        (*TWO_PLACES, "d in"), [action for at in range(0, 1000, 100) for action in
                                (kernel(at, 100), copy(at, 20, 4), kernel(at + 80, 20, 3))],
        "40 % of the cores' time is idle while kernels run, as the busiest place works 1.67 times as "
        "long as the mean: smaller actions share more evenly"),
    "a link is full": (
        ONE_PLACE, [copy(100 * i, 100, ready=0) for i in range(9)] +
        [kernel(100 * i + 100, 22) for i in range(9)],
        "link d in is busy 98 % of the time, and transfers take 4.5 times as long as kernels: only "
        "fewer bytes or a faster link gain more"),
    "copies outweigh kernels": (
        ONE_PLACE, [copy(0, 500), kernel(500, 200), copy(700, 400, 4, name="d2h")],
        "copies that no kernel hides take 82 % of the time, 100 % of it before the first kernel and "
        "after the last, and transfers take 4.5 times as long as kernels: fewer bytes, or more work "
        "on them, gain most"),
    "kernels wait for the first copy": (
        ONE_PLACE, [copy(0, 400), kernel(400, 300, ready=400), kernel(700, 50)],
        "copies that no kernel hides take 53 % of the time, 100 % of it before the first kernel, and "
        "transfers take 1.1 times as long as kernels: smaller actions overlap copies with kernels"),
    "all results leave at the end": (
        ONE_PLACE, [kernel(0, 300), copy(300, 310, 4, ready=300, name="d2h")],
        "copies that no kernel hides take 51 % of the time, 100 % of it after the last kernel: "
        "smaller actions overlap copies with kernels"),
    "one stream, in turn": (
        ONE_PLACE, alternating(lambda _: "a"),
        "copies that no kernel hides take 50 % of the time: they come after the kernels before, in "
        "the same memory or stream; a second stream, with memory of its own, hides them"),
    "two streams, in turn": (
        ONE_PLACE, alternating(lambda i: "ab"[i % 2]),
        "copies that no kernel hides take 50 % of the time: they come after the kernels before, in "
        "the same memory or stream; other memory for the next copies hides them"),
    "a task queue, in turn": (
        ONE_PLACE, alternating(lambda _: "tasks/d/p0"),
        "copies that no kernel hides take 50 % of the time: they come after the kernels before, in "
        "the same memory or stream"),
    "copies that are enqueued too late": (
        ONE_PLACE, [action for at in range(0, 1500, 300)
                    for action in (copy(at, 150, enqueued=at), kernel(at + 150, 150, enqueued=at))],
        "copies that no kernel hides take 50 % of the time: the program enqueues kernels only when "
        "those before have ended; enqueue ahead, without waiting in between"),
    "kernels that are enqueued too late": (
        ONE_PLACE, [kernel(at, 100, enqueued=at) for at in range(0, 1500, 300)],
        "nothing runs 62 % of the time, as no action is ready: enqueue ahead, without waiting in "
        "between"),
    "starting takes longer than running": (
        ONE_PLACE, [kernel(10 * i + 7, 3, ready=10 * i) for i in range(50)],
        "nothing runs 70 % of the time while actions are ready to start: 7 us for each kernel, which "
        "takes 3 us; larger actions start less often"),
    "one kernel that starts for longer than it runs": (
        ONE_PLACE, [kernel(7, 3, ready=0)],
        "nothing runs 70 % of the time while actions are ready to start: 7 us for each kernel, which "
        "takes 3 us"),
    "one kernel that starts for much longer": (
        ONE_PLACE, [kernel(1470, 3, ready=0)],
        "nothing runs 100 % of the time while actions are ready to start: 1470 us for each kernel, "
        "which takes 3 us"),
    "a chain": (
        ("d/p0 core 0",), [event for i in range(6) for event in
                           [kernel(100 * i, 100, of=4)] + ([arrow("f", i, 2, 100 * i)] if i else []) +
                           [arrow("s", i + 1, 2, 100 * i + 100)]],
        "75 % of the cores' time is idle while kernels run, as the longest chain of dependent actions "
        "is 100 % of the time; more cores do not help: smaller actions shorten the chain"),
    "uneven places": (
        TWO_PLACES, [kernel(0, 600), kernel(0, 150, 3)],
        "38 % of the cores' time is idle while kernels run, as the busiest place works 1.60 times as "
        "long as the mean: smaller actions share more evenly"),
    "too few kernels": (
        ("d/p0 core 0", "d/p0 core 1"), [kernel(100 * i, 100, 2 + i % 2, of=10) for i in range(6)],
        "90 % of the cores' time is idle while kernels run, as 1.0 of 10 cores have a kernel on "
        "average: smaller actions give more of them work"),
    "kernels that are small already": (
        ("d/p0 core 0", "d/p0 core 1"), [kernel(10 * i, 10, 2 + i % 2, of=10) for i in range(60)],
        "90 % of the cores' time is idle while kernels run, as 1.0 of 10 cores have a kernel on "
        "average"),
    "a kernel that has all cores": (
        ("d/p0 core 0",), [kernel(0, 900, of=8, cores=8)],
        "kernels fill 100 % of the cores' time: only faster kernels or more cores gain more"),
    "only copies": (
        ONE_PLACE, [copy(0, 100), copy(100, 100)],
        "no kernel was recorded: copies keep the busiest link busy 100 % of the time"),
}


class Advice(ReportTest):
    """The first finding: what to look at, and what to do about it."""

    def findings(self, rows, events, facts=None):
        recording = self.recording(events, rows)
        if facts is not None:
            recording = self.write("run.json", json.dumps(
                {"schema": "weir.run/1", "app": "any", "trace": "trace.json", **facts}))
        return [each["words"] for each in self.part(recording)["trace"]["analysis"]["findings"]]

    def test_each_situation_gives_its_expected_advice(self):
        for name, (rows, events, words) in SITUATIONS.items():
            with self.subTest(name):
                found = self.findings(rows, sorted(events, key=lambda each: each["ts"])
                                      if name != "a chain" else events)
                self.assertEqual(found[0], words)
                for fact in found[1:]:
                    self.assertNotRegex(fact, "stream|smaller|larger|try|fewer")

    def test_long_transfers_are_named_even_where_idle_cores_cost_more(self):
        """Also where cores without work are the larger loss."""
        events = [action for at in range(0, 900, 100) for action in
                  (copy(at, 60), copy(at, 60, 4, name="d2h"), kernel(at, 99, of=50))]
        found = self.findings(("d/p0 core 0", "d in", "d out"), events)
        self.assertIn("cores' time is idle", found[0])
        self.assertEqual(found[1], "copies hidden 100 %, and transfers take 1.2 times as long as "
                                   "kernels")

    def test_advice_names_tiles_only_for_applications_with_tiles(self):
        rows, events, words = SITUATIONS["too few kernels"]
        tiles = {"params": {"tile": 64}, "streams": 2, "policy": None}
        self.assertEqual(self.findings(rows, events, tiles)[0], words.replace("actions", "tiles"))
        nothing = {"params": {"tile": 0}, "streams": None, "policy": None}
        self.assertEqual(self.findings(rows, events, nothing)[0], words.split(":")[0])

    def test_a_second_stream_is_advised_only_for_applications_with_streams(self):
        rows, events, _ = SITUATIONS["one stream, in turn"]
        for facts, is_said in (({"streams": 1, "policy": None}, True),
                               ({"streams": None, "policy": None}, False),
                               ({"streams": None, "policy": "finish"}, False)):
            with self.subTest(facts):
                found = "\n".join(self.findings(rows, events, {"params": {"tile": 4}, **facts}))
                self.assertEqual("a second stream" in found, is_said, found)

    def test_findings_of_a_pipeline_replace_those_of_the_recording(self):
        rows, events, _ = SITUATIONS["too few kernels"]
        self.assertEqual(self.findings(rows, events, {"pipeline": {"findings": []}}), [])

    def test_failed_actions_are_the_first_finding(self):
        events = [kernel(0, 100), kernel(100, 100)]
        events[1]["args"]["status"] = "kernel_error"
        self.assertEqual(self.findings(("d/p0",), events)[0],
                         "1 action failed, was poisoned or cancelled")
        events[0]["args"]["status"] = "poisoned"
        self.assertEqual(self.findings(("d/p0",), events)[0],
                         "2 actions failed, were poisoned or cancelled")

    def test_a_run_prints_its_first_finding(self):
        """Of recordings that virtual time makes the same each time."""
        card = "sim:clock=virtual,cores=8,gflops=16,kernels=skip"
        for arguments, words in (
                (("matmul", "--n", "2048", "--domains", card), "kernels fill 9\\d %"),
                (("dotproduct", "--n", "1000000", "--domains", card),
                 r"link sim:0 in is busy \d+ % .* transfers take \d+\.\d times as long as kernels"),
                (("cholesky", "--n", "1024", "--tile", "256", "--domains", card, "--kernels", "serial"),
                 "longest chain of dependent actions .*: smaller tiles"),
                (("cholesky", "--n", "1024", "--tile", "256", "--domains", card, "--policy", "finish",
                  "--kernels", "serial"),
                 "longest chain of dependent actions .*: smaller tiles")):
            with self.subTest(" ".join(arguments)):
                text = self.weir("run", *arguments, "--repeat", "1")
                self.assertRegex(text, r"\n  look at +[^\n]*" + words)
                self.assertNotRegex(text, r"look at[^\n]*stream")
                found = json.loads(self.weir("run", *arguments, "--repeat", "1", "--json"))["findings"]
                self.assertRegex(found[0]["words"], words)

    def test_output_of_runs_without_streams_does_not_mention_streams(self):
        for app, *options in (("wave", "--n", "32", "--steps", "3"), ("scatter", "--n", "1000")):
            said = self.weir("run", app, *options, "--repeat", "1", "--domains", "host:cores=1")
            self.assertNotIn("stream", said)


class Text(ReportTest):
    """What a terminal shows instead of the page."""

    def test_report_text_sums_up_a_recording_and_writes_no_page(self):
        rows, events, words = SITUATIONS["kernels nearly fill the cores"]
        said = self.weir("report", self.recording(events, rows), "--text")
        lines = [" ".join(line.split()) for line in said.splitlines()]
        for line in ("trace.json", "recorded 1.00 ms, 1.14 times the busiest place or link",
                     "kernels 1 in 880 us, 88 % of the cores' time",
                     "transfers 120 us, 0 % of it hidden", "longest chain 880 us, 88 % of the time",
                     "d/p0 88 % 1", "d in 12 % 1 8 B", "k 1 880 us 0 s", "h2d 1 120 us 0 s",
                     "- " + words, "- copies hidden 0 %"):
            self.assertIn(line, lines)
        self.assertFalse(os.path.exists(self.path("page.html")))

    def test_report_text_of_a_run_names_its_command(self):
        run = self.weir(*RUN, "--trace", self.path("t.pftrace"), "--json")
        said = self.weir("report", self.write("run.json", run), "--text")
        self.assertIn("weir run cholesky --n 512", said)
        self.assertRegex(said, r"\n  sim:0/p0 +\d+ % ")
        self.assertRegex(said, r"\n  potrf +\d+ ")
        bare = self.weir("report", self.write("bare.json", self.weir(*RUN, "--json")), "--text")
        self.assertIn("repeat the command with --trace FILE", bare)

    def test_text_together_with_an_output_page_is_refused(self):
        result = weir("report", self.path("t.json"), "--text", "-o", self.path("page.html"))
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("--text", result.stderr)


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

    def test_files_that_are_not_recordings_are_refused_by_name(self):
        for name, text in (("a.json", ""), ("b.json", "hello"), ("c.json", "{}"),
                           ("d.json", '{"schema":1}'), ("e.json", '{"traceEvents":[]}')):
            self.refuse(name)(self.write(name, text))
        self.refuse("nowhere.json")(self.path("nowhere.json"))
        self.refuse("directory")(self.folder)

    def test_broken_json_recordings_are_refused_with_the_byte(self):
        event = json.dumps(slice_of())
        for text in (HEAD, HEAD + event, HEAD + event[:-9], HEAD + '{"ph":"X","ts":-1}]}',
                     HEAD + '{"ph":"X","ts":1e300}]}', HEAD + '{"ph":"X","ts":nan}]}',
                     HEAD + '{"ph":"s","id":99999999999999,"tid":1}]}', HEAD + '["x"]]}',
                     HEAD + '{"ph":"X","args":{"bytes":"many"}}]}', HEAD + '{"ph":{"a":[[['):
            self.refuse("broken.json", "byte")(self.write("broken.json", text))

    def test_broken_perfetto_recordings_never_crash_and_most_are_refused(self):
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

    def test_report_without_a_file_is_refused(self):
        self.refuse(code=USAGE)()

    def test_a_report_in_a_missing_folder_is_refused(self):
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
        self.assertIn("cannot write the report", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["folder"])

    def test_an_empty_recording_is_reported_to_hold_no_actions(self):
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

    def test_the_browser_shows_all_actions_or_those_of_a_chosen_part(self):
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

    def test_the_browser_draws_a_heat_map_of_sweeps_and_curves_of_benchmarks(self):
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

    def test_the_browser_draws_stages_tunnels_and_bottleneck_of_a_pipeline(self):
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

    def test_the_browser_draws_a_pipeline_without_a_recording(self):
        run = self.weir("run", "reyes", "--width", "64", "--height", "48", "--repeat", "1", "--json")
        self.page(self.write("run.json", run))
        drawn = re.search(r'<section id="pipeline0">(.*?)</section>', self.dom(), re.S)[1]
        words = json.loads(run)["pipeline"]["findings"][0]["words"]
        self.assertIn(words, html.unescape(drawn))

    def test_the_browser_shows_which_run_is_recorded(self):
        for repeat, words in (("1", "one run"), ("4", "median of 3 runs; recorded and shown below: "
                                                 "the last one, ")):
            self.weir(*RUN[:-1], repeat, "--report", self.path("page.html"))
            head = html.unescape(re.search(r'<p id="where">(.*?)</p>', self.dom())[1])
            self.assertIn("2 places of each domain · 2 streams of each place · ", head)
            self.assertIn(words, head)

    def test_the_browser_renders_the_page_as_a_png(self):
        self.weir(*RUN, "--report", self.path("page.html"))
        self.chromium(f"--screenshot={self.path('page.png')}", f"file://{self.path('page.html')}")
        with open(self.path("page.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
