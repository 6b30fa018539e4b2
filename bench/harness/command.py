"""One run of one program: a process that prints a line of JSON."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path


CANNOT_START = 77  # of what starts programs: the machine lacks something
TO_END_S = 5  # for a program that has taken too long to end after SIGTERM
UNAVAILABLE = 4  # exit status of weir and of programs for a device that is not there


class NotBuilt(Exception):
    """The program, or its device, is not there, or cannot be started: nothing can be said about it."""


class Unmeasured(NotBuilt):
    """The program ran, and nothing can be said: no sample was accepted, or a bound was not reached."""


class Failed(Exception):
    """The program ran and failed."""


@dataclass(frozen=True)
class Command:
    """A program of the build with its arguments. `fresh`: with an empty cache folder each time.
    `under`: the words of a command that starts it. `once`: in the first round only, as it says the
    same in all. `build`: another build than that of the other commands."""

    program: str
    arguments: tuple = ()
    fresh: bool = False
    under: tuple = ()
    once: bool = False
    build: str = ""

    @staticmethod
    def of(program, *arguments, once=False):
        return Command(program, tuple(str(argument) for argument in arguments), once=once)

    def run(self, build, environment, timeout_s=120):
        """Returns the JSON that the program prints last. Raises NotBuilt or Failed."""
        if self.fresh:
            with tempfile.TemporaryDirectory(prefix="weir-bench-") as empty:
                known = replace(self, fresh=False)
                return known.run(build, {**environment, "XDG_CACHE_HOME": empty}, timeout_s)
        if self.build:
            build = self.build
            environment = {**environment,
                           "XDG_CACHE_HOME": os.path.join(environment["XDG_CACHE_HOME"], "against")}
        path = find_program(build, self.program)
        try:
            words = [*self.under, path, *self.arguments]
            done = run_group(words, {**os.environ, **environment}, timeout_s)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{self.program} did not end within {timeout_s} s") from late
        missing = CANNOT_START if self.under else UNAVAILABLE
        if done.returncode == missing:
            raise NotBuilt(done.stderr.strip())
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise Failed(f"{self.program} ended with {done.returncode}: {lines[-1]}")
        return parse(self.program, done.stdout)


def run_group(words, environment, timeout_s):
    """As subprocess.run(), but what a program has started ends with it: ranks that went on would
    have the cores that the next one is measured on."""
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as process:
        try:
            output, messages = process.communicate(timeout=timeout_s)
        except BaseException:  # Ctrl-C, too, which a session of its own does not hear
            end_group(process)
            raise
        return subprocess.CompletedProcess(words, process.returncode, output, messages)


def end_group(process):
    """Asks first: mpirun and two_hosts.py then end what is in other groups."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TO_END_S)


def find_program(build, name):
    for folder in ("bench/programs", "bin"):
        path = Path(build) / folder / name
        if path.is_file():
            return str(path.resolve())
    raise NotBuilt(f"{name} is not built: what it needs was not found by CMake")


def parse(program, output):
    """Programs print one line, the command line tool one object over many lines."""
    try:
        return json.loads(output)
    except json.JSONDecodeError as error:
        raise Failed(f"{program} printed no JSON: {error}") from error


def number(command, value, name):
    """A figure must be a number; null, which stands for an infinite one, is not."""
    try:
        return float(value)
    except (TypeError, ValueError) as wrong:
        raise Failed(f"{command.program} printed '{name}' as {json.dumps(value)}") from wrong


@dataclass(frozen=True)
class Figure:
    """A number in what a command prints: `field` is its path, with dots and places in lists."""

    command: Command
    field: str = "value"

    def commands(self):
        return [self.command]

    def values(self, outputs):
        """Returns one value for each round. Raises what stopped the command."""
        given = outputs[self.command]
        if isinstance(given, Exception):
            raise given
        return [self.read(output) for output in given]

    def configuration(self, outputs):
        """What the program, or `weir run`, says about how it ran; None when the other side does.
        A program that prints several figures may say it of each by its field, in `configs`."""
        output = outputs[self.command][-1]
        if self.field == "peer":
            return None
        return output.get("configs", {}).get(self.field) or configuration(output)

    def read(self, output):
        for key in self.field.split("."):
            try:
                output = output[int(key) if isinstance(output, list) else key]
            except (TypeError, KeyError, IndexError, ValueError) as missing:
                raise Failed(f"{self.command.program} printed no '{self.field}'") from missing
        return number(self.command, output, self.field)


@dataclass(frozen=True)
class Formula(Figure):
    """A number that follows from what a command prints."""

    formula: object = None

    def read(self, output):
        try:
            value = self.formula(output)
        except (TypeError, KeyError, IndexError, ValueError) as missing:
            raise Failed(f"{self.command.program} printed no figure: {missing!r}") from missing
        return number(self.command, value, "figure")


@dataclass(frozen=True)
class Sum:
    """The figures of several commands added up, round by round."""

    parts: tuple

    def commands(self):
        return [part.command for part in self.parts]

    def values(self, outputs):
        return [sum(values) for values in zip(*(part.values(outputs) for part in self.parts))]

    def configuration(self, outputs):
        return "; ".join(str(part.configuration(outputs)) for part in self.parts)


@dataclass(frozen=True)
class Difference:
    """What one figure is above another, round by round."""

    figure: Figure
    base: Figure

    def commands(self):
        return [self.figure.command, self.base.command]

    def values(self, outputs):
        return [a - b for a, b in zip(self.figure.values(outputs), self.base.values(outputs))]

    def configuration(self, outputs):
        return self.figure.configuration(outputs)


def configuration(output):
    if "config" in output:
        return output["config"]
    if "streams" not in output:  # of weir, but no run
        return output.get("command")
    words = [counted(output[kind], kind[:-1]) for kind in ("places", "streams") if output[kind]]
    if output.get("policy"):
        words.append(output["policy"])
    return f"{', '.join(output['domains'])}: {', '.join(words)}, tile {output['params']['tile']}"


def counted(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
