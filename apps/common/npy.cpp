#include "common/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "common/input_error.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

static_assert(std::endian::native == std::endian::little, ".npy files are written as memory is");

namespace {

/// Walks through the bytes of a part of a file; offsets count from the beginning of the file.
class ByteReader {
 public:
  ByteReader(std::string_view name, std::string_view bytes, std::size_t offset = 0)
      : name_(name), bytes_(bytes), offset_(offset) {}

  std::size_t offset() const { return offset_; }
  std::size_t bytes_left() const { return bytes_.size() - offset_; }
  std::string where() const { return fmt::format("{}: byte {}", name_, offset_); }

  std::string_view take(std::size_t count, std::string_view expected) {
    if (count > bytes_left()) {
      fail("found {} bytes up to the end, expected {} bytes of {}", bytes_left(), count, expected);
    }
    offset_ += count;
    return bytes_.substr(offset_ - count, count);
  }

  /// Returns a reader of the next bytes and moves past them.
  ByteReader part(std::size_t count, std::string_view expected) {
    const std::size_t begin = offset_;
    take(count, expected);
    return {name_, bytes_.substr(0, offset_), begin};
  }

  void skip_blanks() {
    while (bytes_left() > 0 && (is_blank(bytes_[offset_]) || bytes_[offset_] == '\n')) ++offset_;
  }

  bool accept(std::string_view token) {
    skip_blanks();
    const bool found = bytes_.substr(offset_).starts_with(token);
    offset_ += found ? token.size() : 0;
    return found;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("found {}, expected '{}'", found(), token);
  }

  /// Returns the text between quotes. There are no escapes: no word of a header needs one.
  std::string_view string(std::string_view expected) {
    skip_blanks();
    const char quote = bytes_left() > 0 ? bytes_[offset_] : '\0';
    const std::size_t end = bytes_.find(quote, offset_ + 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) {
      fail("found {}, expected {}", found(), expected);
    }
    const std::string_view text = bytes_.substr(offset_ + 1, end - offset_ - 1);
    offset_ = end + 1;
    return text;
  }

  std::size_t number(std::string_view expected) {
    skip_blanks();
    std::size_t value = 0;
    const char* begin = bytes_.data() + offset_;
    const auto [stop, error] = std::from_chars(begin, begin + bytes_left(), value);
    if (error != std::errc{}) fail("found {}, expected {}", found(), expected);
    offset_ += static_cast<std::size_t>(stop - begin);
    return value;
  }

  /// Describes what comes next.
  std::string found() const {
    if (bytes_left() == 0) return "the end of the header";
    return in_quotes(bytes_.substr(offset_, bytes_.find_first_of(",}\n", offset_ + 1) - offset_));
  }

