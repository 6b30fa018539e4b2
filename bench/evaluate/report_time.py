#!/usr/bin/env python3
"""Seconds that weir report takes for a recording of many actions."""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "bin" / "weir"
LANES = 8


def write_recording(path, actions):
    """As weir writes Chrome's JSON: in each lane kernels of 1 us, each after the one before."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"otherData":{"producer":"weir"},"traceEvents":[\n'
                   '{"ph":"M","pid":1,"name":"process_name","args":{"name":"host"}}')
        for lane in range(LANES):
            file.write(f',\n{{"ph":"M","pid":1,"tid":{lane},"name":"thread_name",'
                       f'"args":{{"name":"host/p0 core {lane}"}}}}')
        for i in range(actions):
            lane, start = i % LANES, i // LANES * 1.25
            file.write(f',\n{{"ph":"X","pid":1,"tid":{lane},"ts":{start:.3f},"dur":1.000,'
                       f'"cat":"compute","name":"work","args":{{"stream":"host/p0/s{lane}",'
                       f'"status":"ok","enqueued_us":0.000,"ready_us":{start:.3f}}}}}')
            if start > 0:
                arrow = f'"pid":1,"tid":{lane},"id":{i},"name":"after"'
                file.write(f',\n{{"ph":"f","bp":"e",{arrow},"ts":{start:.3f}}}')
            if i + LANES < actions:
                arrow = f'"pid":1,"tid":{lane},"id":{i + LANES},"name":"after"'
                file.write(f',\n{{"ph":"s",{arrow},"ts":{start + 1:.3f}}}')
        file.write("\n]}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--actions", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        recording, page = os.path.join(folder, "all.json"), os.path.join(folder, "all.html")
        write_recording(recording, options.actions)
        start = time.perf_counter()
        done = subprocess.run([TOOL, "report", recording, "-o", page], capture_output=True,
                              text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            raise SystemExit(done.stderr.strip())
        size = os.path.getsize(page)
    print(json.dumps({"value": seconds, "config": f"{options.actions} actions, "
                                                  f"{size / 1e6:.0f} MB of page"}))


if __name__ == "__main__":
    main()
