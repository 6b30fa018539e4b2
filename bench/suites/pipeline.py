"""Pipelines: items and tasks a second, and what the end costs, beside oneTBB, moodycamel and, where its
headers are, Taskflow."""

import os

from harness.command import Command, Figure
from harness.row import Row, at_least, at_most, ratio_at_least


def groups(quick):
    """Rows that are measured together, round by round."""
    works = ((0, 40.0, 80.0), (200, 9.6, 10.7))  # ns of work; targets: linear, recursive
    return [linear(work, target) + recursive(work, tasks) for work, target, tasks in works] + [
        end_latency() + silence() + relief() + [one_core(), counting(), borrowing()]]


def weir(*words):
    return Figure(Command.of("pipeline_weir", *words))


def tbb(*words):
    return Figure(Command.of("pipeline_tbb", *words))


def moodycamel(*words):
    return Figure(Command.of("pipeline_moodycamel", *words))


def taskflow(*words):
    return Figure(Command.of("pipeline_taskflow", *words))


def linear(work, target):
    few = ("--items", 400_000 if work == 0 else 200_000)  # for those that take long: a rate is a rate
    peers = (
        ("items", tbb("linear", "--work", work, "--chunk", 1, *few),
         "oneTBB parallel_pipeline, by item"),
        ("chunks", tbb("linear", "--work", work, "--chunk", 64),
         "oneTBB parallel_pipeline, in chunks of 64"),
        ("a graph", tbb("graph-linear", "--work", work, *few),
         "oneTBB flow graph, limiter of 64"),
        ("Taskflow", taskflow("linear", "--work", work, *few), "Taskflow Pipeline, 8 lines"),
        ("queues", moodycamel("linear", "--work", work), "moodycamel, by hand, batches of 64"))
    return [Row(f"linear, {work} ns of work, against {against}", "M items/s",
                weir("linear", "--work", work), peer, name, at_least(target))
            for against, peer, name in peers]


def recursive(work, target):
    peers = (
        ("a feeder", tbb("recursive", "--work", work), "oneTBB parallel_for_each, feeder"),
        ("a graph", tbb("graph-recursive", "--work", work), "oneTBB flow graph, a node in a loop"),
        ("tasks", taskflow("recursive", "--work", work), "Taskflow, tasks that start tasks"),
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
                ("lines", taskflow("end"), "Taskflow Pipeline, 8 lines"),
                ("queues", moodycamel("end"), "moodycamel, by hand, threads are joined"))] + [
                    Row("end after the last item, of a thread that sleeps in wait()", "us",
                        weir("end-of-wait"))]


def silence():
    return [Row(f"processor time of 20 ms of silence, against {against}", "us", weir("bubble"), peer,
                name, at_most(200))
            for against, peer, name in (
                ("a pipeline", tbb("bubble"), "oneTBB parallel_pipeline, its source waits"),
                ("a queue", moodycamel("bubble"), "moodycamel, a thread that blocks"))]


def relief():
    return [Row(f"{verb}, no work, relief {name}", f"M {what}/s", weir(verb, "--relief", number))
            for verb, what in (("linear", "items"), ("recursive", "tasks"))
            for number, name in enumerate(("both", "warp", "off"))]


def one_core():
    core = min(os.sched_getaffinity(0))

    def pinned(*words):
        return Figure(Command("pipeline_weir", words, under=("taskset", "-c", str(core))))

    return Row("linear, 200 ns of work, one worker on one core", "M items/s",
               pinned("linear", "--work", "200", "--workers", "1"), pinned("loop", "--work", "200"),
               "a loop over the items", ratio_at_least(1 / 1.3))


def borrowing():
    def threads(number):
        return Figure(Command.of("hiway_weir", "--threads", number))

    return Row("recursive by the verbs of HiWayLib, 2 workers, 8 threads", "M tasks/s", threads(8),
               threads(2), "2 threads", ratio_at_least(1 / 1.5))


def counting():
    return Row("counting an item, in batches of 64", "ns", Figure(Command.of("counting_weir")),
               target=at_most(0.5))
