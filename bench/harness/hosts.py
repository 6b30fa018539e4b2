"""What starts programs on two hosts."""

import sys
from pathlib import Path

MBIT = 8000


def two_hosts(*options):
    """Words that start a program on two hosts, as root: namespaces that a limited link joins."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "two_hosts.py"
    return (sys.executable, str(script), "--mbit", str(MBIT), *options, "openmpi")


TWO_HOSTS = two_hosts()
# Each host is all that its rank sees: places would begin at the same core on both otherwise.
TWO_HOSTS_OWN_CORES = two_hosts("--own-cores")
