"""kill -9 while traces and results are written.

A file appears under its name when it is complete: after each kill there is the file of before, or
a whole new one. Beside it there is nothing, except in the moment between link and rename: then a
whole file with a suffix.

usage: kills_test.py [--kills N] [--seed S]        N is 40 by default, or WEIR_TEST_KILLS
"""

import argparse
import os
import random
import signal
import sys

import victim
from traces import actions_of

LIMIT = 60
# Small actions, so that most of the time goes into writing; two of them every few milliseconds.
RUN = ("run", "cholesky", "--n", "1024", "--tile", "32", "--repeat", "1", "--domains",
       "sim:clock=virtual,gflops=10")
RESULT = "l.mtx"


def check_file(run, name, whole):
    """Returns whether there is a new file; it must be like the whole one."""
    path = os.path.join(run.folder, name)
    if os.path.getsize(path) == 0:
        return False  # that of before
    if name == RESULT:
        assert os.path.getsize(path) == whole[name], f"{name}: {os.path.getsize(path)} bytes"
    else:
        actions = actions_of(path)
        assert actions == whole[name], f"{name}: {actions} of {whole[name]} actions"
    return True


def start(trace):
    run = victim.Victim((*RUN, "--output", RESULT), trace)
    for name in (trace, RESULT):  # what was there before
        open(os.path.join(run.folder, name), "wb").close()
    return run


def learn(trace):
    """A run to its end: (seconds, what is in its files)."""
    with start(trace) as run:
        seconds, message = run.end(LIMIT)
        assert run.process.returncode == 0, message
        result = os.path.join(run.folder, RESULT)
        return seconds, {trace: actions_of(run.path()), RESULT: os.path.getsize(result)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=int(os.environ.get("WEIR_TEST_KILLS", 40)))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    choice = random.Random(options.seed)
    traces = ("t.json", "t.pftrace")
    known = {trace: learn(trace) for trace in traces}
    new = named = 0
    for number in range(options.kills):
        trace = traces[number % 2]
        seconds, whole = known[trace]
        delay = choice.uniform(0, 1.1 * seconds)
        with start(trace) as run:
            run.live(delay)
            run.process.send_signal(signal.SIGKILL)
            run.end(LIMIT)
            try:
                new += sum(check_file(run, name, whole) for name in (trace, RESULT))
                extra = victim.leftovers(run.folder, (trace, RESULT))
                assert len(extra) <= 1, f"left behind: {extra}"
                for name in extra:
                    os.rename(os.path.join(run.folder, name), os.path.join(
                        run.folder, trace if name.startswith(trace) else RESULT))
                    check_file(run, trace if name.startswith(trace) else RESULT, whole)
                named += len(extra)
            except (AssertionError, ValueError) as error:
                print(f"kill {number}, {trace}, after {delay:.4f} s: {error}\n"
                      f"again: {sys.argv[0]} --seed {options.seed} --kills {number + 1}")
                return 1
    print(f"proof: {options.kills} kills: {new} of {2 * options.kills} files new and whole, the "
          f"others as before; {named} whole ones beside their names")
    return 0


if __name__ == "__main__":
    sys.exit(main())
