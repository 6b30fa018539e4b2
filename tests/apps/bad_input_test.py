"""Gives `weir run` what it must refuse: exit code, one line, and where the fault is."""

import io
import itertools
import os
import struct
import unittest

import numpy as np
import scipy.linalg

import weir_cli
from weir_cli import BAD_INPUT, DOMAINS, RUN_FAILED, TYPES, USAGE, positive_definite

BANNER = "%%MatrixMarket matrix "
SYMMETRIC = BANNER + "coordinate real symmetric\n"

# name: (content, line of the fault, words of the message)
MARKET_FAULTS = {
    "wrong word": (BANNER + "coordinate real lopsided\n1 1 0\n", 1, ["lopsided"]),
    "complex": (BANNER + "coordinate complex general\n1 1 1\n1 1 1 0\n", 1, ["complex"]),
    "no size": (SYMMETRIC + "% nothing more\n", 3, ["size line"]),
    "half a size": (SYMMETRIC + "2 2\n1 1 1\n", 2, ["entries"]),
    "not square": (SYMMETRIC + "2 3 1\n1 1 1\n", 2, ["square"]),
    "fewer entries": (SYMMETRIC + "2 2 2\n1 1 1111111\n", 4, ["end of the file"]),
    "more entries": (SYMMETRIC + "1 1 1\n1 1 1\n1 1 1\n", 4, ["end of the file"]),
    "row outside": (SYMMETRIC + "2 2 2\n1 1 1\n3 1 1\n", 4, ["3"]),
    "row 0": (SYMMETRIC + "2 2 2\n1 1 1\n0 1 1\n", 4, ["0"]),
    "negative row": (SYMMETRIC + "2 2 2\n1 1 1\n-1 1 1\n", 4, ["-1"]),
    "no number": (SYMMETRIC + "2 2 2\n1 1 1\n2 2 two\n", 4, ["two"]),
    "too much on a line": (SYMMETRIC + "2 2 2\n1 1 1 9\n2 2 1\n", 3, ["9"]),
    "binary": (SYMMETRIC.encode() + b"1 1 1\n1 1 \x00\xff\x1b[31m\n", 3, []),
    "huge": (SYMMETRIC + "4000000000 4000000000 1\n1 1 1\n", 2, ["4000000000"]),
    "overflow": (SYMMETRIC + "99999999999999999999 1 1\n1 1 1\n", 2, ["99999999999999999999"]),
    "many entries": (SYMMETRIC + "9 9 1000000000000\n1 1 1\n", 2, ["1000000000000"]),
    "long line": (SYMMETRIC + "1 1 1\n1 1 1" + " " * 100000 + "\n", 3, []),
}


def npy(header, data=b"", magic=b"\x93NUMPY\x01\x00"):
    return magic + struct.pack("<H", len(header)) + header.encode() + data


def npy_of(matrix):
    file = io.BytesIO()
    np.save(file, matrix, allow_pickle=True)
    return file.getvalue()


