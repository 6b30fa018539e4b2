#!@venv_python@
"""Seconds of scipy.fft.dctn on blocks of 8 x 8 pixels."""

import argparse
import json
import os
import time
from statistics import median

import numpy as np
import scipy
import scipy.fft

EDGE = 8


def seconds(blocks, threads):
    """In place: an array made for each result would have new pages each time, weir's has not. The
    transform keeps the norm, so that it can be repeated on what it leaves."""
    start = time.perf_counter()
    scipy.fft.dctn(blocks, axes=(1, 3), norm="ortho", overwrite_x=True, workers=threads)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    pixels = np.random.default_rng(1).uniform(0, 255, (options.n, options.n))
    blocks = pixels.reshape(options.n // EDGE, EDGE, options.n // EDGE, EDGE)
    threads = len(os.sched_getaffinity(0))
    times = [seconds(blocks, threads) for _ in range(options.repeats + 1)]
    value = median(times[1:])  # as `weir run`: the first does not count
    print(json.dumps({"value": value, "config": f"SciPy {scipy.__version__}, {threads} threads"}))


if __name__ == "__main__":
    main()
