#include "wave/reference_wave.hpp"

#include <utility>

namespace weir::apps {

namespace {

/// A cube of cells; those outside of it are zero.
class Cube {
 public:
  explicit Cube(std::size_t n) : n_(static_cast<long>(n)), cells_(n * n * n) {}

  double& at(long x, long y, long z) { return cells_[index(x, y, z)]; }
  double value(long x, long y, long z) const {
    const bool inside = x >= 0 && y >= 0 && z >= 0 && x < n_ && y < n_ && z < n_;
    return inside ? cells_[index(x, y, z)] : 0;
  }
  /// The second derivative along the axis of which (dx, dy, dz) is the unit.
  double second_derivative(long x, long y, long z, long dx, long dy, long dz) const {
    constexpr double kTaps[] = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};
    double sum = kTaps[0] * value(x, y, z);
    for (long k = 1; k <= 4; ++k) {
      sum += kTaps[k] * (value(x - k * dx, y - k * dy, z - k * dz) +
                         value(x + k * dx, y + k * dy, z + k * dz));
    }
    return sum;
  }
  std::vector<double> release() { return std::move(cells_); }

 private:
  std::size_t index(long x, long y, long z) const {
    return static_cast<std::size_t>(x + n_ * (y + n_ * z));
  }

  long n_;
  std::vector<double> cells_;
};

}  // namespace

std::vector<double> reference_wave(std::size_t n, const Layers& layers, const Source& source,
                                   std::size_t steps) {
  const std::vector<double> kept = sponge(n);
  const long end = static_cast<long>(n);
  const auto kept_at = [&](long i) { return kept[static_cast<std::size_t>(i)]; };
  Cube before(n), now(n);
  for (std::size_t step = 0; step < steps; ++step) {
    for (long z = 0; z < end; ++z) {
      const double speed = layers.speed(static_cast<std::size_t>(z));
      for (long y = 0; y < end; ++y) {
        for (long x = 0; x < end; ++x) {
          const double laplacian = now.second_derivative(x, y, z, 1, 0, 0) +
                                   now.second_derivative(x, y, z, 0, 1, 0) +
                                   now.second_derivative(x, y, z, 0, 0, 1);
          const double g = kept_at(x) * kept_at(y) * kept_at(z);
          double& cell = before.at(x, y, z);
          cell = g * (2 * now.value(x, y, z) - g * cell + speed * speed * laplacian);
        }
      }
    }
    std::swap(before, now);
    now.at(static_cast<long>(source.x), static_cast<long>(source.y), static_cast<long>(source.z)) +=
        source.wavelet(static_cast<double>(step));
  }
  return now.release();
}

}  // namespace weir::apps
