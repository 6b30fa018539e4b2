#include "common/matrix_io.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dense.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir::apps {
namespace {

using std::string_literals::operator""s;

constexpr std::size_t megabyte = std::size_t{1} << 20;
const ReadLimits small{.bytes = megabyte};

template <class T = double>
Matrix<T> parse(const std::string& bytes, const ReadLimits& limits = small) {
  return read_matrix_from<T>(bytes, "m", limits);
}

std::string error_of(const std::string& bytes, const ReadLimits& limits = small) {
  return thrown_by<InputError>([&] { parse(bytes, limits); });
}

/// Returns the elements column by column.
template <class T>
std::vector<T> elements(const Matrix<T>& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

std::string market(const std::string& kind, const std::string& body) {
  return "%%MatrixMarket matrix " + kind + "\n" + body;
}

template <class T>
std::string raw(std::vector<T> values, bool swapped = false) {
  std::string bytes;
  for (const T value : values) {
    std::string one(reinterpret_cast<const char*>(&value), sizeof(T));
    if (swapped) one.assign(one.rbegin(), one.rend());
    bytes += one;
  }
  return bytes;
}

std::string npy_with_header(const std::string& header, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY"s + static_cast<char>(version) + '\0';
  const auto length = static_cast<std::uint32_t>(header.size());
  file.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return file + header + data;
}

std::string npy(const std::string& descr, bool fortran, const std::string& shape,
                const std::string& data, int version = 1) {
  const std::string order = fortran ? "True" : "False";
  return npy_with_header(
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n",
      data, version);
}

class Files : public testing::Test, public TemporaryFolder {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  static std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static std::string error_of_reading(const std::string& path) {
    return thrown_by<InputError>([&] { read_matrix<double>(path); });
  }

  static std::string error_of_writing(const std::string& path, const Matrix<double>& matrix) {
    return thrown_by<InputError>([&] { write_matrix(path, matrix); });
  }
};

Matrix<double> numbers(std::size_t rows, std::size_t columns) {
  Matrix<double> matrix(rows, columns);
  std::mt19937_64 random(rows * 31 + columns);
  for (std::size_t k = 0; k < matrix.size(); ++k) {
    const auto bits = random() & ~(std::uint64_t{1} << 62);
    matrix.data()[k] = std::bit_cast<double>(bits);
  }
  return matrix;
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Matrix, IsZeroAlignedAndColumnMajor) {
  for (const std::size_t rows : {1u, 3u, 64u, 1000u}) {
    Matrix<float> matrix(rows, 7);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data()) % Matrix<float>::alignment, 0u);
    EXPECT_EQ(matrix.leading_dimension(), rows);
    EXPECT_EQ(matrix.size(), rows * 7);
    for (const float element : elements(matrix)) EXPECT_EQ(element, 0.0f);
    matrix(rows - 1, 6) = 5;
    EXPECT_EQ(matrix.data()[rows * 7 - 1], 5.0f);
  }
}

TEST(Matrix, MatrixOfTiles_ColumnStrideIsAnOddNumberOfCacheLines) {
  for (const std::size_t rows : {1u, 8u, 60u, 64u, 4096u}) {
    Matrix<double> matrix = make_matrix_of_tiles<double>(rows, 3, 1);
    EXPECT_GE(matrix.leading_dimension(), rows);
    EXPECT_EQ(matrix.leading_dimension() % 16, 8u) << "8 of them in a line";
    EXPECT_EQ(matrix.size(), rows * 3);
    EXPECT_EQ(matrix.stored(), matrix.leading_dimension() * 3);
    EXPECT_EQ(&matrix(0, 2), matrix.data() + 2 * matrix.leading_dimension());
    Matrix<double> dense(rows, 3);
    for (std::size_t k = 0; k < dense.size(); ++k) dense.data()[k] = static_cast<double>(k + 1);
    copy(dense, matrix);
    EXPECT_EQ(matrix(rows - 1, 2), static_cast<double>(3 * rows));
    const Matrix<double> moved = std::move(matrix);
    Matrix<double> back(rows, 3);
    copy(moved, back);
    EXPECT_TRUE(std::equal(back.data(), back.data() + back.size(), dense.data()));
  }
}

