// Functions that the readers of all formats share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>

#include "common/input_error.hpp"
#include "common/matrix.hpp"
#include "common/matrix_io.hpp"

namespace weir::apps {

struct Shape {
  std::size_t rows;
  std::size_t columns;
};

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/// Returns a text without the mark of UTF-8 that spreadsheets begin a file with.
inline std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

/// Quotes text of a file so that it is short and safe on a terminal.
std::string in_quotes(std::string_view text);

/// Throws InputError when a matrix of the shape is larger than the limits allow.
void check_size(const std::string& where, Shape shape, std::size_t element_bytes,
                const ReadLimits& limits);

/// Makes a matrix of zeros. Throws InputError when there is no memory for it.
template <class T>
Matrix<T> allocate(std::string_view name, Shape shape) {
  try {
    return Matrix<T>(shape.rows, shape.columns);
  } catch (const std::bad_alloc&) {
    fail_input("{}: the system has no memory left for a matrix of {} x {}", name, shape.rows,
               shape.columns);
  }
}

/// Visits every position so that neither order of storage strides through memory.
template <class Visit>
void for_each_tiled(Shape shape, const Visit& visit) {
  constexpr std::size_t tile = 32;
  for (std::size_t first_j = 0; first_j < shape.columns; first_j += tile) {
    for (std::size_t first_i = 0; first_i < shape.rows; first_i += tile) {
      const std::size_t end_j = std::min(first_j + tile, shape.columns);
      const std::size_t end_i = std::min(first_i + tile, shape.rows);
      for (std::size_t j = first_j; j < end_j; ++j) {
        for (std::size_t i = first_i; i < end_i; ++i) visit(i, j);
      }
    }
  }
}

}  // namespace weir::apps
