#!/usr/bin/env python3
"""Runs a compiler that has to fail with exactly one error, which contains a text.

    one_error.py TEXT COMPILER ARGUMENT...
"""

import subprocess
import sys

text, *command = sys.argv[1:]
done = subprocess.run(command, capture_output=True, text=True)
errors = [line for line in done.stderr.splitlines() if "error:" in line]
if done.returncode == 0 or len(errors) != 1 or text not in errors[0]:
    sys.exit(f"one error with '{text}' was expected, the compiler ended with {done.returncode}:\n"
             f"{done.stderr}")
