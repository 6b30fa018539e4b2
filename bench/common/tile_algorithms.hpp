// Tiled Cholesky factorisation and matrix product, the same for every runtime that is measured.
#pragma once

#include "common/blas.hpp"
#include "common/matrix.hpp"
#include "common/program.hpp"

namespace weir_bench {

/// A way to run the two algorithms. Tile kernels are single-threaded BLAS and LAPACK calls.
class TileAlgorithms {
 public:
  virtual ~TileAlgorithms() = default;
  /// Called once for a matrix before the algorithms use it, and once afterwards.
  virtual void adopt(TiledMatrix&) {}
  virtual void release(TiledMatrix&) {}
  /// Called before and after the program itself touches an adopted matrix.
  virtual void acquire(TiledMatrix&) {}
  virtual void hand_back(TiledMatrix&) {}

  /// Factors the lower part of a.
  virtual void cholesky(TiledMatrix& a) = 0;
  /// c := a b; c is zero before.
  virtual void multiply(TiledMatrix& a, TiledMatrix& b, TiledMatrix& c) = 0;
  virtual std::string config() const = 0;
};

/// Seconds of each factorisation of a matrix of order n. Throws when the last result is wrong.
inline std::vector<double> time_cholesky(TileAlgorithms& algorithms, long n, long tile,
                                         long repeats) {
  TiledMatrix given(n, tile), a(n, tile);
  given.fill([&](long row, long column) { return positive_definite(n, row, column); });
  algorithms.adopt(a);
  const auto seconds = repeat(1, repeats, [&] {
    algorithms.acquire(a);
    a.copy(given);
    algorithms.hand_back(a);
    return time_of([&] { algorithms.cholesky(a); });
  });
  algorithms.release(a);
  check_factor(a);
  return seconds;
}

/// Seconds of each product of order n. Throws when the last result is wrong.
inline std::vector<double> time_multiply(TileAlgorithms& algorithms, long n, long tile,
                                         long repeats) {
  TiledMatrix a(n, tile), b(n, tile), c(n, tile);
  a.fill([](long row, long column) { return noise(row, column); });
  b.fill([](long row, long column) { return noise(column, row + 1); });
  for (TiledMatrix* matrix : {&a, &b, &c}) algorithms.adopt(*matrix);
  const auto seconds = repeat(1, repeats, [&] {
    algorithms.acquire(c);
    c.fill([](long, long) { return 0; });
    algorithms.hand_back(c);
    return time_of([&] { algorithms.multiply(a, b, c); });
  });
  for (TiledMatrix* matrix : {&a, &b, &c}) algorithms.release(*matrix);
  check_product(a, b, c);
  return seconds;
}

/// Measures `cholesky|matmul --n N --tiles T,T...`: the best tile counts. 0 is one tile.
inline nlohmann::json measure_tiles(TileAlgorithms& algorithms, const Arguments& arguments) {
  const long n = arguments.number("--n", 4096);
  const long repeats = arguments.number("--repeats", 1);
  const bool factor = arguments.verb() == "cholesky";
  if (!factor && arguments.verb() != "matmul") {
    throw std::invalid_argument("unknown algorithm '" + arguments.verb() + "'");
  }
  double best = 0;
  long best_tile = 0;
  for (const long wanted : arguments.numbers("--tiles", "0")) {
    const long tile = wanted == 0 ? n : wanted;
    const auto seconds = factor ? time_cholesky(algorithms, n, tile, repeats)
                                : time_multiply(algorithms, n, tile, repeats);
    if (best_tile != 0 && median(seconds) >= best) continue;
    best = median(seconds);
    best_tile = tile;
  }
  const double cube = std::pow(static_cast<double>(n), 3);
  const std::string tile = best_tile == n ? "" : ", tile " + std::to_string(best_tile);
  return {{"value", cube * (factor ? 1.0 / 3 : 2) / best * 1e-9},
          {"unit", "GFLOP/s"},
          {"config", algorithms.config() + tile}};
}

}  // namespace weir_bench
