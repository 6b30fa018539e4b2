#include "common/matrix_market.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include <locale.h>

#include "common/input_error.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t longest_line = 4096;

/// Walks through the lines of a text and the words of a line.
class LineReader {
 public:
  LineReader(std::string_view name, std::string_view text)
      : name_(name), at_(text.data()), end_(text.data() + text.size()), line_begin_(at_) {}

  std::size_t bytes_left() const { return static_cast<std::size_t>(end_ - at_); }
  std::string where() const { return fmt::format("{}:{}", name_, line_); }

  /// Moves to the next line that is neither blank nor a comment; false at the end of the text.
  bool next_line() {
    for (;;) {
      line_begin_ = at_;
      skip_blanks();
      if (at_ == end_) return false;
      if (*at_ != '\n' && *at_ != '%') return true;
      skip_line();
    }
  }

  /// Returns the next word of the line, empty at its end.
  std::string_view word() {
    skip_blanks();
    const char* begin = at_;
    at_ = end_of_word();
    return {begin, at_};
  }

  template <class Number>
  Number number(std::string_view expected) {
    skip_blanks();
    const bool plus = end_ - at_ > 1 && at_[0] == '+' && at_[1] != '-';
    const char* begin = plus ? at_ + 1 : at_;
    Number value{};
    const auto [stop, error] = std::from_chars(begin, end_, value);
    if (error != std::errc{} || !ends_word(stop) || value != value) [[unlikely]] {
      value = unusual_number<Number>({begin, stop}, error, expected);
    }
    at_ = stop;
    return value;
  }

  /// Moves past the end of the line, which must hold nothing more.
  void end_line() {
    skip_blanks();
    if (at_ - line_begin_ > static_cast<std::ptrdiff_t>(longest_line)) fail_long_line();
    if (at_ == end_) return;
    if (*at_ != '\n') fail("found {}, expected the end of the line", found());
    ++at_;
    ++line_;
  }

  /// Describes what comes next.
  std::string found() const {
    if (at_ == end_) return "the end of the file";
    if (*at_ == '\n') return "the end of the line";
    return in_quotes({at_, end_of_word()});
  }

