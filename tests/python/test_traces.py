"""Recordings: files, pages and figures."""

import json
import re

import numpy as np
import pytest
import weir

CARD = "sim:cores=1,clock=virtual,gbps=6"
kept = []  # the ends of streams and buffers are actions, too


def work(runtime, name="clear"):
    stream = runtime.domain().place(1, oversubscribe=True).stream()
    x = runtime.buffer(1000)
    stream.upload(x)
    stream.compute("mem.set", [weir.write(x)], [0], name=name)
    kept.extend([stream, x])
    return stream, x


def parts_of(page):
    """The data of a page: what it calls the recordings, and their actions."""
    text = page.read_text()
    assert text.lstrip().lower().startswith("<!doctype html>") and "@DATA@" not in text
    assert not re.search(r'(src|href)="https?://', text), "a page needs nothing else"
    return [(source, int(count)) for source, count in
            re.findall(r'"source":"([^"]*)".*?"count":(\d+)', text, re.DOTALL)]


def test_a_trace_page_holds_the_actions_of_one_runtime(tmp_path):
    page = tmp_path / "run.html"
    with weir.Runtime(CARD) as runtime:
        with runtime.trace(page) as trace:
            work(runtime)
        assert trace.summary["actions"] == 2
    assert parts_of(page) == [("run.html", 2)] and "clear" in page.read_text()
    assert list(tmp_path.iterdir()) == [page]
    assert "critical_path_s" in trace._repr_html_()


def test_a_trace_page_of_all_runtimes_holds_a_part_for_each(tmp_path):
    page = tmp_path / "all.html"
    with weir.Runtime(CARD) as before:
        work(before, "unseen")[0].synchronize()
        with weir.trace(page) as trace:
            work(before)
            with weir.Runtime("host:cores=1") as inside:
                work(inside)
                work(inside, "second")
            after = weir.Runtime(CARD)
            work(after)
        assert [each["actions"] for each in trace.summaries] == [4, 2, 2]
        after.close()
    assert parts_of(page) == [("all.html", 4), ("all.html, runtime 2", 2),
                              ("all.html, runtime 3", 2)]
    assert "second" in page.read_text() and "unseen" not in page.read_text()


@pytest.mark.parametrize("name", ["run.json", "run.pftrace"])
def test_other_formats_have_a_file_for_each_runtime(tmp_path, name):
    with weir.trace(tmp_path / name) as trace:
        for _ in range(2):
            with weir.Runtime(CARD) as runtime:
                work(runtime)
    stem, _, ending = name.partition(".")
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{stem}.2.{ending}", name]
    if ending == "json":
        assert "clear" in json.dumps(json.loads((tmp_path / "run.2.json").read_text()))
    assert [each["actions"] for each in trace.summaries] == [2, 2]


def test_a_trace_without_a_file_has_a_summary():
    with weir.trace() as trace:
        with weir.Runtime(CARD) as runtime:
            work(runtime)
    assert trace.summary["actions"] == 2 and trace.summary["transfer_s"] > 0


def test_a_long_place_name_cut_within_a_letter_is_readable():
    with weir.Runtime("host:cores=1") as runtime:
        x = runtime.wrap(np.arange(100_000.0)[::-1].copy())
        sort = runtime.kernel("sort", lambda part: part.sort())
        with runtime.trace() as trace:
            place = runtime.domain().place(name="\u00e9" * 40)
            place.stream().compute(sort, [weir.readwrite(x)]).wait()
    assert trace.summary["busiest_place"].startswith("\u00e9" * 31)


def test_a_failure_inside_a_trace_is_raised_and_recorded(tmp_path):
    page = tmp_path / "run.html"
    with weir.Runtime(CARD) as runtime:
        with pytest.raises(weir.KernelError, match="bad"), runtime.trace(page):
            stream, x = work(runtime)

            @runtime.kernel
            def bad(part):
                raise ValueError("bad")

            stream.compute(bad, [weir.readwrite(x)])
    assert parts_of(page) == [("run.html", 3)]


def test_a_trace_to_a_missing_folder_fails_and_an_empty_one_writes_no_file(tmp_path):
    with weir.Runtime(CARD) as runtime:
        with pytest.raises(weir.InvalidArgumentError, match="nowhere"):
            with runtime.trace(tmp_path / "nowhere" / "run.html"):
                work(runtime)
    with weir.trace(tmp_path / "nothing.html") as trace:
        pass
    assert trace.summary == {} and list(tmp_path.iterdir()) == []


def test_notebook_views_show_names_shapes_and_states():
    runtime = weir.Runtime("host:cores=1")
    x = runtime.wrap(np.zeros((3, 4)), "<x>")
    queue = runtime.queue(name="tasks")
    event = queue.submit("mem.set", [weir.write(x)], [0])
    queue.synchronize()
    assert "<table>" in runtime._repr_html_() and "host" in runtime._repr_html_()
    assert "&lt;x&gt;" in x._repr_html_() and "(3, 4)" in x._repr_html_()
    assert "tasks" in queue._repr_html_() and "<td>1</td>" in queue._repr_html_()
    assert "ok" in event._repr_html_()
    with runtime.pipeline() as pipeline:
        pipeline.stage(pipeline.tunnel("i4"), name="last", function=lambda items: None)
        assert "last" in pipeline._repr_html_()
    runtime.close()
    for closed in (runtime, queue):
        assert "closed" in closed._repr_html_()
