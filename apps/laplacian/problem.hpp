// The iteration: the grid, its border, and its initial cells.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include <weir/grid.hpp>

namespace weir::apps {

/// X = X + rate * Laplacian(X) on n cells an edge, with a constant border around them.
struct JacobiProblem {
  std::size_t n = 0;
  unsigned dimensions = 3;
  std::size_t iterations = 0;
  bool mode = false;  ///< begin with the lowest mode instead of random numbers
  std::uint64_t seed = 1;

  /// Half of what is stable.
  double rate() const noexcept { return 0.25 / dimensions; }
  /// The mode has its zeros there.
  double border() const noexcept { return mode ? 0 : 1; }
  double cells() const noexcept { return std::pow(static_cast<double>(n), dimensions); }
  bool inside(std::int64_t x, std::int64_t y, std::int64_t z) const noexcept {
    const auto in = [this](std::int64_t i) { return i >= 0 && i < static_cast<std::int64_t>(n); };
    return in(x) && in(y) && (dimensions == 2 || in(z));
  }

  /// Returns the initial value of a cell, or of the border outside of the grid; independent of the
  /// blocks.
  double start(std::int64_t x, std::int64_t y, std::int64_t z) const {
    if (!inside(x, y, z)) return border();
    return mode ? mode_at(x, y, z) : random_at(x, y, z);
  }
  /// sin(pi (x + 1) / (n + 1)) and so on: an eigenvector of the Laplacian.
  double mode_at(std::int64_t x, std::int64_t y, std::int64_t z) const {
    const auto wave = [this](std::int64_t i) {
      return std::sin(std::numbers::pi * static_cast<double>(i + 1) / static_cast<double>(n + 1));
    };
    return wave(x) * wave(y) * (dimensions == 3 ? wave(z) : 1);
  }
  /// Returns the factor by which a step reduces that mode.
  double decay() const {
    const double eigenvalue = 2 * std::cos(std::numbers::pi / static_cast<double>(n + 1)) - 2;
    return 1 + rate() * dimensions * eigenvalue;
  }

 private:
  /// In [0, 1), from the cell's number alone.
  double random_at(std::int64_t x, std::int64_t y, std::int64_t z) const noexcept {
    const auto edge = static_cast<std::int64_t>(n);
    auto state = (static_cast<std::uint64_t>((z * edge + y) * edge + x) + 1) * 0x9e3779b97f4a7c15u +
                 seed * 0xd1b54a32d192ed03u;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((state ^ (state >> 31)) >> 11) * 0x1p-53;
  }
};

}  // namespace weir::apps