  template <class... Args>
  [[noreturn, gnu::cold, gnu::noinline]] void fail(fmt::format_string<Args...> format,
                                                   Args&&... args) const {
    fail_input("{}: {}", where(), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }

  void skip_line() {
    const void* newline = std::memchr(at_, '\n', bytes_left());
    at_ = newline ? static_cast<const char*>(newline) + 1 : end_;
    line_ += newline ? 1 : 0;
  }

  bool ends_word(const char* at) const { return at == end_ || *at == '\n' || is_blank(*at); }

  const char* end_of_word() const {
    const char* end = at_;
    while (!ends_word(end)) ++end;
    return end;
  }

  /// Distinguishes values that are accepted besides plain numbers (nan, too large, too small) from
  /// errors.
  template <class Number>
  [[gnu::cold, gnu::noinline]] Number unusual_number(std::string_view text, std::errc error,
                                                     std::string_view expected) const {
    if (text.size() > longest_line) fail_long_line();
    const bool whole = ends_word(text.data() + text.size()) && !text.ends_with(')');
    if (error == std::errc::invalid_argument || !whole) {
      fail("found {}, expected {}", found(), expected);
    }
    if constexpr (std::is_floating_point_v<Number>) {
      static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
      return strtod_l(std::string(text).c_str(), nullptr, plain);
    }
    fail("found {}, expected {} of at most 64 bits", found(), expected);
  }

  [[noreturn, gnu::cold]] void fail_long_line() const {
    fail("found a line of more than {} bytes, expected one entry per line", longest_line);
  }

  std::string_view name_;
  const char* at_;
  const char* end_;
  const char* line_begin_;
  std::size_t line_ = 1;
};

enum class Format { array, coordinate };
enum class Field { real, integer, unsigned_integer, pattern };
enum class Symmetry { general, symmetric, skew_symmetric };

template <class Choice>
struct Keyword {
  std::string_view word;
  Choice choice;
};

constexpr Keyword<bool> objects[] = {{"matrix", true}};
constexpr Keyword<Format> formats[] = {{"array", Format::array},
                                       {"coordinate", Format::coordinate}};
constexpr Keyword<Field> fields[] = {{"real", Field::real},
                                     {"integer", Field::integer},
                                     {"unsigned-integer", Field::unsigned_integer},
                                     {"pattern", Field::pattern}};
constexpr Keyword<Symmetry> symmetries[] = {{"general", Symmetry::general},
                                            {"symmetric", Symmetry::symmetric},
                                            {"skew-symmetric", Symmetry::skew_symmetric}};

struct MarketHeader {
  Format format;
  Field field;
  Symmetry symmetry;
  Shape shape;
  std::size_t entries;
};

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

template <class Choice, std::size_t count>
Choice read_keyword(LineReader& reader, const Keyword<Choice> (&keywords)[count]) {
  const LineReader before = reader;
  const std::string_view word = reader.word();
  std::string expected;
  for (const Keyword<Choice>& keyword : keywords) {
    if (same_word(word, keyword.word)) return keyword.choice;
    expected += fmt::format("{}{}", expected.empty() ? "" : " or ", keyword.word);
  }
  const bool complex = same_word(word, "complex") || same_word(word, "hermitian");
  before.fail("found {}, expected {}{}", word.empty() ? before.found() : in_quotes(word), expected,
              complex ? "; complex matrices cannot be read" : "");
}

void read_banner(LineReader& reader, MarketHeader& header) {
  const LineReader before = reader;
  if (reader.word() != market_magic) {
    before.fail("found {}, expected {}", before.found(), market_magic);
  }
  read_keyword(reader, objects);
  header.format = read_keyword(reader, formats);
  header.field = read_keyword(reader, fields);
  header.symmetry = read_keyword(reader, symmetries);
  if (header.format == Format::array && header.field == Field::pattern) {
    reader.fail("found an array of field pattern, expected real, integer or unsigned-integer");
  }
  reader.end_line();
}

std::size_t array_entries(Shape shape, Symmetry symmetry) {
  switch (symmetry) {
    case Symmetry::general: return shape.rows * shape.columns;
    case Symmetry::symmetric: return shape.rows * (shape.rows + 1) / 2;
    case Symmetry::skew_symmetric: return shape.rows * (shape.rows - 1) / 2;
  }
  return 0;
}

std::size_t shortest_entry_bytes(const MarketHeader& header) {
  if (header.format == Format::array) return std::string_view("0\n").size();
  return std::string_view(header.field == Field::pattern ? "1 1\n" : "1 1 0\n").size();
}

void read_size_line(LineReader& reader, std::size_t element_bytes, const ReadLimits& limits,
                    MarketHeader& header) {
  if (!reader.next_line()) reader.fail("found the end of the file, expected the size line");
  header.shape.rows = reader.number<std::size_t>("a number of rows");
  header.shape.columns = reader.number<std::size_t>("a number of columns");
  if (header.format == Format::coordinate) {
    header.entries = reader.number<std::size_t>("a number of entries");
  }
  const LineReader line = reader;
  reader.end_line();

  check_size(line.where(), header.shape, element_bytes, limits);
  if (header.symmetry != Symmetry::general && header.shape.rows != header.shape.columns) {
    line.fail("found {} x {}, expected a square matrix as the file is not general",
              header.shape.rows, header.shape.columns);
  }
  if (header.format == Format::array) header.entries = array_entries(header.shape, header.symmetry);
  const std::size_t bytes = shortest_entry_bytes(header);
  if (header.entries > (reader.bytes_left() + 1) / bytes) {
    line.fail("found a size of {} entries, which take at least {} bytes each, but {} bytes follow",
              header.entries, bytes, reader.bytes_left());
  }
}

template <class T>
T read_value(LineReader& reader, Field field) {
  switch (field) {
    case Field::real: return static_cast<T>(reader.number<double>("a number"));
    case Field::integer: return static_cast<T>(reader.number<std::int64_t>("an integer"));
    case Field::unsigned_integer:
      return static_cast<T>(reader.number<std::uint64_t>("an integer without a sign"));
    case Field::pattern: return 1;
  }
  return 0;
}

void next_entry(LineReader& reader, std::size_t entry, std::size_t entries) {
  if (!reader.next_line()) {
    reader.fail("found the end of the file after {} entries, expected {}", entry, entries);
  }
}

template <class T>
void mirror_lower_triangle(Matrix<T>& matrix, T sign) {
  for_each_tiled({matrix.rows(), matrix.columns()}, [&](std::size_t i, std::size_t j) {
    if (i > j) matrix(j, i) = sign * matrix(i, j);
  });
}

std::size_t first_stored_row(std::size_t column, Symmetry symmetry) {
  switch (symmetry) {
    case Symmetry::general: return 0;
    case Symmetry::symmetric: return column;
    case Symmetry::skew_symmetric: return column + 1;
  }
  return 0;
}

template <class T>
void read_array(LineReader& reader, const MarketHeader& header, Matrix<T>& matrix) {
  std::size_t entry = 0;
  for (std::size_t j = 0; j < matrix.columns(); ++j) {
    for (std::size_t i = first_stored_row(j, header.symmetry); i < matrix.rows(); ++i) {
      next_entry(reader, entry++, header.entries);
      matrix(i, j) = read_value<T>(reader, header.field);
      reader.end_line();
    }
  }
  if (header.symmetry == Symmetry::symmetric) mirror_lower_triangle(matrix, T{1});
  if (header.symmetry == Symmetry::skew_symmetric) mirror_lower_triangle(matrix, T{-1});
}

std::size_t read_index(LineReader& reader, std::string_view what, std::size_t count) {
  const std::size_t index = reader.number<std::size_t>(what);
  if (index < 1 || index > count) {
    reader.fail("found {} where {} must be, expected 1 to {}", index, what, count);
  }
  return index - 1;
}

template <class T>
void read_coordinates(LineReader& reader, const MarketHeader& header, Matrix<T>& matrix) {
  const T sign = header.symmetry == Symmetry::skew_symmetric ? T{-1} : T{1};
  for (std::size_t entry = 0; entry < header.entries; ++entry) {
    next_entry(reader, entry, header.entries);
    const std::size_t i = read_index(reader, "a row", matrix.rows());
    const std::size_t j = read_index(reader, "a column", matrix.columns());
    const T value = read_value<T>(reader, header.field);
    if (i == j && value != 0 && header.symmetry == Symmetry::skew_symmetric) {
      reader.fail("found {} on the diagonal, expected 0 as the file is skew-symmetric", value);
    }
    reader.end_line();
    matrix(i, j) += value;
    if (i != j && header.symmetry != Symmetry::general) matrix(j, i) += sign * value;
  }
}

}  // namespace

