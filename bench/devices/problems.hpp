// Problems for kernels of devices: sizes, data and what must come out.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "common/program.hpp"

namespace weir_bench {

inline constexpr std::size_t group_width = 256;    ///< items of a group
inline constexpr std::size_t parts = 64;           ///< elements that an item adds up
inline constexpr std::size_t tile = 16;            ///< groups of the product have tile x tile items
inline constexpr std::size_t elements = 1U << 22;  ///< of the vectors
inline constexpr std::size_t side = 2048;          ///< of the grid, inside of its border
inline constexpr std::size_t pitch = side + 2;
inline constexpr std::size_t order = 512;  ///< of the matrices
inline constexpr float factor = 2;

/// One call: floats of its arrays, work, and calls that are timed together.
struct Problem {
  std::string name;
  std::size_t first, second, result;
  double amount;  ///< bytes or operations
  const char* unit;
  long calls;

  static Problem of(const std::string& name) {
    constexpr std::size_t sums = elements / group_width / parts;
    constexpr double bytes = sizeof(float);
    if (name == "saxpy") return {name, elements, 0, elements, 3 * bytes * elements, "GB/s", 8};
    if (name == "stencil") {
      return {name, pitch * pitch, 0, pitch * pitch, 2 * bytes * side * side, "GB/s", 8};
    }
    if (name == "reduce") return {name, elements, 0, sums, bytes * elements, "GB/s", 16};
    if (name == "multiply") {
      constexpr std::size_t size = order * order;
      return {name, size, size, size, 2.0 * order * size, "GFLOP/s", 4};
    }
    throw std::invalid_argument("unknown: " + name);
  }
};

/// Arrays of a problem in memory of the caller, all small integers.
struct Arrays {
  float* first;
  float* second;  ///< not used without elements
  float* result;

  void fill(const Problem& problem) const {
    for (std::size_t i = 0; i < problem.first; ++i) first[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < problem.second; ++i) second[i] = static_cast<float>(i % 5) - 2;
    for (std::size_t i = 0; i < problem.result; ++i) result[i] = static_cast<float>(i % 3);
  }

  /// Throws unless one call has been made since fill().
  void check(const Problem& problem) const {
    if (problem.name == "reduce") {
      double sum = 0, expected = 0;
      for (std::size_t i = 0; i < problem.result; ++i) sum += static_cast<double>(result[i]);
      for (std::size_t i = 0; i < problem.first; ++i) expected += static_cast<double>(first[i]);
      return expect(problem, 0, sum, expected);
    }
    const std::size_t stride = problem.name == "multiply" ? 37 : 1;
    for (std::size_t i = 0; i < problem.result; i += stride) {
      expect(problem, i, static_cast<double>(result[i]), expected_at(problem, i));
    }
  }

 private:
  double expected_at(const Problem& problem, std::size_t i) const {
    const auto before = static_cast<float>(i % 3);
    if (problem.name == "saxpy") return static_cast<double>(before + factor * first[i]);
    if (problem.name == "multiply") {
      double sum = 0;
      for (std::size_t k = 0; k < order; ++k) {
        sum += static_cast<double>(first[k * order + i % order]) *
               static_cast<double>(second[i / order * order + k]);
      }
      return sum;
    }
    const std::size_t x = i % pitch, y = i / pitch;
    if (x == 0 || y == 0 || x > side || y > side) return static_cast<double>(before);
    return static_cast<double>(first[i - 1] + first[i + 1] + first[i - pitch] + first[i + pitch] -
                               4 * first[i]);
  }

  static void expect(const Problem& problem, std::size_t at, double value, double expected) {
    if (value == expected) return;
    throw std::runtime_error(problem.name + " is wrong at " + std::to_string(at) + ": " +
                             std::to_string(value) + " for " + std::to_string(expected));
  }
};

/// Returns the rate of a problem: calls(n) makes n calls and waits; the first is checked by
/// check().
template <class Calls, class Check>
double rate_of(const Problem& problem, Calls&& calls, Check&& check) {
  calls(1);
  check();
  const double seconds =
      median(repeat(2, 9, [&] { return time_of([&] { calls(problem.calls); }); }));
  return problem.amount * static_cast<double>(problem.calls) / seconds * 1e-9;
}

}  // namespace weir_bench
