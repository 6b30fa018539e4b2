// The two programs that every form has, and the tile kernels for those that run on host cores.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "common/matrix.hpp"
#include "forms/kernels.h"

namespace weir_bench {

/// Replaces the numbers in `blocks` blocks of x by their roots: each block is uploaded, computed
/// and downloaded, and copies may overlap kernels.
void pipeline(double* x, int blocks, int block);

/// Factors the lower part of a, whose tiles are uploaded and downloaded one by one.
void cholesky(TiledMatrix& a);

/// What a form keeps for each tile.
template <class T>
class TileTable {
 public:
  explicit TileTable(int tiles)
      : tiles_(tiles), values_(static_cast<std::size_t>(tiles) * static_cast<std::size_t>(tiles)) {}
  T& operator()(int row, int column) {
    return values_[static_cast<std::size_t>(row * tiles_ + column)];
  }

 private:
  int tiles_;
  std::vector<T> values_;
};

inline void roots(double* x, int count) {
  for (int i = 0; i < count; ++i) root_item(x, i);
}
inline void potrf(int n, double* a) { potrf_item(n, a); }
inline void trsm(int n, const double* l, double* x) {
  for (int row = 0; row < n; ++row) trsm_item(n, l, x, row);
}
inline void syrk(int n, const double* a, double* c) {
  for (int item = 0; item < n * n; ++item) syrk_item(n, a, c, item);
}
inline void gemm(int n, const double* a, const double* b, double* c) {
  for (int item = 0; item < n * n; ++item) gemm_item(n, a, b, c, item);
}

}  // namespace weir_bench
