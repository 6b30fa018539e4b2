#!@venv_python@
"""Operations a second of scikit-learn's k-means (Lloyd), from the first points as centres."""

import argparse
import json
import os
import time
from statistics import median

import numpy as np
import sklearn
from sklearn.cluster import KMeans

FEATURES, CLUSTERS = 34, 8


def points(count):
    """Around as many random middles as there are clusters, as `weir run kmeans` makes them."""
    random = np.random.default_rng(1)
    middles = random.uniform(size=(CLUSTERS, FEATURES))
    near = random.uniform(-0.25, 0.25, (count, FEATURES))
    return middles[random.integers(CLUSTERS, size=count)] + near


def rate(table, iterations):
    """As `weir run kmeans` counts: distances of all points in each step, and once for labels."""
    model = KMeans(CLUSTERS, init=table[:CLUSTERS].copy(), n_init=1, max_iter=iterations, tol=0,
                   algorithm="lloyd")
    start = time.perf_counter()
    model.fit(table)
    seconds = time.perf_counter() - start
    return 3 * table.size * CLUSTERS * (model.n_iter_ + 1) / seconds / 1e9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    table = points(options.n)
    rates = [rate(table, options.iterations) for _ in range(options.repeats + 1)]
    value = median(rates[1:])  # as `weir run`: the first does not count
    threads = len(os.sched_getaffinity(0))
    print(json.dumps({"value": value, "config": f"scikit-learn {sklearn.__version__}, "
                                                f"{threads} threads"}))


if __name__ == "__main__":
    main()
