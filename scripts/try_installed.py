#!/usr/bin/env python3
"""Runs the Python program of README and the command line tool of an installation. scripts/roots.sh."""

import subprocess

import numpy as np
import weir


def tool(*arguments):
    print("$ weir", *arguments, flush=True)
    subprocess.run(["weir", *arguments], check=True)


x = np.arange(1024.0)
with weir.Runtime("sim:cores=1,gbps=6") as runtime:
    stream = runtime.domain().place().stream()
    data = runtime.wrap(x)
    scale = runtime.kernel("scale", lambda part, factor: np.multiply(part, factor, out=part))
    for part in (data[:512], data[512:]):
        stream.upload(part)
        stream.compute(scale, [weir.readwrite(part)], [2.0])
        stream.download(part)
assert x[1023] == 2046, x[1023]
print(f"x[1023] = {x[1023]:g}; headers in {weir.get_include()}", flush=True)

tool("--version")
tool("--prefix")
tool("run", "cholesky", "--n", "1024", "--verify", "--repeat", "3")
tool("run", "reyes", "--verify", "--repeat", "1")
