// Tables of numbers as text.
#pragma once

#include <string>
#include <string_view>

#include "common/matrix_io.hpp"

namespace weir::apps {

/// Reads numbers between commas, a line for each row of the matrix. Blanks around numbers, empty
/// lines and a first line without any number are skipped. Throws InputError with the line, the
/// column and what was found where there is no finite number, and for lines of different length.
template <class T>
Matrix<T> read_csv(std::string_view bytes, std::string_view name, const ReadLimits& limits = {});

/// Reads a table of finite numbers: what read_matrix() reads, and otherwise CSV. Throws InputError
/// with the path and the place, also for a table without rows.
template <class T>
Matrix<T> read_table(const std::string& path, const ReadLimits& limits = {});

/// The same for a table of one column.
template <class T>
Matrix<T> read_vector(const std::string& path) {
  Matrix<T> vector = read_table<T>(path);
  if (vector.columns() == 1) return vector;
  fail_input("{}: found {} columns, expected one", path, vector.columns());
}

extern template Matrix<float> read_csv(std::string_view, std::string_view, const ReadLimits&);
extern template Matrix<double> read_csv(std::string_view, std::string_view, const ReadLimits&);
extern template Matrix<float> read_table(const std::string&, const ReadLimits&);
extern template Matrix<double> read_table(const std::string&, const ReadLimits&);

}  // namespace weir::apps