def described(shape, descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


# name: (content, words of the message)
NPY_FAULTS = {
    "only magic": (b"\x93NUMPY", []),
    "version": (npy(described("(1, 1)"), b"\0" * 8, b"\x93NUMPY\x09\x00"), ["9.0"]),
    "cut header": (npy_of(np.eye(3))[:40], []),
    "cut data": (npy_of(np.eye(3))[:-1], []),
    "data too long": (npy_of(np.eye(3)) + b"\0", ["1"]),
    "huge": (npy(described("(4000000000, 4000000000)")), ["4000000000"]),
    "overflow": (npy(described("(99999999999999999999, 1)")), []),
    "negative": (npy(described("(-1, 1)"), b"\0" * 8), []),
    "three dimensions": (npy_of(np.zeros((2, 2, 2))), []),
    "complex": (npy_of(np.zeros((2, 2), complex)), ["<c16"]),
    "objects": (npy_of(np.array([[None]])), ["pickled"]),
    "no dictionary": (npy("hello\n", b"\0" * 8), ["hello"]),
    "no shape": (npy("{'descr': '<f8', 'fortran_order': False}\n", b"\0" * 8), ["shape"]),
    "unknown key": (npy("{'descr': '<f8', 'colour': 1}\n"), ["colour"]),
}


class FileTest(weir_cli.CliTest):
    def refused(self, path, *options):
        message = self.refusal("run", "cholesky", "--input", path, *options, code=BAD_INPUT)
        self.assertIn(path, message)
        self.assertTrue(message.removesuffix("\n").isprintable(), repr(message))
        return message

    def test_faulty_matrix_market_files_are_refused_with_file_and_line(self):
        for name, (content, line, words) in MARKET_FAULTS.items():
            with self.subTest(name):
                path = self.write("fault.mtx", content)
                message = self.refused(path)
                self.assertIn(f"{path}:{line}:", message)
                for word in words:
                    self.assertIn(word, message)

    def test_faulty_npy_files_are_refused_with_the_byte_of_the_fault(self):
        for name, (content, words) in NPY_FAULTS.items():
            with self.subTest(name):
                path = self.write("fault.npy", content)
                message = self.refused(path)
                self.assertRegex(message, r"byte \d+")
                for word in words:
                    self.assertIn(word, message)

    def test_truncated_files_are_refused_with_a_position(self):
        """Cut anywhere, a file is refused with a position; only a lost last newline is harmless."""
        text = (SYMMETRIC + "2 2 3\n1 1 4\n2 1 1\n2 2 30\n").encode()
        for length in range(0, len(text) - 2, 7):
            with self.subTest(kind="mtx", length=length):
                message = self.refused(self.write("cut.mtx", text[:length]))
                self.assertRegex(message, r"cut.mtx:\d+: " if length >= 14 else "byte 0")
        data = npy_of(np.eye(2))
        for length in range(0, len(data), 11):
            with self.subTest(kind="npy", length=length):
                message = self.refused(self.write("cut.npy", data[:length]))
                self.assertRegex(message, r"byte \d+")

    def test_missing_files_folders_pipes_and_plain_text_are_refused_as_input(self):
        self.assertIn("No such file", self.refused(self.path("absent.mtx")))
        self.assertIn("directory", self.refused(self.folder))
        self.assertIn("byte 0", self.refused(self.write("text.mtx", "2 2 1\n1 1 1\n")))
        os.mkfifo(self.path("pipe"))
        self.refused(self.path("pipe"))

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_a_file_without_read_permission_is_refused(self):
        path = self.write("secret.mtx", SYMMETRIC)
        os.chmod(path, 0)
        self.assertIn("Permission denied", self.refused(path))

    def test_cholesky_refuses_matrices_that_are_wide_empty_or_not_symmetric(self):
        self.refused(self.save("wide.npy", np.ones((2, 3))))
        self.refused(self.save("none.npy", np.zeros((0, 0))))
        message = self.refused(self.save("skewed.npy", np.array([[2.0, 1.0], [0.5, 2.0]])))
        self.assert_names(message, "symmetric", 2, 1)

    def test_a_nan_or_infinity_in_a_matrix_is_refused_with_its_row_and_column(self):
        for wrong, kind in itertools.product((np.nan, np.inf, -np.inf), TYPES.values()):
            matrix = positive_definite(9).astype(kind)
            matrix[6, 6] = wrong
            bad, good = self.save("bad.npy", matrix), self.save("A.npy", np.eye(9))
            for arguments in (("cholesky", "--input", bad), ("lu", "--input", bad),
                              ("matmul", "--input", bad), ("matmul", "--n", 9, "--second", bad),
                              ("cholesky", "--input", good, "--rhs", bad),
                              ("lu", "--input", good, "--rhs", bad),
                              ("sparse-cholesky", "--n", 2, "--rhs", bad)):
                with self.subTest(" ".join(map(str, arguments)), wrong=wrong):
                    message = self.refusal("run", *arguments, code=BAD_INPUT)
                    self.assertIn(f"{bad}: row 7, column 7: found {wrong}, expected", message)

    def test_missing_right_hand_sides_and_those_of_wrong_size_are_refused(self):
        matrix = self.save("A.npy", np.eye(3))
        for name, rhs in (("short", np.ones(2)), ("long", np.ones(4)), ("none", np.ones((3, 0)))):
            with self.subTest(name):
                path = self.save("b.npy", rhs)
                message = self.refusal("run", "cholesky", "--input", matrix, "--rhs", path,
                                       code=BAD_INPUT)
                self.assertIn(path, message)
        missing = self.path("missing.npy")
        self.assertIn(missing, self.refusal("run", "cholesky", "--input", matrix, "--rhs", missing,
                                            code=BAD_INPUT))

    def test_matmul_refuses_factors_whose_sizes_do_not_fit(self):
        left, right = self.save("A.npy", np.ones((2, 3))), self.save("B.npy", np.ones((2, 3)))
        message = self.refusal("run", "matmul", "--input", left, "--second", right, code=BAD_INPUT)
        self.assert_names(message, left, right)

    def test_output_without_a_folder_or_a_known_format_is_refused_and_not_written(self):
        matrix = self.save("A.npy", np.eye(3))
        for name in ("absent/L.npy", "L.txt", "L"):
            with self.subTest(name):
                path = self.path(name)
                message = self.refusal("run", "cholesky", "--input", matrix, "--repeat", 1,
                                       "--output", path, code=BAD_INPUT)
                self.assertIn(path, message)
                self.assertFalse(os.path.exists(path))

    def test_unwritable_outputs_and_traces_are_refused_before_the_run(self):
        for option, file, expected in (
            ("--output", self.path("result.txt"), "extension '.txt'"),
            ("--output", self.path("no/folder.npy"), "is not a folder"),
            ("--trace", self.path("no/folder.json"), "is not a folder"),
        ):
            # A run would exceed its deadline, which is another exit code.
            with self.subTest(option=option, file=file):
                _, message = self.weir("run", "matmul", "--n", "64", "--timeout", "1e-9",
                                       option, file, code=BAD_INPUT)
                self.assertIn(expected, message)

    def test_unwritable_labels_permutation_and_solution_are_refused_before_the_run(self):
        missing, rhs = self.path("no/folder.npy"), self.save("b.npy", np.ones(64))
        for options in (("kmeans", "--n", 1000, "--labels", missing),
                        ("lu", "--n", 64, "--permutation", missing),
                        ("lu", "--n", 64, "--rhs", rhs, "--solution", missing),
                        ("cholesky", "--n", 64, "--rhs", rhs, "--solution", missing)):
            with self.subTest(options[0]):
                message = self.refusal("run", *options, "--timeout", "1e-9", code=BAD_INPUT)
                self.assertIn(f"{missing}: cannot be written: ", message)

    def test_a_matrix_larger_than_the_memory_is_refused_with_its_size(self):
        for app in ("cholesky", "matmul"):
            self.assert_names(self.refusal("run", app, "--n", 2000000000, code=BAD_INPUT),
                              2000000000)


class IndefiniteTest(weir_cli.CliTest):
    def indefinite(self, n, row):
        matrix = positive_definite(n)
        matrix[row, row] = -1
        return matrix

    def test_cholesky_of_an_indefinite_matrix_names_the_leading_minor_of_lapack(self):
        for precision, domains, row in ((p, d, r) for p in TYPES for d in DOMAINS
                                        for r in (0, 63, 64, 150, 199)):
            with self.subTest(precision=precision, domains=domains, row=row):
                matrix = self.indefinite(200, row).astype(TYPES[precision])
                potrf, = scipy.linalg.get_lapack_funcs(("potrf",), (matrix,))
                order = potrf(matrix, lower=True)[1]
                self.assertEqual(order, row + 1)
                message = self.refusal("run", "cholesky", "--input", self.save("A.npy", matrix),
                                       "--precision", precision, "--tile", 64, "--domains",
                                       domains, code=RUN_FAILED)
                self.assertRegex(message, rf"leading minor of order {order}\b")

    def test_cholesky_of_a_zero_matrix_names_the_leading_minor_of_order_1(self):
        message = self.refusal("run", "cholesky", "--input", self.save("A.npy", np.zeros((5, 5))),
                               code=RUN_FAILED)
        self.assertRegex(message, r"leading minor of order 1\b")

    def test_a_failed_cholesky_writes_no_output_file(self):
        self.refusal("run", "cholesky", "--input", self.save("A.npy", self.indefinite(50, 20)),
                     "--output", self.path("L.npy"), code=RUN_FAILED)
        self.assertFalse(os.path.exists(self.path("L.npy")))


class UsageTest(weir_cli.CliTest):
    def test_a_misspelt_application_gets_a_suggestion(self):
        message = self.refusal("run", "cholesk", "--n", 10, code=USAGE)
        self.assertIn("'cholesk'", message)
        self.assertRegex(message, "did you mean '?cholesky")

    def test_a_misspelt_option_gets_a_suggestion(self):
        message = self.refusal("run", "cholesky", "--tiel", 64, code=USAGE)
        self.assertRegex(message, "did you mean '?--tile")

    def test_invalid_arguments_end_with_the_usage_exit_code(self):
        for arguments in (["run"], ["run", "cholesky", "--n", "many"], ["run", "cholesky", "--n"],
                          ["run", "cholesky", "--n", "0"], ["run", "cholesky", "--n", "-4"],
                          ["run", "cholesky", "--tile", "0"], ["run", "matmul", "--repeat", "0"],
                          ["run", "matmul", "--places", "0"], ["run", "matmul", "--streams", "0"],
                          ["run", "matmul", "--precision", "half"], ["run", "matmul", "extra"],
                          ["run", "cholesky", "--solution", "u.npy"], ["jump"], ["--jump"]):
            with self.subTest(" ".join(arguments)):
                self.refusal(*arguments, code=USAGE)

    def test_control_characters_in_arguments_are_quoted_in_one_printable_line(self):
        """What it quotes of the arguments does nothing to a terminal."""
        for arguments in (["--\x1b[31m"], ["run\n", "cholesky"], ["run", "chol\tesky"],
                          ["info", "a\x7fb"], ["help", "\r\n"]):
            with self.subTest(repr(arguments)):
                message = self.refusal(*arguments, code=USAGE)
                self.assertTrue(message.removesuffix("\n").isprintable(), repr(message))

    def test_a_timeout_of_more_than_centuries_is_accepted(self):
        for seconds in ("9.3e9", "1e300"):
            with self.subTest(seconds):
                self.weir("run", "matmul", "--n", 8, "--repeat", 1, "--timeout", seconds)

    def test_help_is_written_to_standard_output_and_nothing_to_standard_error(self):
        for arguments in (["--help"], ["run", "--help"], ["run", "cholesky", "--help"]):
            output, message = self.weir(*arguments)
            self.assertIn("--", output)
            self.assertEqual(message, "")


class ConfigurationTest(weir_cli.CliTest):
    def refused(self, domains, *options):
        return self.refusal("run", "matmul", "--n", 64, "--domains", domains, *options,
                            code=BAD_INPUT)

    def test_faulty_domains_are_refused_with_the_faulty_word(self):
        for domains, word in (("gpu", "gpu"), ("host:colour=red", "colour"),
                              ("sim:cores=0", "cores"), ("sim:cores=many", "many"),
                              ("sim:gbps=-1", "gbps"), ("sim:duplex=triple", "triple"),
                              ("host,,sim", "''"), (":", ":")):
            with self.subTest(domains):
                self.assertIn(word, self.refused(domains))

    def test_more_places_than_cores_are_refused(self):
        self.assert_names(self.refused("sim:cores=2", "--places", 3), 3, 2)


if __name__ == "__main__":
    weir_cli.main()
