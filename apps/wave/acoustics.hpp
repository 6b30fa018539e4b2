// The physics of the acoustic applications: cells are 1 wide, steps of time 1 long.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace weir::apps {

/// Two layers, one below the other; z is depth. Waves travel `speed` cells a step, at most 0.45 of
/// them, or the scheme is unstable.
struct Layers {
  std::size_t interface = 0;  ///< first plane of the lower layer
  double above = 0.25, below = 0.4;

  double speed(std::size_t z) const noexcept { return z < interface ? above : below; }
};

/// A wavelet with most of its energy around `frequency`, in cycles a step, centred at `delay`.
struct Ricker {
  double frequency = 0.025;
  double delay = 1.2 / frequency;

  double operator()(double step) const noexcept {
    const double a = std::pow(std::numbers::pi * frequency * (step - delay), 2);
    return (1 - 2 * a) * std::exp(-a);
  }
};

/// Cells at each border in which waves fade.
inline std::size_t sponge_width(std::size_t n) noexcept {
  constexpr std::size_t kWidest = 20, kShare = 5;
  return std::min(kWidest, n / kShare);
}

/// Returns the damping factor of a step for each coordinate: 1 except in the sponge at both ends.
inline std::vector<double> sponge(std::size_t n) {
  constexpr double kStrength = 0.3;
  std::vector<double> kept(n, 1.0);
  const std::size_t width = sponge_width(n);
  for (std::size_t i = 0; i < width; ++i) {
    const double depth = kStrength * static_cast<double>(width - i) / static_cast<double>(width);
    kept[i] = kept[n - 1 - i] = std::exp(-depth * depth);
  }
  return kept;
}

}  // namespace weir::apps
