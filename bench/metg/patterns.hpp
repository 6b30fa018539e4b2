// The dependence patterns of Task Bench (Slaughter et al., SC 2020), after the description in the
// paper: which points of the step before a task reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir_bench::metg {

enum class Pattern {
  trivial,              ///< reads nothing
  no_comm,              ///< the same point
  stencil_1d,           ///< the same point and its two neighbours
  stencil_1d_periodic,  ///< the same in a ring
  dom,                  ///< a wavefront: the same point and the one before it
  tree,                 ///< half of the index; the number of points doubles up to the width
  fft,                  ///< the same point, and those at a distance of 1, 2, 4, ... by step
  all_to_all,           ///< all points
  nearest,              ///< the `radix` nearest points
  spread,               ///< `radix` points at equal distances, others in each step
  random_nearest        ///< each of the `radix` nearest points with probability 1/2
};

inline constexpr std::array<std::string_view, 11> pattern_names = {
    "trivial",    "no_comm", "stencil_1d", "stencil_1d_periodic", "dom", "tree", "fft",
    "all_to_all", "nearest", "spread",     "random_nearest"};

/// Throws std::invalid_argument when there is no such pattern.
inline Pattern parse_pattern(std::string_view name) {
  const auto found = std::find(pattern_names.begin(), pattern_names.end(), name);
  if (found == pattern_names.end()) {
    std::string known;
    for (std::string_view each : pattern_names) known.append(" ").append(each);
    throw std::invalid_argument("there is no pattern '" + std::string(name) +
                                "', choose from:" + known);
  }
  return static_cast<Pattern>(found - pattern_names.begin());
}

/// A graph of `steps` steps with up to `width` points each. A task is a point in a step.
struct Shape {
  Pattern pattern = Pattern::stencil_1d;
  std::uint32_t width = 4;
  std::uint32_t steps = 100;
  std::uint32_t radix = 3;  ///< of nearest, spread and random_nearest
  std::uint64_t seed = 1;   ///< of random_nearest
};

/// The points [first, first + count) of a step.
struct Points {
  std::uint32_t first, count;

  bool contains(std::int64_t point) const {
    return point >= first && point < std::int64_t{first} + count;
  }
};

/// A number that looks random, the same for the same words (the last step of SplitMix64).
inline std::uint64_t hash_of(std::uint64_t seed, std::uint64_t first, std::uint64_t second) {
  std::uint64_t value = seed * 0x9e3779b97f4a7c15U + first;
  for (std::uint64_t word : {second, std::uint64_t{0}}) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
    value = (value ^ (value >> 31)) + word;
  }
  return value;
}

/// Returns the points that exist in a step: all, except at the ends of dom and at the root of tree.
inline Points points_of(const Shape& shape, std::uint32_t step) {
  switch (shape.pattern) {
    case Pattern::dom: {
      const std::int64_t first = std::int64_t{step} + shape.width - shape.steps;
      const std::uint32_t begin = static_cast<std::uint32_t>(std::max<std::int64_t>(first, 0));
      return {begin, std::min(step + 1, shape.width) - begin};
    }
    case Pattern::tree:
      return {0, step < 31 ? std::min(shape.width, std::uint32_t{1} << step) : shape.width};
    default: return {0, shape.width};
  }
}

namespace detail {

/// The window of the `radix` nearest points: one more before the point than after it if even.
inline std::vector<std::int64_t> window(const Shape& shape, std::int64_t point) {
  std::vector<std::int64_t> points;
  const std::int64_t radix = shape.radix, first = point - radix / 2;
  for (std::int64_t other = first; other < first + radix; ++other) points.push_back(other);
  return points;
}

inline std::int64_t fft_distance(const Shape& shape, std::uint32_t step) {
  std::uint32_t levels = 1;
  while ((std::uint64_t{1} << levels) < shape.width) ++levels;
  return std::int64_t{1} << ((step - 1) % levels);
}

inline std::vector<std::int64_t> spread(const Shape& shape, std::uint32_t step,
                                        std::int64_t point) {
  std::vector<std::int64_t> points;
  for (std::int64_t index = 0; index < shape.radix; ++index) {
    const std::int64_t shift = index * shape.width / shape.radix + (index > 0 ? step : 0);
    points.push_back((point + shift) % shape.width);
  }
  return points;
}

inline std::vector<std::int64_t> random_nearest(const Shape& shape, std::uint32_t step,
                                                std::int64_t point) {
  std::vector<std::int64_t> points = window(shape, point);
  std::erase_if(points, [&](std::int64_t other) {
    const std::uint64_t edge =
        static_cast<std::uint64_t>(point) << 32 | (static_cast<std::uint64_t>(other) & 0xffffffffU);
    return hash_of(shape.seed, step, edge) % 2 != 0;
  });
  return points;
}

/// May name points that do not exist, and points twice.
inline std::vector<std::int64_t> candidates(const Shape& shape, std::uint32_t step,
                                            std::int64_t point) {
  const std::int64_t width = shape.width;
  switch (shape.pattern) {
    case Pattern::trivial: return {};
    case Pattern::no_comm: return {point};
    case Pattern::stencil_1d: return {point - 1, point, point + 1};
    case Pattern::stencil_1d_periodic:
      return {(point + width - 1) % width, point, (point + 1) % width};
    case Pattern::dom: return {point - 1, point};
    case Pattern::tree: return {point / 2};
    case Pattern::fft: {
      const std::int64_t distance = fft_distance(shape, step);
      return {point - distance, point, point + distance};
    }
    case Pattern::all_to_all: {
      std::vector<std::int64_t> points;
      for (std::int64_t other = 0; other < width; ++other) points.push_back(other);
      return points;
    }
    case Pattern::nearest: return window(shape, point);
    case Pattern::spread: return spread(shape, step, point);
    case Pattern::random_nearest: return random_nearest(shape, step, point);
  }
  return {};
}

}  // namespace detail

/// Returns the points of step - 1 that a task reads, in ascending order; none in step 0.
inline std::vector<std::uint32_t> predecessors_of(const Shape& shape, std::uint32_t step,
                                                  std::uint32_t point) {
  std::vector<std::uint32_t> found;
  if (step == 0) return found;
  const Points before = points_of(shape, step - 1);
  for (std::int64_t other : detail::candidates(shape, step, point)) {
    if (before.contains(other)) found.push_back(static_cast<std::uint32_t>(other));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace weir_bench::metg