TEST(Matrix, Move_TransfersElementsAndEmptiesTheSource) {
  Matrix<double> source(2, 3);
  source(1, 2) = 4;
  const double* data = source.data();
  Matrix<double> target = std::move(source);
  EXPECT_EQ(target.data(), data);
  EXPECT_EQ(source.rows(), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(source.data(), nullptr);
  source = std::move(target);
  EXPECT_EQ(source(1, 2), 4.0);
  EXPECT_EQ(target.columns(), 0u);  // NOLINT(bugprone-use-after-move)
}

TEST(Matrix, SizeThatOverflows_ThrowsBadAlloc) {
  constexpr std::size_t large = std::size_t{1} << 33;
  EXPECT_THROW(Matrix<double>(large, large), std::bad_alloc);
  EXPECT_THROW(Matrix<double>(1, std::numeric_limits<std::size_t>::max() / 8), std::bad_alloc);
}

TEST(Matrix, UntouchedElements_TakeNoPhysicalMemory) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "the sanitizer takes memory of its own for it";
#endif
  constexpr long quarter_in_kilobytes = 1 << 18;
  const long before = peak_kilobytes();
  const Matrix<double> matrix(std::size_t{1} << 14, std::size_t{1} << 13);
  EXPECT_EQ(matrix(16383, 8191), 0.0);
  EXPECT_LT(peak_kilobytes() - before, quarter_in_kilobytes);
}

TEST(MatrixMarket, ReadsAnArrayColumnByColumn) {
  const auto matrix = parse(market("array real general", "2 3\n1\n2\n3\n4\n5\n-6.5e1\n"));
  EXPECT_EQ(matrix.rows(), 2u);
  EXPECT_EQ(matrix.columns(), 3u);
  EXPECT_EQ(elements(matrix), (std::vector<double>{1, 2, 3, 4, 5, -65}));
}

TEST(MatrixMarket, ExpandsSymmetricArrays) {
  EXPECT_EQ(elements(parse(market("array integer symmetric", "2 2\n1\n2\n3\n"))),
            (std::vector<double>{1, 2, 2, 3}));
  EXPECT_EQ(elements(parse(market("array real skew-symmetric", "3 3\n1\n2\n3\n"))),
            (std::vector<double>{0, 1, 2, -1, 0, 3, -2, -3, 0}));
}

TEST(MatrixMarket, SymmetricArrayLargerThanATile_IsExpanded) {
  constexpr std::size_t n = 70;
  std::string body = "70 70\n";
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) body += std::to_string(i * n + j) + "\n";
  }
  const auto matrix = parse(market("array real symmetric", body));
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(matrix(i, j), static_cast<double>(std::max(i, j) * n + std::min(i, j)));
    }
  }
}

TEST(MatrixMarket, Coordinates_SetListedEntriesAndZeroTheRest) {
  EXPECT_EQ(elements(parse(market("coordinate real general", "2 2 2\n2 1 1.5\n1 2 -2\n"))),
            (std::vector<double>{0, 1.5, -2, 0}));
  EXPECT_EQ(elements(parse(market("coordinate pattern general", "2 2 1\n1 2\n"))),
            (std::vector<double>{0, 0, 1, 0}));
  EXPECT_EQ(elements(parse(market("coordinate real general", "2 1 0\n"))),
            (std::vector<double>{0, 0}));
}

TEST(MatrixMarket, SymmetricCoordinatesOfEitherTriangle_AreMirrored) {
  EXPECT_EQ(elements(parse(market("coordinate real symmetric", "2 2 2\n2 1 3\n2 2 4\n"))),
            (std::vector<double>{0, 3, 3, 4}));
  EXPECT_EQ(elements(parse(market("coordinate integer symmetric", "2 2 1\n1 2 3\n"))),
            (std::vector<double>{0, 3, 3, 0}));
  EXPECT_EQ(elements(parse(market("coordinate real skew-symmetric", "2 2 2\n2 1 3\n1 1 0\n"))),
            (std::vector<double>{0, 3, -3, 0}));
}

TEST(MatrixMarket, DuplicateCoordinates_AreSummed) {
  EXPECT_EQ(elements(parse(market("coordinate real general", "1 2 3\n1 1 1\n1 2 5\n1 1 2\n"))),
            (std::vector<double>{3, 5}));
  EXPECT_EQ(elements(parse(market("coordinate pattern symmetric", "2 2 2\n2 1\n2 1\n"))),
            (std::vector<double>{0, 2, 2, 0}));
}

TEST(MatrixMarket, IntegersOf64Bits_AreReadAndLargerOnesRefused) {
  const std::string most = "18446744073709551615\n";
  EXPECT_EQ(parse(market("array unsigned-integer general", "1 1\n" + most))(0, 0), 0x1p64);
  EXPECT_EQ(parse(market("array integer general", "1 1\n-9223372036854775808\n"))(0, 0), -0x1p63);
  EXPECT_EQ(error_of(market("array integer general", "1 1\n" + most)),
            "m:3: found '18446744073709551615', expected an integer of at most 64 bits");
}

