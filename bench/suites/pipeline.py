"""Pipelines: items and tasks a second, and what the end costs, beside oneTBB and moodycamel."""

from harness.command import Command, Figure
from harness.row import Row, at_least, at_most


def groups(quick):
    """Rows that are measured together, round by round."""
    works = ((0, 40.0, 80.0), (200, 9.6, 10.7))  # ns of work; targets: linear, recursive
    return [linear(work, target) + recursive(work, tasks) for work, target, tasks in works] + [
        end_latency() + silence() + [one_core()]]


def weir(*words):
    return Figure(Command.of("pipeline_weir", *words))


def tbb(*words):
    return Figure(Command.of("pipeline_tbb", *words))


def moodycamel(*words):
    return Figure(Command.of("pipeline_moodycamel", *words))


def linear(work, target):
    peers = (
        ("items", tbb("linear", "--work", work, "--chunk", 1), "oneTBB parallel_pipeline, by item"),
        ("chunks", tbb("linear", "--work", work, "--chunk", 64),
         "oneTBB parallel_pipeline, in chunks of 64"),
        ("a graph", tbb("graph-linear", "--work", work), "oneTBB flow graph, limiter of 64"),
        ("queues", moodycamel("linear", "--work", work), "moodycamel, by hand, batches of 64"))
    return [Row(f"linear, {work} ns of work, against {against}", "M items/s",
                weir("linear", "--work", work), peer, name, at_least(target))
            for against, peer, name in peers]


def recursive(work, target):
    peers = (
        ("a feeder", tbb("recursive", "--work", work), "oneTBB parallel_for_each, feeder"),
        ("a graph", tbb("graph-recursive", "--work", work), "oneTBB flow graph, a node in a loop"),
        ("a queue", moodycamel("recursive", "--work", work),
         "moodycamel, by hand, batches of 64, memory without bound"))
    return [Row(f"recursive, {work} ns of work, against {against}", "M tasks/s",
                weir("recursive", "--work", work), peer, name, at_least(target))
            for against, peer, name in peers]


def end_latency():
    return [Row(f"end after the last item, against {against}", "us", weir("end"), peer, name,
                at_most(5))
            for against, peer, name in (
                ("chunks", tbb("end", "--chunk", 64), "oneTBB parallel_pipeline, in chunks of 64"),
                ("queues", moodycamel("end"), "moodycamel, by hand, threads are joined"))]


def silence():
    return [Row(f"processor time of 20 ms of silence, against {against}", "us", weir("bubble"), peer,
                name, at_most(200))
            for against, peer, name in (
                ("a pipeline", tbb("bubble"), "oneTBB parallel_pipeline, its source waits"),
                ("a queue", moodycamel("bubble"), "moodycamel, a thread that blocks"))]


def one_core():
    return Row("linear, 200 ns of work, one worker", "M items/s",
               weir("linear", "--work", 200, "--workers", 1))
