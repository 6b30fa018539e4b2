"""Runs the commands of rows in turn, round by round, so that a drifting clock meets all alike."""

import os
import sys
import tempfile

from harness.command import Failed, NotBuilt


class Progress:
    """One line on stderr when that is a terminal."""

    def __init__(self):
        self.visible = sys.stderr.isatty()

    def show(self, text):
        if self.visible:
            print(f"\r\033[K{text[:100]}", end="", file=sys.stderr, flush=True)

    def clear(self):
        self.show("")


def measure(groups, rounds, build):
    """Returns, for each group, what its commands printed in its rounds, or the exception that
    stopped a command, which then runs in no later group. Groups that have a command in common
    measure it anew: a ratio is one of figures of the same round. What runtimes have learned about
    the machine before counts for none of them: all begin with empty folders for that."""
    progress = Progress()
    measured, stopped = [], {}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
        environment = {"STARPU_HOME": scratch, "STARPU_SILENT": "1", "XDG_CACHE_HOME": scratch}
        for number, rows in enumerate(groups, 1):
            commands = list(dict.fromkeys(c for row in rows for c in row.commands()))
            outputs = {command: stopped.get(command, []) for command in commands}
            for round_number in range(1, rounds + 1):
                for command in commands:
                    if command.once and round_number > 1:
                        continue
                    progress.show(
                        f"group {number} of {len(groups)}, round {round_number} of {rounds}: "
                        f"{command.program} {' '.join(command.arguments)}"
                    )
                    run_once(command, outputs, build, environment)
            stopped.update(item for item in outputs.items() if isinstance(item[1], Exception))
            measured.append(outputs)
    progress.clear()
    return measured


def run_once(command, outputs, build, environment):
    known = outputs[command]
    if isinstance(known, Exception):
        return
    try:
        known.append(command.run(build, environment))
    except (NotBuilt, Failed) as problem:
        outputs[command] = problem
    except OSError as problem:
        started = problem.filename or command.program
        outputs[command] = Failed(f"{started}: {os.strerror(problem.errno)}")
