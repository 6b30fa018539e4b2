"""Runs the tool under test, whose path is in WEIR_TOOL."""

import os
import subprocess

TOOL = os.environ["WEIR_TOOL"]
SLOWDOWN = int(os.environ.get("WEIR_TEST_SLOWDOWN", "1"))


def weir(*arguments, tool=TOOL, user=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, seconds=60,
         **variables):
    """Runs the tool without the WEIR_* variables and colours of the caller's environment; as another user, if given."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WEIR_", "CLICOLOR")) and name != "NO_COLOR"
    }
    return subprocess.run(
        [tool, *arguments],
        user=user,
        stdout=stdout,
        stderr=stderr,
        text=True,
        timeout=SLOWDOWN * seconds,
        env={**environment, **variables},
        check=False,
    )
