// The Matrix Market exchange format.
#pragma once

#include <string_view>

#include "common/file.hpp"
#include "common/matrix.hpp"
#include "common/matrix_io.hpp"

namespace weir::apps {

/// The bytes that a file begins with.
inline constexpr std::string_view market_magic = "%%MatrixMarket";

/// Reads the text of a file, see read_matrix(). The name stands for the path in messages.
template <class T>
Matrix<T> read_matrix_market(std::string_view text, std::string_view name,
                             const ReadLimits& limits);

/// Writes an array of reals with 17 significant digits.
template <class T>
void write_matrix_market(OutputFile& file, const Matrix<T>& matrix);

}  // namespace weir::apps
