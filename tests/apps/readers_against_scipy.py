#!/usr/bin/env python3
"""Compares the matrix readers and writers with SciPy and NumPy on random files.

usage: readers_against_scipy.py MATRIX_DUMP [--count N] [--odd N] [--seed S]

Good files: each is one of the variants the readers accept, written by SciPy or
numpy.save and read by both sides; ours shows its matrix as hexadecimal numbers, .npy or .mtx in
turn. Elements must be equal to the last bit, the sign of zero included.

Odd files: each is a good one with a fault or a liberty of ODDITIES. Where ours refuses what SciPy
takes, or the reverse, that table says so and why: it is the list of our decisions. Any other
outcome is a difference. Exit code 1 on any difference. The nightly amount: --count 10000 --odd 10000.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import scipy
import scipy.sparse
# The reader of SciPy in Python. Since 1.12 scipy.io.mmread() is another one, which loses the sign of
# zero and, in 1.15, ends the process at files that are correct.
from scipy.io import _mmio as market

FIELDS = ("real", "integer", "unsigned-integer")
NUMPY_REFUSES_NEGATIVE = np.lib.NumpyVersion(np.__version__) >= "2.0.0"  # for unsigned integers
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
    market.mmwrite(path, values, symmetry=symmetry, precision=precision)


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
    market.mmwrite(path, matrix, field=field, symmetry=symmetry)


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
            values = np.atleast_1d(np.load(path, allow_pickle=False))
            return values.reshape(len(values), -1).astype(dtype)
        values = market.mmread(path)
        if scipy.sparse.issparse(values):
            entries = (values.data.astype(dtype), (values.row, values.col))
            return scipy.sparse.coo_matrix(entries, shape=values.shape).toarray()
        return np.asarray(values).astype(dtype)


class Refused(ValueError):
    """A file that a reader does not take."""


class Reader:
    """Our readers, in a process that reads one file after the other."""

    def __init__(self, driver):
        self.process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, encoding="latin-1")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(60)

    def answer(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        kind, _, rest = self.process.stdout.readline().rstrip("\n").partition(" ")
        if kind == "refused":
            raise Refused(rest)
        if kind != "read":
            raise RuntimeError(f"the driver has ended after: {request}")
        return tuple(int(extent) for extent in rest.split())

    def read(self, path, single, shown_as=""):
        dtype = np.float32 if single else np.float64
        output = path + ".read" + shown_as if shown_as else ""
        shape = self.answer(f"{'float' if single else 'double'} {path} {output}")
        if not shown_as:
            numbers = [float.fromhex(self.process.stdout.readline())
                       for _ in range(shape[0] * shape[1])]
            return np.array(numbers, dtype=dtype).reshape(shape, order="F")
        values = np.load(output) if shown_as == ".npy" else market.mmread(output)
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


# ---- Odd files -----------------------------------------------------------------------------------

# What becomes of an odd file: both give the same matrix, both refuse it, or it is our decision to
# refuse what SciPy takes, or to take what SciPy refuses.
SAME, BOTH_REFUSE = "both take it", "both refuse it"
WE_REFUSE, SCIPY_REFUSES = "only SciPy takes it", "only ours takes it"


class Market:
    """The words of a small random Matrix Market file."""

    def __init__(self, random, form="coordinate", field="real", symmetry="general"):
        rows, columns = random_shape(random, symmetry != "general")
        rows, columns = rows + 1, columns + 1 if symmetry == "general" else rows + 1
        self.banner = ["%%MatrixMarket", "matrix", form, field, symmetry]
        self.size = [rows, columns]
        if form == "array":
            self.entries = [[self.value(random)] for _ in range(rows * columns)]
            return
        count = int(random.integers(2, 9))
        self.entries = []
        for _ in range(count):
            i, j = int(random.integers(1, rows + 1)), int(random.integers(1, columns + 1))
            if symmetry != "general":
                i, j = max(i, j), min(i, j)
            if symmetry == "skew-symmetric" and i == j:
                i, j = rows, 1
            self.entries.append([i, j, self.value(random)])
        self.size.append(count)

    def value(self, random):
        low = 0 if self.banner[3] == "unsigned-integer" else -99
        number = int(random.integers(low, 100))
        return number if self.banner[3] != "real" else number / 8

    def any_entry(self, random):
        return self.entries[random.integers(len(self.entries))]

    def text(self, end="\n"):
        lines = [self.banner, self.size] + self.entries
        return end.join(" ".join(str(word) for word in line) for line in lines) + end


def coordinate(change, field="real", symmetry="general"):
    """Makes a coordinate file, which change(file, random) makes odd; it may return the text."""
    return lambda random: finish(Market(random, "coordinate", field, symmetry), change, random)


def array(change, field="real"):
    return lambda random: finish(Market(random, "array", field), change, random)


def finish(market, change, random):
    changed = change(market, random)
    text = changed if isinstance(changed, str) else market.text()
    return text.encode("latin-1"), ".mtx"


def set_value(*words):
    """Replaces the value of one entry by one of the words."""
    def change(market, random):
        market.any_entry(random)[-1] = words[random.integers(len(words))]
    return change


def set_word(where, index, *words):
    def change(market, random):
        getattr(market, where)[index] = words[random.integers(len(words))]
    return change


def set_index(position, offset):
    """Puts an entry outside the matrix: offset counts from 0 or, above 0, from the last index."""
    def change(market, random):
        last = market.size[position]
        market.any_entry(random)[position] = last + offset if offset > 0 else offset
    return change


def insert_line(line, first=0):
    def change(market, random):
        market.entries.insert(int(random.integers(first, len(market.entries) + 1)), [line])
    return change


def above_diagonal(market, _):
    market.entries[0][:2] = [1, market.size[0]]


def on_diagonal(value):
    def change(market, _):
        market.entries[0] = [1, 1, value]
    return change


def npy(descr=None, fortran="False", shape=None, header=None, version=None, data=None, pad=True):
    """Makes a .npy file of 2 x n doubles, in which what is given is otherwise."""
    def make(random):
        columns = int(random.integers(1, 9))
        contents = real_numbers(random, (2, columns)).tobytes()
        text = (header or "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}").format(
            descr or "'<f8'", fortran, shape or f"(2, {columns})")
        used = version or [(1, 0), (2, 0), (3, 0)][random.integers(3)]
        return npy_file(text, contents if data is None else data(contents), used, pad), ".npy"
    return make


def npy_file(header, contents, version, pad):
    wide = 4 if version[0] >= 2 else 2
    header = header.encode("latin-1")
    padding = -(len(header) + 9 + wide) % 64 if pad else 0
    header += b" " * padding + b"\n"
    return (b"\x93NUMPY" + bytes(version) + len(header).to_bytes(wide, "little") + header
            + contents)


STRICT = "a file that is not what its banner says is damaged: better refused than guessed"
ROBUST = "it has one meaning, and other programs write it"
UNUSED = "no matrix of the applications needs it"

# name: (maker, outcome, why it is our decision where the two differ)
ODDITIES = {
    # Numbers.
    "exponents": (array(set_value("1e5", "1E+05", "-2.5e-03", "+7", ".5", "5.", "-.5e1")), SAME),
    "special numbers": (array(set_value("nan", "NaN", "inf", "-Inf", "infinity", "-nan")), SAME),
    "beyond a double": (array(set_value("1e309", "-1e400", "1e-400", "5e-324", "1e99999")), SAME),
    "many digits": (array(set_value("0." + "1" * 400, "1" * 300, "0" * 50 + "7")), SAME),
    "exponent letter d": (array(set_value("1d5", "1D+05", "2q1")), BOTH_REFUSE),
    "hexadecimal": (array(set_value("0x10", "0x1p3", "-0X1.8p1")), BOTH_REFUSE),
    "underscores": (array(set_value("1_000", "1_0.5")), WE_REFUSE,
                    "Python's grammar for numbers is not the format's"),
    "no number": (array(set_value("one", "--1", "+-1", "1e", "1,5", "1.2.3", "e5")), BOTH_REFUSE),
    "value missing": (coordinate(lambda m, r: m.any_entry(r).pop()), BOTH_REFUSE),
    "value too many": (coordinate(lambda m, r: m.any_entry(r).append("1")), WE_REFUSE, STRICT),
    "two on a line": (array(lambda m, r: m.any_entry(r).append("1")), BOTH_REFUSE),
    "fraction for an integer": (array(set_value("1.5", "1e3"), "integer"), BOTH_REFUSE),
    "integer beyond 64 bits": (array(set_value(2**64, -2**63 - 1, 10**30), "integer"), BOTH_REFUSE),
    "negative unsigned": (coordinate(set_value("-1"), "unsigned-integer"),
                          *((BOTH_REFUSE,) if NUMPY_REFUSES_NEGATIVE else (WE_REFUSE, STRICT))),
    # Positions.
    "row 0": (coordinate(set_index(0, 0)), BOTH_REFUSE),
    "column 0": (coordinate(set_index(1, 0)), BOTH_REFUSE),
    "negative row": (coordinate(set_index(0, -1)), BOTH_REFUSE),
    "row outside": (coordinate(set_index(0, 1)), BOTH_REFUSE),
    "column outside": (coordinate(set_index(1, 1)), BOTH_REFUSE),
    "fraction of a row": (coordinate(lambda m, r: m.any_entry(r).__setitem__(0, "1.5")),
                          BOTH_REFUSE),
    "upper triangle": (coordinate(above_diagonal, "real", "symmetric"), SAME),
    "skew diagonal": (coordinate(on_diagonal("1"), "real", "skew-symmetric"), WE_REFUSE, STRICT),
    "skew diagonal of 0": (coordinate(on_diagonal("0"), "real", "skew-symmetric"), SAME),
    # Lines.
    "blank lines": (coordinate(insert_line("")), SAME),
    "comment among entries": (coordinate(insert_line("% 9 9 9"), ), SAME),
    "blank line in an array": (array(insert_line("")), SAME),
    "Windows line ends": (array(lambda m, r: m.text("\r\n")), SAME),
    "old Macintosh line ends": (array(lambda m, r: m.text("\r")), BOTH_REFUSE),
    "no last newline": (coordinate(lambda m, r: m.text().rstrip("\n")), SAME),
    "entries missing": (coordinate(lambda m, r: m.entries.pop()), BOTH_REFUSE),
    "elements missing": (array(lambda m, r: m.entries.pop()), BOTH_REFUSE),
    "entries too many": (coordinate(lambda m, r: m.entries.append([1, 1, 1])), BOTH_REFUSE),
    "elements too many": (array(lambda m, r: m.entries.append([1])), BOTH_REFUSE),
    "zero byte": (array(set_value("1\x00", "\x00")), BOTH_REFUSE),
    # The first lines.
    "other case": (array(lambda m, r: m.text().replace("matrix array real general",
                                                       "MATRIX Array REAL gEneral")), SAME),
    "other banner": (array(set_word("banner", 0, "%MatrixMarket", "MatrixMarket", "%%Matrix")),
                     BOTH_REFUSE),
    "banner in lower case": (array(set_word("banner", 0, "%%matrixmarket")), BOTH_REFUSE),
    "no matrix": (array(set_word("banner", 1, "vector", "graph")), BOTH_REFUSE),
    "unknown words": (array(set_word("banner", 2, "dense", "list")), BOTH_REFUSE),
    "unknown field": (array(set_word("banner", 3, "double", "float", "quaternion")), WE_REFUSE,
                      "the format has no such field"),
    "unknown symmetry": (array(set_word("banner", 4, "lopsided", "diagonal")), WE_REFUSE,
                         "the format has no such symmetry"),
    "words missing": (array(lambda m, r: m.banner.pop()), BOTH_REFUSE),
    "words too many": (array(lambda m, r: m.banner.append("square")), BOTH_REFUSE),
    "complex": (coordinate(lambda m, r: [entry.append("0") for entry in m.entries], "complex"),
                WE_REFUSE, UNUSED),
    "array of pattern": (array(set_word("banner", 3, "pattern")), WE_REFUSE, STRICT),
    "size missing": (coordinate(lambda m, r: m.size.pop()), BOTH_REFUSE),
    "size too many": (array(lambda m, r: m.size.append("1")), BOTH_REFUSE),
    "negative size": (array(set_word("size", 0, "-1")), BOTH_REFUSE),
    "size no number": (array(set_word("size", 1, "many", "2.0", "1e1")), BOTH_REFUSE),
    "not square": (coordinate(lambda m, r: m.size.__setitem__(1, m.size[1] + 1), "real",
                              "symmetric"), WE_REFUSE, STRICT),
    "empty": (lambda random: (b"", ".mtx"), BOTH_REFUSE),
    # .npy
    "tight header": (npy(pad=False), SAME),
    "other order of keys": (npy(header="{{'shape': {2}, 'descr': {0}, 'fortran_order': {1}}}"),
                            SAME),
    "double quotes": (npy(header='{{"descr": "<f8", "fortran_order": {1}, "shape": {2}}}'), SAME),
    "blanks in the header": (npy(header="{{ 'descr' : {0} ,\t'fortran_order':{1},'shape' :{2} }}"),
                             SAME),
    "native byte order": (npy(descr="'=f8'"), WE_REFUSE,
                          "a file names its byte order; numpy.save never writes this"),
    "no byte order": (npy(descr="'f8'"), WE_REFUSE,
                      "a file names its byte order; numpy.save never writes this"),
    "name of a type": (npy(descr="'float64'"), WE_REFUSE, "numpy.save never writes this"),
    "half precision": (npy(descr="'<f2'", data=lambda c: c[:len(c) // 4]), WE_REFUSE, UNUSED),
    "complex elements": (npy(descr="'<c8'"), WE_REFUSE, UNUSED),
    "booleans": (npy(descr="'|b1'", data=lambda c: b"\1" * (len(c) // 8)), WE_REFUSE, UNUSED),
    "structured": (npy(descr="[('a', '<f8')]"), WE_REFUSE, UNUSED),
    "objects": (npy(descr="'|O'"), BOTH_REFUSE),
    "dates": (npy(descr="'<M8[s]'"), WE_REFUSE, UNUSED),
    "three dimensions": (npy(shape="(2, 1, 1)", data=lambda c: c[:16]), WE_REFUSE, UNUSED),
    "a scalar": (npy(shape="()", data=lambda c: c[:8]), WE_REFUSE, UNUSED),
    "negative shape": (npy(shape="(-1, 1)"), WE_REFUSE, STRICT),
    "shape no tuple": (npy(shape="2"), BOTH_REFUSE),
    "shape of a fraction": (npy(shape="(2.0, 1)"), BOTH_REFUSE),
    "shape of Python 2": (npy(shape="(2L, 1L)", data=lambda c: c[:16], version=(1, 0)), SAME),
    "order no boolean": (npy(fortran="0"), BOTH_REFUSE),
    "key missing": (npy(header="{{'descr': {0}, 'fortran_order': {1}}}"), BOTH_REFUSE),
    "key too many": (npy(header="{{'descr': {0}, 'fortran_order': {1}, 'shape': {2}, 'a': 1}}"),
                     BOTH_REFUSE),
    "key twice": (npy(header="{{'descr': '<f4', 'descr': {0}, 'fortran_order': {1}, "
                             "'shape': {2}}}"), WE_REFUSE, STRICT),
    "no dictionary": (npy(header="[1, 2]"), BOTH_REFUSE),
    "unknown version": (npy(version=(4, 0)), BOTH_REFUSE),
    "unknown minor version": (npy(version=(1, 1)), BOTH_REFUSE),
    "elements cut": (npy(data=lambda c: c[:-1]), BOTH_REFUSE),
    "elements too many in .npy": (npy(data=lambda c: c + b"\0"), WE_REFUSE, STRICT),
}


def outcome_of(reader, path, single):
    """Reads an odd file with both; returns the outcome and what each said."""
    try:
        ours, said = reader.read(path, single), ""
    except Refused as refusal:
        ours, said = None, str(refusal)
    try:
        expected = expected_matrix(path, single)
    except Exception as refusal:  # SciPy refuses in many ways
        return (BOTH_REFUSE if ours is None else SCIPY_REFUSES), f"{said}; SciPy: {refusal}"
    if ours is None:
        return WE_REFUSE, said
    return difference(ours, expected, True) or SAME, "ours"


def compare_odd(reader, options, folder):
    """Returns the number of odd files whose outcome is not the one of the table."""
    wrong = 0
    counts = dict.fromkeys((SAME, BOTH_REFUSE, WE_REFUSE, SCIPY_REFUSES), 0)
    for index, name in enumerate(itertools.islice(itertools.cycle(ODDITIES), options.odd)):
        make, wanted, *_ = ODDITIES[name]
        content, ending = make(np.random.default_rng([options.seed, index]))
        path = os.path.join(folder, f"odd{index}{ending}")
        with open(path, "wb") as file:
            file.write(content)
        found, said = outcome_of(reader, path, single=index % 3 == 0)
        os.remove(path)
        if found == wanted:
            counts[wanted] += 1
            continue
        wrong += 1
        print(f"odd file {index} of seed {options.seed}, {name}: {found}, not: {wanted} ({said})",
              file=sys.stderr)
    print(f"odd files: {counts}")
    return wrong


def compare_good(reader, options, folder):
    """Returns the number of good files that are not read alike."""
    random = np.random.default_rng(options.seed)
    different, elements, seen = 0, 0, set()
    for index, (kind, write, variant) in enumerate(itertools.islice(variants(), options.count)):
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
            found = difference(reader.read(path, single, shown_as), expected, signed_zeros)
        except ValueError as error:
            found, expected = str(error), np.zeros(0)
        if found:
            different += 1
            print(f"file {index} of seed {options.seed}, {kind} {variant} "
                  f"{'float' if single else 'double'}: {found}", file=sys.stderr)
        seen.add((kind, variant))
        elements += expected.size
        os.remove(path)
    print(f"good files: {options.count}, {len(seen)} variants, {elements} elements")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver", help="path of the program matrix_dump")
    parser.add_argument("--count", type=int, default=2000, help="good files to compare")
    parser.add_argument("--odd", type=int, default=1500, help="odd files to compare")
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice")
    options = parser.parse_args()

    warnings.simplefilter("ignore", getattr(np, "exceptions", np).ComplexWarning)
    reader = Reader(options.driver)
    with tempfile.TemporaryDirectory() as folder:
        different = compare_good(reader, options, folder) + compare_odd(reader, options, folder)
    different += reader.close() != 0
    if different:
        print(f"failed: {different} files differ; again: {' '.join(sys.argv)}", file=sys.stderr)
        return 1
    print(f"proof: {options.count + options.odd} files read like SciPy {scipy.__version__} and "
          f"NumPy {np.__version__}, {sum(len(row) > 2 for row in ODDITIES.values())} decisions of "
          f"{len(ODDITIES)} oddities")
    return 0


if __name__ == "__main__":
    sys.exit(main())
