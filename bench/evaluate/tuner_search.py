#!/usr/bin/env python3
"""What weir tune chooses against all pairs of places and tiles: times, and numbers of divisions."""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "bin" / "weir"


def tune(app, options):
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as empty:
        done = subprocess.run(
            [TOOL, "tune", app, *options, "--budget", "10m", "--json"], capture_output=True,
            text=True, check=False, env={**os.environ, "XDG_CACHE_HOME": empty})
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def words(division):
    return f"{division['places']} places, {division['streams']} streams, {division['tiles']} tiles"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("app")
    known, options = parser.parse_known_args()
    tuned, all_pairs = tune(known.app, options), tune(known.app, [*options, "--exhaustive"])
    best = min(all_pairs["evaluations"], key=lambda each: each["seconds"])
    chosen, space = tuned["chosen"], tuned["space"]
    pairs = space["most_places"] * space["most_tiles"]
    print(json.dumps({
        "value": chosen["seconds"],
        "best": best["seconds"],
        "default": tuned["default"]["seconds"],
        "measured": tuned["measured"],
        "tenth": pairs / 10,
        "config": words(chosen),
        "configs": {"best": words(best), "default": words(tuned["default"]),
                    "tenth": f"of {pairs} pairs"}}))


if __name__ == "__main__":
    main()
