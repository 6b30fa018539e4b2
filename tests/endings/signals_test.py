"""SIGINT and SIGTERM at random moments of the tool.

Each time: the exit status is that of the signal, one line says what was stopped, a trace that was
asked for can be read, and no file, shared memory or process is left. A run that is stopped ends
within a second. Where others have the processors, that takes longer, so what counts is that it
uses no more of them than there are in a second, and waits no longer than ten.

usage: signals_test.py [--moments N] [--seed S] [--only I]

N is 60 by default, or WEIR_TEST_MOMENTS; 1000 take about ten minutes.
"""

import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys

from victim import ENDLESS, OTHERS, RUNS, Victim

RANKS = 3
LIMIT = 10  # of seconds until the end, with whatever else the machine does
A_SECOND = float(len(os.sched_getaffinity(0)))  # of all processors
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Moment:
    """What happens at one moment, decided by the seed and the number of the moment alone."""

    def __init__(self, seed, number):
        choice = random.Random(f"{seed}/{number}")
        runs = {**RUNS, **OTHERS}
        self.name = list(runs)[number % len(runs)]
        self.arguments = runs[self.name]
        self.signal = choice.choice(SIGNALS)
        suffix = choice.choice((None, "json", "pftrace"))
        self.trace = f"t.{suffix}" if suffix and self.name in RUNS else None
        self.delay = choice.choice((choice.uniform(0, 0.05), choice.uniform(0, 0.6)))
        self.again = choice.uniform(0, 0.2) if choice.random() < 0.1 else None

    def __str__(self):
        again = f" and {self.again:.3f} s later" if self.again is not None else ""
        return f"{self.name}: {self.signal.name} after {self.delay:.3f} s{again}"


class Result:
    ready = stopped = early = traces = actions = 0

    def __init__(self):
        self.seconds = []  # until the end, of each
        self.used = []     # of processor time until then


def try_moment(moment, result):
    with Victim(moment.arguments, moment.trace) as victim:
        victim.live(moment.delay)
        before = victim.used()
        victim.process.send_signal(moment.signal)
        if moment.again is not None:
            victim.live(moment.again)
            victim.process.send_signal(moment.signal)
        seconds, message = victim.end(LIMIT)
        status = victim.process.returncode
        used = victim.used() - before
        actions = victim.check_remains()
        assert used <= A_SECOND, f"{used:.2f} s of processor time until the end: {message!r}"
        result.seconds.append(seconds)
        result.used.append(used)
        if status in (-moment.signal, 128 + moment.signal) and not message.count("stopped by"):
            # Before main(), or in the last words: a shell sees the same status.
            assert status == -moment.signal, f"status {status} without a word: {message!r}"
            result.early += 1
            return
        if status in (0, 1) and moment.name in OTHERS:
            result.ready += 1  # before the signal came
            return
        assert status == 128 + moment.signal, f"exit status {status}: {message!r}"
        pattern = rf"weir: stopped by {moment.signal.name}(: [^\n]+)?\n"
        assert re.fullmatch(pattern, message), f"not one line: {message!r}"
        result.stopped += 1
        if "the completed actions are in" in message:
            assert actions is not None, f"there is no trace: {message!r}"
            result.traces += 1
            result.actions += actions


def check_ignored():
    """A program started with SIGINT ignored, as by nohup or in the background, ignores it."""
    ignore = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        victim = Victim(RUNS["host"], "t.json", {"WEIR_LOG": "info"})
    finally:
        signal.signal(signal.SIGINT, ignore)
    with victim:
        assert "BLAS" in victim.process.stderr.readline(), "the run has not begun"
        victim.process.send_signal(signal.SIGINT)
        victim.live(1)
        assert victim.process.poll() is None, f"SIGINT ended it: {victim.process.returncode}"
        victim.process.send_signal(signal.SIGTERM)
        victim.end(LIMIT)
        assert victim.process.returncode == 128 + signal.SIGTERM, victim.process.returncode
        assert victim.check_remains() is not None


def check_ranks():
    """A signal for the process that has started ranks is one for them, and they end first."""
    with Victim(("run", "scatter", "--n", "100000", *ENDLESS, "--ranks", str(RANKS))) as victim:
        pid = victim.process.pid
        started = []
        while len(started) < RANKS and victim.process.poll() is None:
            victim.live(0.01)
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                started = children.read().split()
        victim.process.send_signal(signal.SIGTERM)
        _, message = victim.end(LIMIT)
        assert victim.process.returncode == 128 + signal.SIGTERM, victim.process.returncode
        assert "weir: stopped by SIGTERM\n" in message, message
        victim.check_remains()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=int(os.environ.get("WEIR_TEST_MOMENTS", 60)))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    result = Result()
    numbers = range(options.moments) if options.only is None else (options.only,)
    for number in numbers:
        moment = Moment(options.seed, number)
        try:
            try_moment(moment, result)
        except (AssertionError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            print(f"{moment}: {error}\nagain: WEIR_TOOL={os.environ['WEIR_TOOL']} "
                  f"{sys.executable} {sys.argv[0]} --seed {options.seed} --only {number}")
            return 1
    if options.only is None:
        check_ignored()
        check_ranks()
        if options.moments >= 60:
            assert result.stopped > options.moments // 3, "hardly any run was stopped at work"
            assert result.actions > 0, "no trace has anything in it"
    print(f"proof: {len(result.seconds)} moments: {result.stopped} stopped at work, {result.early} "
          f"before main, {result.ready} over already; {result.traces} traces of {result.actions} "
          f"actions; ends after {statistics.median(result.seconds):.2f} s (median), "
          f"{max(result.seconds):.2f} s (slowest) and {max(result.used):.2f} s of processor time "
          f"(most; {A_SECOND:.0f} are in a second)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
