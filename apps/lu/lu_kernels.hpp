// The kernels of a tiled LU factorisation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <weir/weir.hpp>

namespace weir::apps {

/// Returns the row that row i is exchanged with, both counted from the top of the panel. Returns i
/// when the pivot is out of range: a device that skips its kernels computes no pivots.
inline std::size_t exchanged_row(std::size_t i, std::int32_t pivot, std::size_t panel,
                                 std::size_t rows) noexcept {
  const std::size_t row = i - i % panel + static_cast<std::size_t>(pivot) - 1;
  return row < rows ? row : i;
}

/// Exchanges rows of a tile: row i with row `pivots[i]`, counted from 1 at the top of the panel of
/// `panel` rows in which i is. Scalars: panel. Operands: tile read-write, pivots read.
template <class T>
void exchange_rows(const weir::Call& call) {
  const std::size_t panel = call.scalar<std::size_t>(0);
  const weir::Tile<T> tile = call.tile<T>(0);
  const auto pivots = call.span<std::int32_t>(1);
  for (std::size_t j = 0; j < tile.columns; ++j) {
    T* const column = &tile(0, j);
    for (std::size_t i = 0; i < pivots.size(); ++i) {
      std::swap(column[i], column[exchanged_row(i, pivots[i], panel, tile.rows)]);
    }
  }
}

/// Four elements move for each pivot and column.
template <class T>
weir_cost cost_of_exchange(const weir_call* call) {
  const double pivots =
      static_cast<double>(call->operands[1].extent[0]) / double{sizeof(std::int32_t)};
  return {0, 4 * double{sizeof(T)} * pivots * static_cast<double>(call->operands[0].extent[1])};
}

template <class T>
struct LuKernels {
  /// `ending` is that of the names of kernels that compute tiles.
  explicit LuKernels(const weir::Runtime& runtime, const char* ending = "")
      : gemm(find(runtime, "blas.{}gemm", ending)),
        trsm(find(runtime, "blas.{}trsm", ending)),
        getrf(find(runtime, "lapack.{}getrf", ending)),
        exchange(runtime.kernel(name("lu.{}exchange").c_str(), exchange_rows<T>,
                                WEIR_KERNEL_SHAPE_SERIAL, cost_of_exchange<T>)) {}

  weir::Kernel gemm, trsm, getrf, exchange;

 private:
  static std::string name(const char* pattern) {
    return fmt::format(fmt::runtime(pattern), std::is_same_v<T, float> ? 's' : 'd');
  }
  static weir::Kernel find(const weir::Runtime& runtime, const char* pattern, const char* ending) {
    return runtime.kernel((name(pattern) + ending).c_str());
  }
};

}  // namespace weir::apps