  template <class... Args>
  [[noreturn, gnu::cold, gnu::noinline]] void fail(fmt::format_string<Args...> format,
                                                   Args&&... args) const {
    fail_input("{}: {}", where(), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view name_;
  std::string_view bytes_;
  std::size_t offset_;
};

/// What the elements are, as in "<f8": the letters without the byte order.
struct ElementType {
  std::string_view code;
  bool swapped;

  std::size_t bytes() const { return static_cast<std::size_t>(code[1] - '0'); }
};

struct NpyHeader {
  std::optional<ElementType> element;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// Calls the visitor with a value of the type of a code; false when the code names none.
template <class Visit>
bool visit_element(std::string_view code, const Visit& visit) {
  if (code == "f8") return visit(double{}), true;
  if (code == "f4") return visit(float{}), true;
  if (code == "i1") return visit(std::int8_t{}), true;
  if (code == "i2") return visit(std::int16_t{}), true;
  if (code == "i4") return visit(std::int32_t{}), true;
  if (code == "i8") return visit(std::int64_t{}), true;
  if (code == "u1") return visit(std::uint8_t{}), true;
  if (code == "u2") return visit(std::uint16_t{}), true;
  if (code == "u4") return visit(std::uint32_t{}), true;
  if (code == "u8") return visit(std::uint64_t{}), true;
  return false;
}

ElementType read_element_type(ByteReader& text) {
  constexpr std::string_view expected = "f4, f8, i1 to i8 or u1 to u8 after a byte order < or >";
  text.skip_blanks();
  const ByteReader before = text;
  if (text.accept("[") || text.accept("(")) {
    before.fail("found a structured element type, expected {}", expected);
  }
  const std::string_view descr = text.string(expected);
  const std::string_view code = descr.substr(std::min<std::size_t>(descr.size(), 1));
  if (code.starts_with('O')) {
    before.fail("found {}, pickled objects, which are never loaded; expected {}", in_quotes(descr),
                expected);
  }
  const bool known = visit_element(code, [](auto) {});
  const bool ordered = descr.starts_with('<') || descr.starts_with('>');
  if (!known || (!ordered && !(descr[0] == '|' && code[1] == '1'))) {
    before.fail("found {}, expected {}", in_quotes(descr), expected);
  }
  return {code, descr[0] == '>'};
}

bool read_boolean(ByteReader& text) {
  if (text.accept("True")) return true;
  if (text.accept("False")) return false;
  text.fail("found {}, expected True or False", text.found());
}

Shape read_shape(ByteReader& text) {
  text.skip_blanks();
  const ByteReader before = text;
  std::array<std::size_t, 2> lengths = {1, 1};
  std::size_t dimensions = 0;
  text.expect("(");
  while (!text.accept(")")) {
    const std::size_t length = text.number("the length of a dimension");
    if (dimensions == 2) before.fail("found 3 or more dimensions, expected 1 or 2");
    lengths[dimensions++] = length;
    text.accept("L");
    if (text.accept(",")) continue;
    text.expect(")");
    break;
  }
  if (dimensions == 0) before.fail("found a scalar, expected 1 or 2 dimensions");
  return {lengths[0], lengths[1]};
}

template <class Value>
void read_once(ByteReader& text, std::string_view key, std::optional<Value>& value,
               Value (*read)(ByteReader&)) {
  if (value) text.fail("found '{}' a second time, expected it once", key);
  value = read(text);
}

void read_dictionary(ByteReader& text, NpyHeader& header) {
  text.expect("{");
  while (!text.accept("}")) {
    const std::string_view key = text.string("a key or '}'");
    text.expect(":");
    if (key == "descr") {
      read_once(text, key, header.element, read_element_type);
    } else if (key == "fortran_order") {
      read_once(text, key, header.fortran_order, read_boolean);
    } else if (key == "shape") {
      read_once(text, key, header.shape, read_shape);
    } else {
      text.fail("found the key {}, expected descr, fortran_order or shape", in_quotes(key));
    }
    if (text.accept(",")) continue;
    text.expect("}");
    break;
  }
  text.skip_blanks();
  if (text.bytes_left() > 0) text.fail("found {}, expected the end of the header", text.found());
}

NpyHeader read_npy_header(ByteReader& file) {
  file.take(npy_magic.size(), "the magic string");
  const ByteReader at_version = file;
  const std::string_view version = file.take(2, "the format version");
  const auto major = static_cast<unsigned char>(version[0]);
  const auto minor = static_cast<unsigned char>(version[1]);
  if (major < 1 || major > 3 || minor != 0) {
    at_version.fail("found format version {}.{}, expected 1.0, 2.0 or 3.0", major, minor);
  }
  const std::string_view length = file.take(major == 1 ? 2 : 4, "the header length");
  std::uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, length.data(), length.size());

  NpyHeader header;
  ByteReader text = file.part(header_bytes, "the header");
  read_dictionary(text, header);
  if (!header.element || !header.fortran_order || !header.shape) {
    text.fail("found no '{}' in the header, expected descr, fortran_order and shape",
              !header.element ? "descr"
              : !header.shape ? "shape"
                              : "fortran_order");
  }
  return header;
}

template <class Source>
Source load(const char* from, bool swapped) {
  std::array<char, sizeof(Source)> raw;
  std::memcpy(raw.data(), from, sizeof(Source));
  if (swapped) std::ranges::reverse(raw);
  return std::bit_cast<Source>(raw);
}

template <class Source, class T>
void convert(const char* data, const NpyHeader& header, Matrix<T>& matrix) {
  const Shape shape = *header.shape;
  const bool swapped = header.element->swapped;
  const bool columns_follow = *header.fortran_order || shape.columns == 1;
  if (std::is_same_v<Source, T> && columns_follow && !swapped) {
    std::memcpy(matrix.data(), data, matrix.size() * sizeof(T));
    return;
  }
  const std::size_t row_step = sizeof(Source) * (columns_follow ? 1 : shape.columns);
  const std::size_t column_step = sizeof(Source) * (columns_follow ? shape.rows : 1);
  for_each_tiled(shape, [&](std::size_t i, std::size_t j) {
    matrix(i, j) = static_cast<T>(load<Source>(data + i * row_step + j * column_step, swapped));
  });
}

}  // namespace

template <class T>
Matrix<T> read_npy(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  ByteReader file(name, bytes);
  const NpyHeader header = read_npy_header(file);
  const Shape shape = *header.shape;
  const std::size_t element_bytes = header.element->bytes();
  check_size(file.where(), shape, std::max(sizeof(T), element_bytes), limits);
  const std::string_view data = file.take(shape.rows * shape.columns * element_bytes, "elements");
  if (file.bytes_left() > 0) {
    file.fail("found {} bytes after the last of {} x {} elements, expected the end of the file",
              file.bytes_left(), shape.rows, shape.columns);
  }
  auto matrix = allocate<T>(name, shape);
  visit_element(header.element->code,
                [&]<class Source>(Source) { convert<Source>(data.data(), header, matrix); });
  return matrix;
}

template <class T>
void write_npy(OutputFile& file, const Matrix<T>& matrix) {
  constexpr std::size_t unit = 64;
  std::string header =
      fmt::format("{{'descr': '<f{}', 'fortran_order': True, 'shape': ({}, {}), }}", sizeof(T),
                  matrix.rows(), matrix.columns());
  const std::size_t before = npy_magic.size() + 4;
  const std::size_t total = (before + header.size() + 1 + unit - 1) / unit * unit;
  header.resize(total - before - 1, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  file.append(npy_magic);
  file.append({"\x01\x00", 2});
  file.append({reinterpret_cast<const char*>(&length), 2});
  file.append(header);
  file.flush();
  const bool gaps = matrix.stored() != matrix.size();
  const std::size_t parts = gaps ? matrix.columns() : 1;
  for (std::size_t j = 0; j < parts; ++j) {
    file.write({reinterpret_cast<const char*>(matrix.data() + j * matrix.leading_dimension()),
                (gaps ? matrix.rows() : matrix.size()) * sizeof(T)});
  }
}

template Matrix<float> read_npy(std::string_view, std::string_view, const ReadLimits&);
template Matrix<double> read_npy(std::string_view, std::string_view, const ReadLimits&);
template void write_npy(OutputFile&, const Matrix<float>&);
template void write_npy(OutputFile&, const Matrix<double>&);

}  // namespace weir::apps
