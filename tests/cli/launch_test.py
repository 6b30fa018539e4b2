#!/usr/bin/python3
"""weir launch: what ranks write, how they end, and which signals they get."""

import os
import signal
import subprocess
import tempfile
import unittest

from tool import SLOWDOWN, TOOL, weir

USAGE, UNAVAILABLE = 2, 4
LONG = 600  # seconds that a rank sleeps which the test does not wait for
ALL = "the other ranks were ended"


def launch(*arguments):
    return weir("launch", *map(str, arguments), seconds=100)


def shell(ranks, script, *options):
    """Runs a script of the shell on each rank."""
    return launch("-n", ranks, *options, "sh", "-c", script)


class Output(unittest.TestCase):
    def test_each_line_has_the_number_of_its_rank(self):
        result = shell(3, "echo out $WEIR_RANK of $WEIR_RANKS; echo; echo err >&2; printf end")
        self.assertEqual(result.returncode, 0, result.stderr)
        for rank in range(3):
            own = [line for line in result.stdout.splitlines() if line.startswith(f"[{rank}] ")]
            self.assertEqual(own, [f"[{rank}] out {rank} of 3", f"[{rank}] ", f"[{rank}] end"])
        self.assertEqual(sorted(result.stderr.splitlines()), ["[0] err", "[1] err", "[2] err"])

    def test_lines_stay_whole_when_they_are_written_in_pieces(self):
        script = "for i in 1 2 3 4 5; do printf a; printf b; echo c; done"
        lines = shell(4, script).stdout.splitlines()
        self.assertEqual(sorted(lines), sorted(f"[{rank}] abc" for rank in range(4) for _ in range(5)))

    def test_output_of_300000_bytes_arrives_complete(self):
        result = shell(2, "head -c 300000 /dev/zero | tr '\\0' x; echo; seq 20000")
        for rank in range(2):
            own = [line[4:] for line in result.stdout.splitlines() if line.startswith(f"[{rank}] ")]
            self.assertEqual("".join(own), "x" * 300000 + "".join(map(str, range(1, 20001))))

    def test_no_prefix_leaves_the_lines_of_ranks_unchanged(self):
        result = shell(2, "printf 'a\\nb\\n'", "--no-prefix")
        self.assertEqual(sorted(result.stdout.splitlines()), ["a", "a", "b", "b"])

    def test_rank_0_alone_reads_the_input(self):
        done = subprocess.run([TOOL, "launch", "-n", "3", "cat"], input="hello\n", text=True,
                              capture_output=True, timeout=100 * SLOWDOWN, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "[0] hello\n"))

    def test_the_program_gets_its_arguments_unchanged(self):
        words = ["-n", "3", "--json", "--grace", "", "--", "a b"]
        result = launch("-n", 1, "sh", "-c", 'for word; do echo "<$word>"; done', "sh", *words)
        self.assertEqual(result.stdout.splitlines(), [f"[0] <{word}>" for word in words])


