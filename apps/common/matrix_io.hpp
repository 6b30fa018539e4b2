// Matrices in files: Matrix Market text and NumPy's .npy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/input_error.hpp"
#include "common/matrix.hpp"

namespace weir::apps {

/// Returns half of the machine's memory, or of what the control group of a container or a batch
/// system leaves of it, in bytes. Those limits are read once.
std::uint64_t half_of_memory();

/// The limits of a reader. An empty matrix counts as if its zero dimension were one.
struct ReadLimits {
  /// Bytes of the largest matrix accepted.
  std::uint64_t bytes = half_of_memory();
};

/// Reads a dense matrix of T = float or double from a regular file, whatever it stores:
///
/// | format        | accepted                                                                  |
/// | ------------- | ------------------------------------------------------------------------- |
/// | Matrix Market | array or coordinate; real, integer, unsigned-integer, in coordinate also  |
/// |               | pattern (every entry is 1); general, symmetric or skew-symmetric          |
/// | .npy 1.0-3.0  | f4, f8, i1 to i8 and u1 to u8 in either byte order, C or Fortran order;   |
/// |               | 2-D, or 1-D as a column                                                   |
///
/// The first bytes decide between the two. A symmetric file gives the full matrix; entries of a
/// coordinate file at one position are added in T. Reals are read as double and rounded to T: as in
/// SciPy, nan and inf are accepted, and what is beyond a double becomes infinite or zero.
///
/// Throws InputError with the path and the line (Matrix Market) or the byte (.npy), what was found
/// and what was expected. The size is checked against the limits and against the length of the
/// file before any memory is taken. The file is mapped: it must not be cut short while it is read.
template <class T>
Matrix<T> read_matrix(const std::string& path, const ReadLimits& limits = {});

/// Reads a matrix from the bytes of a file. The name stands for the path in messages.
template <class T>
Matrix<T> read_matrix_from(std::string_view bytes, std::string_view name,
                           const ReadLimits& limits = {});

/// Throws InputError with the path and the place of a number that is not finite, or when there is
/// none at all.
template <class T>
void check_finite(const Matrix<T>& matrix, const std::string& path);

/// Reads a matrix of finite numbers, at least one, as read_matrix() does. Throws InputError.
template <class T>
Matrix<T> read_finite_matrix(const std::string& path);

/// Throws InputError unless the extension is one that write_matrix() knows, and there is the
/// folder.
void check_output_format(const std::string& path);

/// Writes a matrix by extension: .npy (1.0, little endian, Fortran order) or .mtx (array real
/// general, 17 significant digits). Readers of the path see the old file or the whole new one.
/// Throws InputError with the path and the reason, and leaves nothing behind.
template <class T>
void write_matrix(const std::string& path, const Matrix<T>& matrix);

extern template Matrix<float> read_matrix(const std::string&, const ReadLimits&);
extern template Matrix<double> read_matrix(const std::string&, const ReadLimits&);
extern template Matrix<float> read_matrix_from(std::string_view, std::string_view,
                                               const ReadLimits&);
extern template Matrix<double> read_matrix_from(std::string_view, std::string_view,
                                                const ReadLimits&);
extern template Matrix<float> read_finite_matrix(const std::string&);
extern template Matrix<double> read_finite_matrix(const std::string&);
extern template void check_finite(const Matrix<float>&, const std::string&);
extern template void check_finite(const Matrix<double>&, const std::string&);
extern template void write_matrix(const std::string&, const Matrix<float>&);
extern template void write_matrix(const std::string&, const Matrix<double>&);

}  // namespace weir::apps
