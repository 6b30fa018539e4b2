"""Pipelines: items and tasks a second, and what the end costs, beside oneTBB."""

from harness.command import Command, Figure
from harness.row import Row, at_least, at_most


def groups(quick):
    """Rows that are measured together, round by round."""
    works = ((0, 40.0, 80.0), (200, 9.6, 10.7))  # ns of work; targets: linear, recursive
    return [
        [linear(work, target, chunk) for chunk in (1, 64)] + [recursive(work, tasks)]
        for work, target, tasks in works
    ] + [[end_latency(), bubble(), one_core()]]


def weir(*words):
    return Figure(Command.of("pipeline_weir", *words))


def tbb(*words):
    return Figure(Command.of("pipeline_tbb", *words))


def linear(work, target, chunk):
    peer = f"oneTBB parallel_pipeline, {'by item' if chunk == 1 else f'in chunks of {chunk}'}"
    return Row(f"linear, {work} ns of work, against {'items' if chunk == 1 else 'chunks'}",
               "M items/s", weir("linear", "--work", work),
               tbb("linear", "--work", work, "--chunk", chunk), peer, at_least(target))


def recursive(work, target):
    return Row(f"recursive, {work} ns of work", "M tasks/s", weir("recursive", "--work", work),
               tbb("recursive", "--work", work), "oneTBB parallel_for_each, feeder",
               at_least(target))


def end_latency():
    return Row("end after the last item", "us", weir("end"), tbb("end", "--chunk", 64),
               "oneTBB parallel_pipeline, in chunks of 64", at_most(5))


def bubble():
    return Row("processor time of 20 ms of silence", "us", weir("bubble"), target=at_most(200))


def one_core():
    return Row("linear, 200 ns of work, one worker", "M items/s",
               weir("linear", "--work", 200, "--workers", 1))
