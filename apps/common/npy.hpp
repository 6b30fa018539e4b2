// The format of NumPy's .npy files.
#pragma once

#include <string_view>

#include "common/file.hpp"
#include "common/matrix.hpp"
#include "common/matrix_io.hpp"

namespace weir::apps {

/// The bytes that a file begins with.
inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Reads the bytes of a file, see read_matrix(). The name stands for the path in messages.
template <class T>
Matrix<T> read_npy(std::string_view bytes, std::string_view name, const ReadLimits& limits);

/// Writes version 1.0, little endian, in Fortran order.
template <class T>
void write_npy(OutputFile& file, const Matrix<T>& matrix);

}  // namespace weir::apps
