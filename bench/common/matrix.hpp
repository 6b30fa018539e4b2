// The matrices of the linear algebra benchmarks, whole or in tiles, and a check of the results.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir_bench {

/// A number in [-1, 1] that depends on both indices.
inline double noise(long row, long column) {
  std::uint64_t bits = static_cast<std::uint64_t>(row) << 32 | static_cast<std::uint64_t>(column);
  bits *= 0x9E3779B97F4A7C15U;
  bits ^= bits >> 29;
  bits *= 0xBF58476D1CE4E5B9U;
  return static_cast<double>(bits >> 33) * 0x1p-30 - 1;
}

/// Entry of a symmetric positive definite matrix of order n.
inline double positive_definite(long n, long row, long column) {
  if (row == column) return static_cast<double>(n);
  return row > column ? noise(row, column) : noise(column, row);
}

/// An n x n matrix of tiles, each contiguous and column-major; a tile of side n is the whole
/// matrix.
class TiledMatrix {
 public:
  TiledMatrix(long n, long tile)
      : n_(n), tile_(tile), tiles_(n / tile), values_(static_cast<std::size_t>(n * n)) {
    if (n % tile != 0) throw std::invalid_argument("the tile does not divide the matrix");
  }

  long order() const { return n_; }
  int tiles() const { return static_cast<int>(tiles_); }
  int tile_order() const { return static_cast<int>(tile_); }
  /// Bytes of the matrix, which begins with tile (0, 0), and of a tile.
  std::size_t bytes() const { return values_.size() * sizeof(double); }
  std::size_t tile_bytes() const {
    return static_cast<std::size_t>(tile_ * tile_) * sizeof(double);
  }
  /// Elements before a tile.
  std::size_t offset(long row, long column) const {
    return static_cast<std::size_t>((column * tiles_ + row) * tile_ * tile_);
  }
  double* tile(long row, long column) { return &values_[offset(row, column)]; }
  double at(long row, long column) {
    return tile(row / tile_, column / tile_)[row % tile_ + column % tile_ * tile_];
  }

  /// Sets every entry to entry(row, column).
  template <class Entry>
  void fill(Entry&& entry) {
    for (long column = 0; column < n_; ++column) {
      for (long row = 0; row < n_; ++row) {
        tile(row / tile_, column / tile_)[row % tile_ + column % tile_ * tile_] =
            entry(row, column);
      }
    }
  }
  void copy(const TiledMatrix& from) { values_ = from.values_; }

 private:
  long n_, tile_, tiles_;
  std::vector<double> values_;
};

/// Compares 50 entries with expected(row, column), relative to the order. Throws when they differ.
template <class Actual, class Expected>
void check_entries(long n, Actual&& actual, Expected&& expected) {
  for (long sample = 0; sample < 50; ++sample) {
    const long first = sample * 7919 % n, second = sample * 104729 % n;
    const long row = first > second ? first : second, column = first > second ? second : first;
    const double error = std::abs(actual(row, column) - expected(row, column));
    if (!(error < 1e-12 * static_cast<double>(n))) {
      throw std::runtime_error("wrong result: entry " + std::to_string(row) + ", " +
                               std::to_string(column) + " is off by " + std::to_string(error));
    }
  }
}

/// Checks that l holds the lower factor of positive_definite().
inline void check_factor(TiledMatrix& l) {
  const long n = l.order();
  const auto product = [&](long row, long column) {
    double sum = 0;
    for (long k = 0; k <= column; ++k) sum += l.at(row, k) * l.at(column, k);
    return sum;
  };
  check_entries(n, product,
                [&](long row, long column) { return positive_definite(n, row, column); });
}

/// Checks that c = a b.
inline void check_product(TiledMatrix& a, TiledMatrix& b, TiledMatrix& c) {
  const long n = c.order();
  const auto product = [&](long row, long column) {
    double sum = 0;
    for (long k = 0; k < n; ++k) sum += a.at(row, k) * b.at(k, column);
    return sum;
  };
  check_entries(
      n, [&](long row, long column) { return c.at(row, column); }, product);
}

}  // namespace weir_bench
