// Kernels in the dialect of <weir/portable.h>.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weir/kernel.h>

#include "backend/backend.hpp"

namespace weir::rt {

/// What a portable kernel's code for all domains has in common. Immutable.
class Portable {
 public:
  /// Reads WEIR_PORTABLE_BACKWARDS. Throws Error{invalid_argument} for a bad description.
  explicit Portable(const weir_portable_options& options);

  const KernelSource& source() const noexcept { return source_; }
  bool has_source() const noexcept { return !source_.text.empty(); }
  bool has_host_code() const noexcept { return run_ != nullptr; }

  /// Throws Error{invalid_argument} when a call of the kernel cannot have these arguments.
  void check(std::string_view kernel, std::size_t operands,
             std::span<const weir_scalar> scalars) const;
  /// How many groups a call runs. Throws Error when they are too many, and what the grid function
  /// throws.
  std::array<std::uint32_t, 3> groups_of(const weir_call& call) const;

  /// Runs a call on the host: a weir_host_function whose payload is a Portable with code for it.
  static weir_status run(const weir_call* call);

 private:
  KernelSource source_;
  decltype(weir_portable_kernel::run) run_;
  weir_grid_function grid_;
};

}  // namespace weir::rt
