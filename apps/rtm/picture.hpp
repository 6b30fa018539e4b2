// Pictures of matrices.
#pragma once

#include <string>

#include "common/matrix.hpp"

namespace weir::apps {

/// Throws InputError unless write_picture() knows the extension.
void check_picture_format(const std::string& path);

/// Writes a matrix by extension: .pgm is a picture in shades of grey, row by row, in which 0 is in
/// the middle and `strongest` and more are white; .npy and .mtx are the numbers. Throws InputError
/// with the path and the reason.
template <class T>
void write_picture(const std::string& path, const Matrix<T>& matrix, double strongest);

extern template void write_picture(const std::string&, const Matrix<float>&, double);
extern template void write_picture(const std::string&, const Matrix<double>&, double);

}  // namespace weir::apps
