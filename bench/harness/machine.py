"""Describes the machine: nothing that names it or its folders."""

import json
import os
import platform
from pathlib import Path

from harness.command import Command, Failed, NotBuilt


def describe_machine(build):
    """Returns the description; what cannot be found out is null."""
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": memory_gb(),
        "kernel": f"{platform.system()} {platform.release()}",
        **describe_software(build),
        **describe_card(),
    }


def describe_card():
    """What scripts/gpu_run.sh has found out about the GPU before it starts this."""
    path = os.environ.get("WEIR_BENCH_MACHINE")
    if not path:
        return {}
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    return {key: told[key] for key in ("device", "driver", "commit")}


def describe_software(build):
    try:
        return Command.of("describe").run(build, {})
    except (NotBuilt, Failed):
        return {"weir": None, "compiler": None, "blas": None}


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_gb():
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return round(pages * page_bytes / 1e9)