TEST(MatrixMarket, ReadsNumbersAsPythonDoes) {
  const auto value = [](const std::string& text) {
    return parse(market("array real general", "1 1\n" + text + "\n"))(0, 0);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(value("+1.5"), 1.5);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value("5."), 5.0);
  EXPECT_EQ(value("1E+2"), 100.0);
  EXPECT_EQ(value("007"), 7.0);
  EXPECT_EQ(value("0.1000000000000000055511151231257827"), 0.1);
  EXPECT_EQ(value("4.9e-324"), 0x1p-1074);
  EXPECT_EQ(value("1e400"), infinity);
  EXPECT_EQ(value("-1e400"), -infinity);
  EXPECT_EQ(value("1e99999"), infinity);
  EXPECT_TRUE(std::signbit(value("-1e-400")));
  EXPECT_EQ(value("Infinity"), infinity);
  EXPECT_EQ(value("-inf"), -infinity);
  EXPECT_TRUE(std::isnan(value("NaN")));
  EXPECT_TRUE(std::isnan(value("-nan")));
  EXPECT_TRUE(std::signbit(value("-0")));
}

TEST(MatrixMarket, MalformedNumber_IsRefusedWithItsLine) {
  for (const std::string text : {"x", "1x", "1.5.2", "+-1", "--1", "+", "-", ".", "1e", "0x10",
                                 "1_0", "1,5", "nan(1)", "infin", "1.0D+00", "\"1\""}) {
    EXPECT_EQ(error_of(market("array real general", "1 1\n" + text + "\n")),
              "m:3: found '" + text + "', expected a number");
  }
  EXPECT_EQ(error_of(market("array integer general", "1 1\n1.5\n")),
            "m:3: found '1.5', expected an integer");
  EXPECT_EQ(error_of(market("array unsigned-integer general", "1 1\n-1\n")),
            "m:3: found '-1', expected an integer without a sign");
  EXPECT_EQ(error_of(market("coordinate real general", "1 1 1\n1.0 1 1\n")),
            "m:3: found '1.0', expected a row");
}

TEST(MatrixMarket, ReadAsFloat_RoundsToSinglePrecision) {
  const auto matrix = parse<float>(market("array real general", "3 1\n0.1\n1e39\n16777217\n"));
  EXPECT_EQ(elements(matrix),
            (std::vector<float>{0.1f, std::numeric_limits<float>::infinity(), 16777216.0f}));
}

TEST(MatrixMarket, ExtraBlanksCommentsAndCarriageReturns_AreIgnored) {
  const std::string loose =
      "%%MatrixMarket  MATRIX Array\tReal GENERAL \r\n"
      "% a comment\r\n\r\n%\n  \t\n 2  1 \r\n"
      "\n  1  \r\n% between\n\t2";
  EXPECT_EQ(elements(parse(loose)), (std::vector<double>{1, 2}));
  EXPECT_EQ(elements(parse(loose + "\n\n% after\n \n")), (std::vector<double>{1, 2}));
}

TEST(MatrixMarket, SkipsLongCommentsAndRefusesLongLines) {
  const std::string comment = "%" + std::string(megabyte, 'x') + "\n";
  EXPECT_EQ(parse(market("array real general", comment + "1 1\n" + comment + "3\n"))(0, 0), 3.0);
  const std::string refused =
      "m:3: found a line of more than 4096 bytes, expected one entry "
      "per line";
  EXPECT_EQ(error_of(market("array real general", "1 1\n1" + std::string(megabyte, ' ') + "\n")),
            refused);
  EXPECT_EQ(error_of(market("array real general", "1 1\n" + std::string(megabyte, '9') + "\n")),
            refused);
  EXPECT_EQ(parse(market("array real general", "1 1\n" + std::string(4000, '0') + "7\n"))(0, 0),
            7.0);
}

TEST(MatrixMarket, NamesTheLineOfABadBanner) {
  EXPECT_EQ(error_of("%%MatrixMarketing matrix array real general\n"),
            "m:1: found '%%MatrixMarketing', expected %%MatrixMarket");
  EXPECT_EQ(error_of("%%MatrixMarket vector array real general\n"),
            "m:1: found 'vector', expected matrix");
  EXPECT_EQ(error_of("%%MatrixMarket matrix dense real general\n"),
            "m:1: found 'dense', expected array or coordinate");
  EXPECT_EQ(error_of("%%MatrixMarket matrix array complex general\n"),
            "m:1: found 'complex', expected real or integer or unsigned-integer or pattern; "
            "complex matrices cannot be read");
  EXPECT_EQ(error_of("%%MatrixMarket matrix array real hermitian\n"),
            "m:1: found 'hermitian', expected general or symmetric or skew-symmetric; "
            "complex matrices cannot be read");
  EXPECT_EQ(error_of("%%MatrixMarket matrix array real"),
            "m:1: found the end of the file, expected general or symmetric or skew-symmetric");
  EXPECT_EQ(error_of("%%MatrixMarket matrix\n"),
            "m:1: found the end of the line, expected array or coordinate");
  EXPECT_EQ(error_of("%%MatrixMarket matrix array real general more\n"),
            "m:1: found 'more', expected the end of the line");
  EXPECT_EQ(error_of(market("array pattern general", "1 1\n1\n")),
            "m:1: found an array of field pattern, expected real, integer or unsigned-integer");
}

