#!/usr/bin/env python3
"""Seconds that weir report takes for a recording of many actions, or Chromium for its page."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "bin" / "weir"
WORKERS = 8
UNAVAILABLE = 4


def write_recording(path, actions):
    """As weir writes Chrome's JSON: of each worker kernels of 1 us, each after the one before."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"otherData":{"producer":"weir"},"traceEvents":[\n'
                   '{"ph":"M","pid":1,"name":"process_name","args":{"name":"host"}}')
        for worker in range(WORKERS):
            file.write(f',\n{{"ph":"M","pid":1,"tid":{worker},"name":"thread_name",'
                       f'"args":{{"name":"host/p0 core {worker}"}}}}')
        for i in range(actions):
            worker, start = i % WORKERS, i // WORKERS * 1.25
            file.write(f',\n{{"ph":"X","pid":1,"tid":{worker},"ts":{start:.3f},"dur":1.000,'
                       f'"cat":"compute","name":"work","args":{{"stream":"host/p0/s{worker}",'
                       f'"status":"ok","enqueued_us":0.000,"ready_us":{start:.3f}}}}}')
            if start > 0:
                arrow = f'"pid":1,"tid":{worker},"id":{i},"name":"after"'
                file.write(f',\n{{"ph":"f","bp":"e",{arrow},"ts":{start:.3f}}}')
            if i + WORKERS < actions:
                arrow = f'"pid":1,"tid":{worker},"id":{i + WORKERS},"name":"after"'
                file.write(f',\n{{"ph":"s",{arrow},"ts":{start + 1:.3f}}}')
        file.write("\n]}\n")


def write_page(recording, page):
    done = subprocess.run([TOOL, "report", recording, "-o", page], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())


def open_page(page, profile, actions):
    """Opens a tenth of the page, from its middle on, and sees that so many actions are shown."""
    browser = shutil.which("chromium")
    if browser is None:
        print("chromium is not installed", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
         "--virtual-time-budget=60000", "--dump-dom", f"file://{page}#0.5-0.6"],
        capture_output=True, text=True, check=False)
    shown = re.search(r'id="status" data-shown="(\d+)"', done.stdout)
    if shown is None or abs(int(shown[1]) - actions // 10) > 2 * WORKERS:
        raise SystemExit(f"the page shows {shown[1] if shown else 'nothing'}: {done.stderr.strip()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--actions", type=int, default=1_000_000)
    parser.add_argument("--open", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        recording, page = os.path.join(folder, "all.json"), os.path.join(folder, "all.html")
        write_recording(recording, options.actions)
        start = time.perf_counter()
        write_page(recording, page)
        if options.open:
            start = time.perf_counter()
            open_page(page, os.path.join(folder, "profile"), options.actions)
        seconds = time.perf_counter() - start
        size = os.path.getsize(page)
    print(json.dumps({"value": seconds, "config": f"{options.actions} actions, "
                                                  f"{size / 1e6:.0f} MB of page"}))


if __name__ == "__main__":
    main()
