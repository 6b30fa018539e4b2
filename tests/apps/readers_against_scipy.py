#!/usr/bin/env python3
"""Compares the matrix readers and writers with SciPy and NumPy on random files.

usage: readers_against_scipy.py MATRIX_DUMP [--count N] [--seed S]

Each file is one of the variants the readers accept, written by scipy.io.mmwrite or numpy.save and
read by both sides; ours shows its matrix as hexadecimal numbers, .npy or .mtx in turn. Elements
must be equal to the last bit, the sign of zero included. Exit code 1 on any difference.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io
import scipy.sparse

FIELDS = ("real", "integer", "unsigned-integer")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
INTEGERS = [kind + size for kind in "iu" for size in "1248"]
NPY_ELEMENTS = [order + code for code in ["f4", "f8"] + INTEGERS for order in "<>"]


def real_numbers(random, shape):
    """Normal numbers of all magnitudes, with some zeros, subnormals, infinities and nans."""
    values = random.standard_normal(shape) * 10.0 ** random.integers(-300, 300, shape)
    special = [0.0, -0.0, 5e-324, -2.2e-308, np.inf, -np.inf, np.nan, 0.1, 1 / 3, 1e22, -1.0]
    chosen = random.choice(special, shape)
    return np.where(random.random(shape) < 0.15, chosen, values)


def field_numbers(random, shape, field):
    if field == "real":
        return real_numbers(random, shape)
    dtype = np.int64 if field == "integer" else np.uint64
    limits = np.iinfo(dtype)
    low, high = [(0, 9), (0, 2**53), (limits.min + 1, limits.max)][random.integers(3)]
    return random.integers(low, high, shape, dtype=dtype, endpoint=True)


def with_symmetry(values, symmetry):
    """Keeps the lower triangle and what it implies."""
    if symmetry == "general":
        return values
    if symmetry == "symmetric":
        return np.tril(values) + np.tril(values, -1).T
    lower = np.tril(values, -1)
    return lower - lower.T


def random_shape(random, square):
    rows, columns = (int(random.integers(1, random.choice([3, 9, 80]))) for _ in range(2))
    return (rows, rows) if square else (rows, columns)


def disturbed(random, path):
    """Rewrites a text file with what its format allows: other line ends, blanks, comments."""
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    result = [lines[0]]
    for line in lines[1:]:
        if random.random() < 0.1:
            result.append(random.choice([b"", b"  ", b"% 1 2 3"]) if result[1:] else b"% first")
        padded = not line.startswith(b"%") and random.random() < 0.2
        result.append(b" " + line.replace(b" ", b"\t ") + b"  " if padded else line)
    end = random.choice([b"\n", b"\r\n"])
    with open(path, "wb") as file:
        file.write(end.join(result) + random.choice([b"", end, end + end]))


def write_array(random, path, field, symmetry):
    with np.errstate(invalid="ignore"):
        values = with_symmetry(
            field_numbers(random, random_shape(random, symmetry != "general"), field), symmetry)
    precision = int(random.choice([5, 16, 25])) if field == "real" else None
    scipy.io.mmwrite(path, values, symmetry=symmetry, precision=precision)


def write_coordinates(random, path, field, symmetry):
    """Duplicates are allowed: one position may be added to several times."""
    shape = random_shape(random, symmetry != "general")
    count = int(random.integers(0, 2 * max(shape) + 1))
    rows, columns = (random.integers(0, extent, count) for extent in shape)
    if symmetry != "general":
        rows, columns = np.maximum(rows, columns), np.minimum(rows, columns)
    if symmetry == "skew-symmetric":
        kept = rows != columns
        rows, columns = rows[kept], columns[kept]
    if field in ("real", "pattern"):
        values = real_numbers(random, len(rows))
    else:
        values = random.integers(0, 2**40, len(rows)).astype(np.int64)
        if field == "unsigned-integer":
            values = values.astype(np.uint64)
    matrix = scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape)
    scipy.io.mmwrite(path, matrix, field=field, symmetry=symmetry)


def write_npy(random, path, element, fortran, version):
    dimensions = int(random.choice([1, 2, 2, 2]))
    shape = random_shape(random, False)[:dimensions]
    dtype = np.dtype(element)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = real_numbers(random, shape).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        native = dtype.newbyteorder("=")
        values = random.integers(limits.min, limits.max, shape, dtype=native, endpoint=True)
        values = values.astype(dtype)
    values = np.asarray(values, order="F" if fortran else "C")
    with open(path, "wb") as file:
        np.lib.format.write_array(file, values, version=version)


def market_variants(fields):
    """SciPy cannot mirror unsigned numbers into negative ones."""
    return [(field, symmetry) for field, symmetry in itertools.product(fields, SYMMETRIES)
            if (field, symmetry) != ("unsigned-integer", "skew-symmetric")]


def variants():
    arrays = market_variants(FIELDS)
    coordinates = market_variants(FIELDS + ("pattern",))
    npy = list(itertools.product(NPY_ELEMENTS, (False, True), ((1, 0), (2, 0), (3, 0))))
    for index in itertools.count():
        yield "array", write_array, arrays[index % len(arrays)]
        yield "coordinate", write_coordinates, coordinates[index % len(coordinates)]
        yield "npy", write_npy, npy[index % len(npy)]


def expected_matrix(path, single):
    """Reads a file with SciPy or NumPy, adding duplicates in the type of the result."""
    dtype = np.float32 if single else np.float64
    with np.errstate(over="ignore", invalid="ignore"):
        if path.endswith(".npy"):
            values = np.load(path, allow_pickle=False)
            return values.reshape(len(values), -1).astype(dtype)
        values = scipy.io.mmread(path)
        if scipy.sparse.issparse(values):
            entries = (values.data.astype(dtype), (values.row, values.col))
            return scipy.sparse.coo_matrix(entries, shape=values.shape).toarray()
        return np.asarray(values).astype(dtype)


def parse_dump(text, dtype):
    rows, columns, *numbers = text.split()
    values = [float.fromhex(number) for number in numbers]
    return np.array(values, dtype=dtype).reshape((int(rows), int(columns)), order="F")


def our_matrix(driver, path, single, shown_as):
    command = [driver] + (["--float"] if single else []) + [path]
    output = path + ".read" + shown_as
    if shown_as:
        command.append(output)
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip())
    dtype = np.float32 if single else np.float64
    if not shown_as:
        return parse_dump(result.stdout, dtype)
    values = np.load(output) if shown_as == ".npy" else scipy.io.mmread(output)
    if shown_as == ".npy" and values.dtype != dtype:
        raise ValueError(f"wrote {values.dtype} for {dtype}")
    os.remove(output)
    return values.astype(dtype)


def difference(ours, expected, signed_zeros):
    """Returns what is not the same, or None."""
    if ours.shape != expected.shape:
        return f"shape {ours.shape}, expected {expected.shape}"
    same = (ours == expected) | (np.isnan(ours) & np.isnan(expected))
    if signed_zeros:
        same &= (np.signbit(ours) == np.signbit(expected)) | np.isnan(expected)
    if same.all():
        return None
    position = tuple(np.argwhere(~same)[0])
    return f"{ours[position]!r} at {position}, expected {expected[position]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver", help="path of the program matrix_dump")
    parser.add_argument("--count", type=int, default=300, help="files to compare")
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice")
    options = parser.parse_args()

    random = np.random.default_rng(options.seed)
    different, elements, seen = 0, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        for index, (kind, write, variant) in enumerate(
                itertools.islice(variants(), options.count)):
            path = os.path.join(folder, f"{index}" + (".npy" if kind == "npy" else ".mtx"))
            write(random, path, *variant)
            if kind != "npy" and random.random() < 0.5:
                disturbed(random, path)
            single = bool(random.random() < 0.4)
            shown_as = str(random.choice(["", ".npy", ".mtx"]))
            # The integers of a skew-symmetric file have no negative zero to mirror.
            signed_zeros = "real" in variant or kind != "array"
            try:
                expected = expected_matrix(path, single)
                found = difference(our_matrix(options.driver, path, single, shown_as), expected,
                                   signed_zeros)
            except ValueError as error:
                found, expected = str(error), np.zeros(0)
            if found:
                different += 1
                print(f"{kind} {variant} {'float' if single else 'double'}: {found}",
                      file=sys.stderr)
            seen.add((kind, variant))
            elements += expected.size
            os.remove(path)
    print(f"readers against SciPy {scipy.__version__}, NumPy {np.__version__}: "
          f"{options.count} files, {len(seen)} variants, {elements} elements, "
          f"{different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
