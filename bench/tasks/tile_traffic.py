#!/usr/bin/env python3
"""Megabytes that the tasks of an application move to a device and back when the tile that is
evicted is always the one whose next use is furthest away (Belady): what the order of the tasks
leaves to be saved."""

import argparse
import json

NEVER = float("inf")
BYTES = 8  # of an element


def matmul(parts, tile, n):
    """The tasks as (operands that are read, operand that is written, whether it is read, too). An
    operand is a name and its bytes."""
    panel, result = n * tile * BYTES, tile * tile * BYTES
    for j in range(parts):
        for step in range(parts):
            i = step if j % 2 == 0 else parts - 1 - step
            yield [(("A", i), panel), (("B", j), panel)], (("C", i, j), result), False


def cholesky(parts, tile, n):
    def part(i, j):
        return (i, j), tile * tile * BYTES

    for k in range(parts):
        yield [], part(k, k), True
        for i in range(k + 1, parts):
            yield [part(k, k)], part(i, k), True
        for j in range(k + 1, parts):
            yield [part(j, k)], part(j, j), True
            for i in range(j + 1, parts):
                yield [part(i, k), part(j, k)], part(i, j), True


def next_uses(tasks):
    """For each task when each of its operands is used again."""
    later, uses = {}, []
    for number in range(len(tasks) - 1, -1, -1):
        reads, change, _ = tasks[number]
        names = [name for name, _ in (*reads, change)]
        uses.append({name: later.get(name, NEVER) for name in names})
        later.update(dict.fromkeys(names, number))
    return uses[::-1]


def traffic(tasks, room):
    """Bytes in and out; what was written goes out when it leaves, or in the end."""
    sizes, until, changed = {}, {}, set()
    into = out = 0
    for (reads, change, read_too), uses in zip(tasks, next_uses(tasks), strict=True):
        for name, size in (*reads, change):
            if name not in sizes:
                into += size if (name, size) != change or read_too else 0
                while sum(sizes.values()) + size > room:
                    last = max((other for other in sizes if other not in uses), key=until.get)
                    out += sizes[last] if last in changed else 0
                    changed.discard(last)
                    del sizes[last]
                sizes[name] = size
            until[name] = uses[name]
        changed.add(change[0])
    return into, out + sum(sizes[name] for name in changed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("app", choices=("matmul", "cholesky"))
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--tile", type=int, required=True)
    parser.add_argument("--mib", type=int, required=True)
    given = parser.parse_args()
    order = matmul if given.app == "matmul" else cholesky
    tasks = list(order(given.n // given.tile, given.tile, given.n))
    into, out = traffic(tasks, given.mib << 20)
    print(json.dumps({"value": (into + out) / 1e6,
                      "config": f"{into / 1e6:.0f} MB in, {out / 1e6:.0f} MB out"}))


if __name__ == "__main__":
    main()