class Ends(unittest.TestCase):
    def says(self, result, *words):
        complaints = [line for line in result.stderr.splitlines() if line.startswith("weir: ")]
        self.assertEqual(len(complaints), 1, result.stderr)
        for each in words:
            self.assertIn(each, complaints[0])

    def test_a_rank_that_fails_ends_all(self):
        result = shell(3, f"[ $WEIR_RANK = 1 ] && exit 7; exec sleep {LONG}")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.says(result, "rank 1 failed first: exit status 7", ALL)

    def test_a_rank_that_dies_of_a_signal_ends_all(self):
        result = shell(2, f"[ $WEIR_RANK = 0 ] && kill -SEGV $$; exec sleep {LONG}")
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV, result.stderr)
        self.says(result, "rank 0 failed first: signal 11 (Segmentation fault)", ALL)

    def fail_when_ready(self, script, *options):
        """Rank 0 fails when rank 1, which runs the script, has called `ready`."""
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            whole = ("[ $WEIR_RANK = 0 ] && read word < $PIPE && exit 4; ready() { echo > $PIPE; }; "
                     + script)
            return weir("launch", "-n", "2", *options, "sh", "-c", whole, PIPE=pipe, seconds=100)

    def test_ranks_that_ignore_sigterm_are_killed(self):
        result = self.fail_when_ready(f"trap '' TERM; ready; exec sleep {LONG}", "--grace", "0.2")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.says(result, "rank 0 failed first: exit status 4", ALL + ", by SIGKILL after 200 ms")

    def test_other_ranks_may_finish_within_the_grace_time_after_a_failure(self):
        result = self.fail_when_ready(f"trap 'echo saved; kill $!; exit 0' TERM; sleep {LONG} & ready; wait",
                                      "--grace", str(LONG))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertEqual(result.stdout, "[1] saved\n")
        self.says(result, "rank 0 failed first: exit status 4", ALL)

    def test_other_ranks_continue_after_a_failure_with_keep_going(self):
        result = shell(3, "[ $WEIR_RANK = 1 ] && exit 7; echo done", "--keep-going")
        self.assertEqual(result.returncode, 7)
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] done", "[2] done"])
        self.says(result, "rank 1 failed first: exit status 7")
        self.assertNotIn(ALL, result.stderr)

    def test_ranks_that_open_the_fabric_are_connected(self):
        result = launch("-n", 2, TOOL, "info", "--ranks")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\[0\] +0 +\d+ +shm to 1\n")
        self.assertRegex(result.stdout, r"\[0\] +1 +\d+ +shm to 0\n")

    def test_invalid_arguments_of_launch_are_refused_in_one_line(self):
        for arguments, status, words in (
            (("-n", 2), USAGE, "PROGRAM is required"),
            (("sh",), USAGE, "--ranks is required"),
            (("-n", 0, "sh"), USAGE, "--ranks: '0' is not a number from 1 to 1024"),
            (("-n", 2, "--hosts", "a", "sh"), USAGE, "unknown option '--hosts'"),
            (("-n", 2, "/nonexistent/program"), UNAVAILABLE, "cannot start rank 0 of"),
        ):
            result = launch(*arguments)
            self.assertEqual(result.returncode, status, f"{arguments}: {result.stderr}")
            self.says(result, words)


class Signals(unittest.TestCase):
    def start(self, script):
        """Starts two ranks, and returns when both have said that they are ready."""
        process = subprocess.Popen([TOOL, "launch", "-n", "2", "sh", "-c", script], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        ready = sorted(process.stdout.readline() for _ in range(2))
        self.assertEqual(ready, ["[0] ready\n", "[1] ready\n"])
        return process

    def end(self, process):
        try:
            return process.communicate(timeout=100 * SLOWDOWN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise

    def test_signals_reach_the_ranks_which_may_end_with_success(self):
        for number, name in ((signal.SIGTERM, "TERM"), (signal.SIGINT, "INT")):
            process = self.start(f"trap 'echo got {name}; kill $!; exit 0' {name};"
                                 f" sleep {LONG} & echo ready; wait")
            process.send_signal(number)
            output, errors = self.end(process)
            self.assertEqual(process.returncode, 0, errors)
            self.assertEqual(sorted(output.splitlines()), [f"[0] got {name}", f"[1] got {name}"])

    def test_ranks_ended_by_sigterm_are_reported_with_the_signal(self):
        process = self.start(f"echo ready; exec sleep {LONG}")
        process.send_signal(signal.SIGTERM)
        _, errors = self.end(process)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertEqual(errors, "weir: stopped by signal 15 (Terminated)\n")

    def test_a_second_signal_kills_ranks_that_ignore_the_first(self):
        process = self.start(f"trap '' TERM; echo ready; exec sleep {LONG}")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)  # two of the same kind could become one
        _, errors = self.end(process)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, errors)
        self.assertRegex(errors, r"^weir: stopped by signal \d+ \(\w+\)\n$")


if __name__ == "__main__":
    unittest.main()
