// The check that the targets of both matrix formats make.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "common/matrix_io.hpp"
#include "target.hpp"

namespace weir::fuzz {

inline constexpr apps::ReadLimits matrix_limits{.bytes = std::uint64_t{1} << 20};

template <class T>
std::optional<apps::Matrix<T>> read_matrix(std::string_view bytes) {
  try {
    return apps::read_matrix_from<T>(bytes, "input", matrix_limits);
  } catch (const apps::InputError& error) {
    require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says where");
    return std::nullopt;
  }
}

/// A reader returns a matrix within the limits or throws an InputError, in both precisions alike.
inline void check_matrix_reader(std::string_view bytes) {
  const auto wide = read_matrix<double>(bytes);
  const auto narrow = read_matrix<float>(bytes);
  if (!wide) {
    ++refused;
    return;  // a float may fit where a double does not
  }
  require(wide->size() * sizeof(double) <= matrix_limits.bytes, "a matrix is within the limits");
  require(narrow && narrow->rows() == wide->rows() && narrow->columns() == wide->columns(),
          "both precisions have the same shape");
  double sum = 0;
  for (std::size_t k = 0; k < wide->size(); ++k) sum += wide->data()[k];
  require(std::isnan(sum) || sum <= HUGE_VAL, "every element can be read");
}

}  // namespace weir::fuzz