TEST(MatrixMarket, NamesTheLineOfABadSize) {
  EXPECT_EQ(error_of(market("array real general", "% only\n")),
            "m:3: found the end of the file, expected the size line");
  EXPECT_EQ(error_of(market("array real general", "%\n\n2\n")),
            "m:4: found the end of the line, expected a number of columns");
  EXPECT_EQ(error_of(market("array real general", "-2 2\n")),
            "m:2: found '-2', expected a number of rows");
  EXPECT_EQ(error_of(market("array real general", "1 1 1\n1\n")),
            "m:2: found '1', expected the end of the line");
  EXPECT_EQ(error_of(market("coordinate real general", "1 1\n1 1 1\n")),
            "m:2: found the end of the line, expected a number of entries");
  EXPECT_EQ(error_of(market("array real symmetric", "2 3\n1\n2\n3\n4\n5\n6\n")),
            "m:2: found 2 x 3, expected a square matrix as the file is not general");
  EXPECT_EQ(error_of(market("array real general", "99999999999999999999 1\n")),
            "m:2: found '99999999999999999999', expected a number of rows of at most 64 bits");
}

TEST(MatrixMarket, NamesTheLineOfABadEntry) {
  EXPECT_EQ(error_of(market("array real general", "2 1\n1 2\n")),
            "m:3: found '2', expected the end of the line");
  EXPECT_EQ(error_of(market("array real general", "2 1\n1\n% two is missing\n")),
            "m:5: found the end of the file after 1 entries, expected 2");
  EXPECT_EQ(error_of(market("array real general", "1 1\n1\n\n2\n")),
            "m:5: found '2' after all 1 entries, expected the end of the file");
  EXPECT_EQ(error_of(market("coordinate real general", "2 3 1\n3 1 1\n")),
            "m:3: found 3 where a row must be, expected 1 to 2");
  EXPECT_EQ(error_of(market("coordinate real general", "2 3 1\n1 0 1\n")),
            "m:3: found 0 where a column must be, expected 1 to 3");
  EXPECT_EQ(error_of(market("coordinate real general", "2 3 1\n1 1\n% padding\n")),
            "m:3: found the end of the line, expected a number");
  EXPECT_EQ(error_of(market("coordinate pattern general", "1 1 1\n1 1 1\n")),
            "m:3: found '1', expected the end of the line");
  EXPECT_EQ(error_of(market("coordinate real skew-symmetric", "2 2 1\n2 2 0.5\n")),
            "m:3: found 0.5 on the diagonal, expected 0 as the file is skew-symmetric");
}

TEST(MatrixMarket, UnprintableOrLongToken_IsEscapedOrTruncatedInTheMessage) {
  EXPECT_EQ(error_of(market("array real general", "1 1\n\x1b[31m\x01\n")),
            "m:3: found '\\x1b[31m\\x01', expected a number");
  EXPECT_EQ(error_of(market("array real general", "1 1\n" + std::string(500, 'y') + "\n")),
            "m:3: found '" + std::string(32, 'y') + "...', expected a number");
}

TEST(MatrixMarket, MatrixOverTheMemoryLimit_IsRefused) {
  EXPECT_EQ(error_of(market("array real general", "4000000000 4000000000\n1\n"), ReadLimits{}),
            "m:2: found a matrix of 4000000000 x 4000000000, which takes over 2^64 bytes, "
            "expected at most " +
                std::to_string(half_of_memory()) + " bytes");
  EXPECT_EQ(error_of(market("coordinate real general", "1024 129 0\n")),
            "m:2: found a matrix of 1024 x 129, which takes 1056768 bytes, expected at most "
            "1048576 bytes");
  EXPECT_EQ(parse(market("coordinate real general", "1024 128 0\n")).columns(), 128u);
  EXPECT_EQ(error_of(market("coordinate real general", "0 18446744073709551615 0\n")),
            "m:2: found a matrix of 0 x 18446744073709551615, which takes over 2^64 bytes, "
            "expected at most 1048576 bytes");
}

TEST(MatrixMarket, RefusesMoreEntriesThanTheFileCanHold) {
  EXPECT_EQ(error_of(market("array real general", "100 100\n1\n")),
            "m:2: found a size of 10000 entries, which take at least 2 bytes each, but 2 bytes "
            "follow");
  EXPECT_EQ(error_of(market("coordinate pattern general", "2 2 18446744073709551615\n1 1\n")),
            "m:2: found a size of 18446744073709551615 entries, which take at least 4 bytes each, "
            "but 4 bytes follow");
  EXPECT_EQ(parse(market("coordinate pattern general", "2 2 2\n1 1\n2 2")).rows(), 2u);
  EXPECT_EQ(parse(market("coordinate integer general", "2 2 2\n1 1 1\n2 2 2"))(1, 1), 2.0);
}

