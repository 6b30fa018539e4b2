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

/// The properties of a portable kernel that its code for all domains shares. Immutable.
class Portable {
 public:
  /// Reads WEIR_PORTABLE_BACKWARDS. Throws Error{invalid_argument} for an invalid description.
  explicit Portable(const weir_portable_options& options);

  const KernelSource& source() const noexcept { return source_; }
  bool has_source() const noexcept { return !source_.text.empty(); }
  bool has_host_code() const noexcept { return run_ != nullptr; }

  /// Throws Error{invalid_argument} if a call of the kernel cannot have these arguments.
  void check(std::string_view kernel, std::size_t operands,
             std::span<const weir_scalar> scalars) const;
  /// Returns the number of groups of a call. Throws Error if there are too many, and what the grid
  /// function throws.
  std::array<std::uint32_t, 3> groups_of(const weir_call& call) const;

  /// Runs a call on the host. A weir_host_function whose payload is a Portable with host code.
  static weir_status run(const weir_call* call);

 private:
  KernelSource source_;
  decltype(weir_portable_kernel::run) run_;
  weir_grid_function grid_;
};

}  // namespace weir::rt
