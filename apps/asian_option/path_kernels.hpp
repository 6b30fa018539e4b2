// The kernel that samples paths, for the host and other devices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <weir/weir.hpp>

#include "asian_option/option.hpp"

namespace weir::apps {

/// The result of the kernel for each group of samples: sums over them, for a spot of 1, not
/// discounted.
struct PathSums {
  double payoff, payoff_squared;           ///< of the arithmetic average
  double control, control_squared;         ///< of the geometric one
  double payoff_control;                   ///< products of the two
  double by_spot, by_volatility, by_rate;  ///< derivatives of the payoff
};

/// Two kernels of the same text: for one option on all threads of a place, and for one on each.
struct PathKernels {
  explicit PathKernels(const weir::Runtime& runtime);

  /// Floating-point operations for a step of a path and its image, by the text of the kernel; the
  /// integers of Philox are left out.
  static constexpr double kStepOperations = 90;

  weir::Kernel whole_place, one_thread;

  /// Samples of an option: pairs of a path and its mirror image.
  static std::size_t samples(const Option& option) noexcept { return (option.paths + 1) / 2; }
  /// Returns the number of groups of samples, and of PathSums.
  static std::size_t groups(const Option& option) noexcept;
  /// The scalars of a call for the option of that number in the book.
  static std::array<weir::Scalar, 12> scalars(const Option& option, std::size_t number,
                                              std::uint64_t seed);
};

}  // namespace weir::apps