TEST(MatrixMarket, ReadsEmptyMatrices) {
  EXPECT_EQ(parse(market("array real general", "0 3\n")).columns(), 3u);
  EXPECT_EQ(parse(market("array real skew-symmetric", "0 0\n")).size(), 0u);
  EXPECT_EQ(parse(market("array real skew-symmetric", "1 1\n"))(0, 0), 0.0);
}

TEST(Npy, FortranOrCOrder_IsReadIntoColumnMajorOrder) {
  const std::string data = raw<double>({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(elements(parse(npy("<f8", true, "(2, 3)", data))),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(elements(parse(npy("<f8", false, "(2, 3)", data))),
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(Npy, FormatVersions1To3_AreRead) {
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(parse(npy("<f8", true, "(1, 1)", raw<double>({7}), version))(0, 0), 7.0);
  }
}

TEST(Npy, ReadsAVectorAsAColumn) {
  for (const bool fortran : {false, true}) {
    const auto matrix = parse(npy("<f4", fortran, "(3,)", raw<float>({1, 2, 3})));
    EXPECT_EQ(matrix.columns(), 1u);
    EXPECT_EQ(elements(matrix), (std::vector<double>{1, 2, 3}));
  }
}

template <class Source>
void expect_converted(const std::string& code) {
  const std::vector<Source> values = {std::numeric_limits<Source>::lowest(), Source{1}, Source{42},
                                      std::numeric_limits<Source>::max()};
  for (const bool swapped : {false, true}) {
    const std::string descr = (swapped ? ">" : "<") + code;
    const auto bytes = npy(descr, false, "(2, 2)", raw(values, swapped));
    const auto wide = parse<double>(bytes);
    const auto narrow = parse<float>(bytes);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(wide(k / 2, k % 2), static_cast<double>(values[k])) << descr;
      EXPECT_EQ(narrow(k / 2, k % 2), static_cast<float>(values[k])) << descr;
    }
  }
}

TEST(Npy, ConvertsEveryElementTypeInBothByteOrders) {
  expect_converted<double>("f8");
  expect_converted<float>("f4");
  expect_converted<std::int8_t>("i1");
  expect_converted<std::int16_t>("i2");
  expect_converted<std::int32_t>("i4");
  expect_converted<std::int64_t>("i8");
  expect_converted<std::uint8_t>("u1");
  expect_converted<std::uint16_t>("u2");
  expect_converted<std::uint32_t>("u4");
  expect_converted<std::uint64_t>("u8");
  EXPECT_EQ(parse(npy("|u1", false, "(1,)", "\xff"))(0, 0), 255.0);
}

TEST(Npy, ConvertsMatricesOfManyTiles) {
  constexpr std::size_t rows = 65, columns = 100;
  std::vector<std::int32_t> values(rows * columns);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<std::int32_t>(k);
  const auto by_row = parse(npy("<i4", false, "(65, 100)", raw(values)));
  const auto by_column = parse(npy("<i4", true, "(65, 100)", raw(values)));
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(by_row(i, j), static_cast<double>(i * columns + j));
      ASSERT_EQ(by_column(i, j), static_cast<double>(i + j * rows));
    }
  }
}

TEST(Npy, HeaderWithOtherKeyOrderQuotesOrBlanks_IsRead) {
  const std::string data = raw<double>({5});
  for (const std::string header :
       {"{\"shape\":(1,1),\"descr\":\"<f8\",\"fortran_order\":False}",
        "  {'fortran_order': True,\n 'shape': (1L, 1L,), 'descr': '<f8' , } \n\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"}) {
    EXPECT_EQ(parse(npy_with_header(header, data))(0, 0), 5.0) << header;
  }
}

TEST(Npy, ReadsEmptyMatrices) {
  EXPECT_EQ(parse(npy("<f8", false, "(0, 5)", "")).columns(), 5u);
  EXPECT_EQ(parse(npy("<i2", true, "(0,)", "")).rows(), 0u);
}

TEST(Npy, NamesTheByteOfABadPreamble) {
  EXPECT_EQ(error_of("\x93NUMPY"),
            "m: byte 6: found 0 bytes up to the end, expected 2 bytes of "
            "the format version");
  EXPECT_EQ(error_of("\x93NUMPY\x04\x00    "s),
            "m: byte 6: found format version 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(error_of("\x93NUMPY\x01\x01    "s),
            "m: byte 6: found format version 1.1, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(error_of("\x93NUMPY\x02\x00\x01"s),
            "m: byte 8: found 1 bytes up to the end, expected 4 bytes of the header length");
  EXPECT_EQ(error_of("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s),
            "m: byte 12: found 2 bytes up to the end, expected 4294967295 bytes of the header");
}

std::string error_of_header(const std::string& header) {
  return error_of(npy_with_header(header, raw<double>({1})));
}

TEST(Npy, NamesTheByteOfABadHeader) {
  EXPECT_EQ(error_of_header(""), "m: byte 10: found the end of the header, expected '{'");
  EXPECT_EQ(error_of_header("[1]"), "m: byte 10: found '[1]', expected '{'");
  EXPECT_EQ(error_of_header("{"), "m: byte 11: found the end of the header, expected a key or '}'");
  EXPECT_EQ(error_of_header("{'shape' (1,)}"), "m: byte 19: found '(1', expected ':'");
  EXPECT_EQ(error_of_header("{'shape': (1,) 'descr': '<f8'}"),
            "m: byte 25: found ''descr': '<f8'', expected '}'");
  EXPECT_EQ(error_of_header("{'shape"), "m: byte 11: found ''shape', expected a key or '}'");
  EXPECT_EQ(error_of_header("{'order': 1}"),
            "m: byte 19: found the key 'order', expected descr, fortran_order or shape");
  EXPECT_EQ(error_of_header("{'shape': (1,), 'shape': (1,)}"),
            "m: byte 34: found 'shape' a second time, expected it once");
  EXPECT_EQ(error_of_header("{'shape': (1,), 'descr': '<f8'}"),
            "m: byte 41: found no 'fortran_order' in the header, expected descr, fortran_order "
            "and shape");
  EXPECT_EQ(error_of_header("{'fortran_order': 1}"),
            "m: byte 28: found '1', expected True or False");
  EXPECT_EQ(error_of_header("{} trailing"),
            "m: byte 13: found 'trailing', expected the end of the header");
}

TEST(Npy, NamesTheByteOfABadShape) {
  EXPECT_EQ(error_of_header("{'shape': 4}"), "m: byte 20: found '4', expected '('");
  EXPECT_EQ(error_of_header("{'shape': ()}"),
            "m: byte 20: found a scalar, expected 1 or 2 dimensions");
  EXPECT_EQ(error_of_header("{'shape': (1, 1, 1)}"),
            "m: byte 20: found 3 or more dimensions, expected 1 or 2");
  EXPECT_EQ(error_of_header("{'shape': (-1, 1)}"),
            "m: byte 21: found '-1', expected the length of a dimension");
  EXPECT_EQ(error_of_header("{'shape': (1.5, 1)}"), "m: byte 22: found '.5', expected ')'");
  EXPECT_EQ(error_of_header("{'shape': (99999999999999999999, 1)}"),
            "m: byte 21: found '99999999999999999999', expected the length of a dimension");
}

TEST(Npy, UnsupportedElementType_IsRefusedWithTheSupportedOnes) {
  const std::string expected = "expected f4, f8, i1 to i8 or u1 to u8 after a byte order < or >";
  for (const std::string descr : {"<f2", "<f16", "<c8", "|b1", "<U3", "|S1", "f8", "=f8", "|f8",
                                  "<i3", "<", "", "|V8", "<M8[ns]"}) {
    EXPECT_EQ(error_of_header("{'descr': '" + descr + "'}"),
              "m: byte 20: found '" + descr + "', " + expected);
  }
  EXPECT_EQ(error_of_header("{'descr': '|O'}"),
            "m: byte 20: found '|O', pickled objects, which are never loaded; " + expected);
  EXPECT_EQ(error_of_header("{'descr': [('a', '<f8')]}"),
            "m: byte 20: found a structured element type, " + expected);
  EXPECT_EQ(error_of_header("{'descr': ('<f8', (2,))}"),
            "m: byte 20: found a structured element type, " + expected);
}

TEST(Npy, TruncatedOrExcessData_IsRefused) {
  const std::string good = npy("<f8", false, "(2, 1)", raw<double>({1, 2}));
  const std::size_t begin = good.size() - 16;
  EXPECT_EQ(error_of(good.substr(0, good.size() - 1)),
            fmt::format("m: byte {}: found 15 bytes up to the end, expected 16 bytes of elements",
                        begin));
  EXPECT_EQ(error_of(good + "x"),
            fmt::format("m: byte {}: found 1 bytes after the last of 2 x 1 elements, expected the "
                        "end of the file",
                        good.size()));
}

TEST(Npy, MatrixOverTheMemoryLimit_IsRefused) {
  const std::string huge = npy("<f8", false, "(4000000000, 4000000000)", "");
  EXPECT_EQ(error_of(huge, ReadLimits{}),
            fmt::format("m: byte {}: found a matrix of 4000000000 x 4000000000, which takes over "
                        "2^64 bytes, expected at most {} bytes",
                        huge.size(), half_of_memory()));
  EXPECT_THROW(parse(npy("<f8", false, "(0, 18446744073709551615)", "")), InputError);
  EXPECT_THROW(parse<float>(npy("|u1", false, "(2097152,)", std::string(2 * megabyte, 'x'))),
               InputError);
  const ReadLimits unlimited{.bytes = std::numeric_limits<std::uint64_t>::max()};
  EXPECT_THROW(parse<float>(npy("<u8", false, "(2305843009213693952, 2)", ""), unlimited),
               InputError);
  EXPECT_THROW(parse<float>(npy("<u8", false, "(2305843009213693951, 1)", ""), unlimited),
               InputError);
}

TEST(MatrixFormats, FileOfNeitherFormat_IsRefused) {
  EXPECT_EQ(error_of(""), "m: byte 0: found an empty file, expected a matrix");
  EXPECT_EQ(error_of("1 2\n3 4\n"),
            "m: byte 0: found '1 2\\x0a3 4\\x0a', expected %%MatrixMarket or \\x93NUMPY");
  EXPECT_EQ(error_of("PK\x03\x04"),
            "m: byte 0: found 'PK\\x03\\x04', expected %%MatrixMarket or \\x93NUMPY");
}

TEST_F(Files, RoundTripInBothFormats) {
  for (const std::size_t columns : {0u, 1u, 5u, 40u}) {
    const auto matrix = numbers(33, columns);
    for (const std::string name : {"a.npy", "a.mtx"}) {
      write_matrix(path(name), matrix);
      const auto again = read_matrix<double>(path(name));
      EXPECT_EQ(again.rows(), 33u);
      EXPECT_EQ(again.columns(), columns);
      EXPECT_EQ(elements(again), elements(matrix)) << name;
    }
  }
  EXPECT_EQ(files(), 2u);
}

TEST_F(Files, RoundTripInSinglePrecision) {
  Matrix<float> matrix(2, 2);
  matrix(0, 0) = 0.1f;
  matrix(1, 0) = -std::numeric_limits<float>::denorm_min();
  matrix(0, 1) = std::numeric_limits<float>::infinity();
  matrix(1, 1) = std::numeric_limits<float>::max();
  for (const std::string name : {"a.npy", "a.mtx"}) {
    write_matrix(path(name), matrix);
    EXPECT_EQ(elements(read_matrix<float>(path(name))), elements(matrix)) << name;
  }
}

TEST_F(Files, MatchTheLayoutOfNumPyAndSciPy) {
  Matrix<double> matrix(1, 2);
  matrix(0, 1) = -0.1;
  write_matrix(path("a.mtx"), matrix);
  EXPECT_EQ(contents(path("a.mtx")),
            "%%MatrixMarket matrix array real general\n1 2\n"
            "0.0000000000000000e+00\n-1.0000000000000001e-01\n");
  write_matrix(path("a.npy"), matrix);
  const std::string bytes = contents(path("a.npy"));
  EXPECT_EQ(bytes.size(), 128u + 16);
  EXPECT_EQ(bytes.substr(0, 10), "\x93NUMPY\x01\x00\x76\x00"s);
  EXPECT_EQ(bytes.substr(10, 57), "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 2), ");
  EXPECT_EQ(bytes[127], '\n');
}

TEST_F(Files, MatrixWithPaddedColumns_WritesTheSameBytesAsADenseOne) {
  const Matrix<double> dense = numbers(20, 3);
  auto tiled = make_matrix_of_tiles<double>(20, 3, 1);
  copy(dense, tiled);
  ASSERT_GT(tiled.stored(), tiled.size());
  for (const char* name : {"a.mtx", "a.npy"}) {
    write_matrix(path(name), dense);
    const std::string expected = contents(path(name));
    write_matrix(path(name), tiled);
    EXPECT_EQ(contents(path(name)), expected) << name;
  }
}

TEST_F(Files, OverwriteBySmallerMatrix_LeavesOnlyTheNewFile) {
  write_matrix(path("a.npy"), numbers(50, 50));
  write_matrix(path("a.npy"), numbers(2, 3));
  EXPECT_EQ(read_matrix<double>(path("a.npy")).columns(), 3u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, FailedWrite_NamesTheReasonAndLeavesNoFile) {
  const auto matrix = numbers(2, 2);
  EXPECT_EQ(error_of_writing(path("a.txt"), matrix),
            path("a.txt") + ": found the extension '.txt', expected .npy or .mtx");
  EXPECT_EQ(error_of_writing(path(".d/npy"), matrix),
            path(".d/npy") + ": found the extension '', expected .npy or .mtx");
  EXPECT_EQ(error_of_writing(path("none/a.npy"), matrix),
            path("none/a.npy") + ": cannot be written: No such file or directory");
  std::filesystem::create_directory(path("b.mtx"));
  EXPECT_EQ(error_of_writing(path("b.mtx"), matrix),
            path("b.mtx") + ": cannot be written: Is a directory");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, WriteToNamedPipe_WritesIntoThePipe) {
  ASSERT_EQ(mkfifo(path("a.npy").c_str(), 0600), 0);
  const int reader = open(path("a.npy").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_matrix(path("a.npy"), numbers(1, 2));
  std::string bytes(200, '\0');
  const ssize_t found = ::read(reader, bytes.data(), bytes.size());
  close(reader);
  EXPECT_EQ(found, 128 + 16);
  EXPECT_TRUE(bytes.starts_with("\x93NUMPY"));
  EXPECT_TRUE(std::filesystem::is_fifo(path("a.npy")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, FailedRead_NamesFileAndReason) {
  EXPECT_EQ(error_of_reading(path("none.mtx")),
            path("none.mtx") + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of_reading(path("")), path("") + ": found a directory, expected a file");
  EXPECT_EQ(error_of_reading(put("empty.npy", "")),
            path("empty.npy") + ": byte 0: found an empty file, expected a matrix");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of_reading(path("pipe")),
            path("pipe") + ": found a pipe or a device, expected a regular file");
}

TEST_F(Files, ExtensionOfTheOtherFormat_ContentDecidesTheFormat) {
  EXPECT_EQ(read_matrix<double>(put("a.npy", market("array real general", "1 1\n3\n")))(0, 0), 3.0);
  EXPECT_EQ(read_matrix<double>(put("a.mtx", npy("|u1", false, "(1,)", "\x04")))(0, 0), 4.0);
  EXPECT_EQ(error_of_reading(put("b.mtx", market("array real general", "1 1\nx\n"))),
            path("b.mtx") + ":3: found 'x', expected a number");
}

/// Small valid files that together reach every part of the readers.
std::vector<std::string> valid_files() {
  return {market("array real general", "% c\n2 2\n1.5\n-2\n3e1\nnan\n"),
          market("array integer symmetric", "2 2\n1\n2\n3\n"),
          market("array real skew-symmetric", "3 3\n1\n-inf\n1e400\n"),
          market("coordinate real general", "3 2 3\n1 1 1\n3 2 -4.25\n3 2 1\n"),
          market("coordinate pattern symmetric", "3 3 2\n2 1\n3 3\n"),
          market("coordinate unsigned-integer general", "2 2 1\r\n2 2 7\r\n"),
          npy("<f8", true, "(2, 2)", raw<double>({1, 2, 3, 4})),
          npy(">f4", false, "(2, 3)", raw<float>({1, 2, 3, 4, 5, 6}, true), 2),
          npy("|u1", false, "(3,)", "abc", 3),
          npy("<i2", true, "(1, 2)", raw<std::int16_t>({-1, 2}))};
}

/// Reads bytes from a block of exactly their size, so that a sanitizer sees a step beyond it.
template <class T>
bool reads(const std::string& text) {
  const std::vector<char> bytes(text.begin(), text.end());
  try {
    read_matrix_from<T>({bytes.data(), bytes.size()}, "m", small);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

TEST(MatrixFormats, TruncationBeforeTheLastEntry_IsRefused) {
  for (const std::string& file : valid_files()) {
    EXPECT_TRUE(reads<double>(file)) << file;
    for (std::size_t length = 0; length < file.size(); ++length) {
      const bool read = reads<double>(file.substr(0, length));
      const bool binary = file.front() == '\x93';
      EXPECT_FALSE(read && (binary || length + 8 < file.size())) << file.substr(0, length);
    }
  }
}

std::string mutated(std::string text, std::mt19937_64& random) {
  const std::string interesting = "0123456789 \n\r\t-+.eEnaif%'\",:()[]{}<>|=L\0\x7f\x80\xff"s;
  const auto below = [&](std::size_t count) { return random() % std::max<std::size_t>(count, 1); };
  for (std::size_t change = 0; change <= below(4); ++change) {
    const std::size_t at = below(text.size());
    const char replacement = interesting[below(interesting.size())];
    switch (below(6)) {
      case 0: text.insert(at, 1, replacement); break;
      case 1: text.erase(at, 1 + below(8)); break;
      case 2: text.insert(at, text.substr(below(text.size()), below(16))); break;
      case 3: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      default: text[at] = replacement; break;
    }
    if (text.empty()) text = "%";
  }
  return text;
}

TEST(MatrixFormats, RandomMutations_DoNotCrashAndFloatAgreesWithDouble) {
  std::mt19937_64 random(20240607);
  const auto files = valid_files();
  constexpr std::size_t mutations = 5000;
  std::size_t read = 0;
  for (std::size_t k = 0; k < mutations; ++k) {
    const std::string file = mutated(files[k % files.size()], random);
    const bool as_double = reads<double>(file);
    EXPECT_EQ(reads<float>(file), as_double) << file;
    read += as_double;
  }
  EXPECT_GT(read, mutations / 100);
  EXPECT_LT(read, mutations / 2);
}

}  // namespace
}  // namespace weir::apps