template <class T>
Matrix<T> read_matrix_market(std::string_view text, std::string_view name,
                             const ReadLimits& limits) {
  LineReader reader(name, text);
  MarketHeader header{};
  read_banner(reader, header);
  read_size_line(reader, sizeof(T), limits, header);
  auto matrix = allocate<T>(name, header.shape);
  if (header.format == Format::array) {
    read_array(reader, header, matrix);
  } else {
    read_coordinates(reader, header, matrix);
  }
  if (reader.next_line()) {
    reader.fail("found {} after all {} entries, expected the end of the file", reader.found(),
                header.entries);
  }
  return matrix;
}

template <class T>
void write_matrix_market(OutputFile& file, const Matrix<T>& matrix) {
  constexpr int digits_after_first = 16;
  file.append(fmt::format("{} matrix array real general\n{} {}\n", market_magic, matrix.rows(),
                          matrix.columns()));
  std::array<char, 32> text;
  for (std::size_t j = 0; j < matrix.columns(); ++j) {
    for (std::size_t i = 0; i < matrix.rows(); ++i) {
      const auto [end, error] = std::to_chars(text.data(), text.data() + text.size() - 1,
                                              static_cast<double>(matrix(i, j)),
                                              std::chars_format::scientific, digits_after_first);
      *end = '\n';
      file.append({text.data(), end + 1});
    }
  }
}

template Matrix<float> read_matrix_market(std::string_view, std::string_view, const ReadLimits&);
template Matrix<double> read_matrix_market(std::string_view, std::string_view, const ReadLimits&);
template void write_matrix_market(OutputFile&, const Matrix<float>&);
template void write_matrix_market(OutputFile&, const Matrix<double>&);

}  // namespace weir::apps
