// Arguments of a device kernel, in the form that drivers take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.hpp"

namespace weir::rt {

/// Values of the parameters of one launch, packed one after the other. Used again and again by one
/// thread: it allocates only when a launch has more parameters than any before.
class LaunchArguments {
 public:
  /// Packs the operands and scalars of a call as source.parameters says. An outcome that is not OK
  /// says which parameter has no argument, or one of the wrong kind; the values are then of no use.
  Outcome pack(const KernelSource& source, const weir_call& call) noexcept;

  std::size_t count() const noexcept { return addresses_.size(); }
  /// The address of each value, as cuLaunchKernel() wants them; valid until the next pack().
  void** addresses() noexcept { return addresses_.data(); }
  /// Bytes of a value, as clSetKernelArg() wants them.
  std::size_t size(std::size_t parameter) const noexcept { return sizes_[parameter]; }

 private:
  void pack_all(const KernelSource& source, const weir_call& call);

  std::vector<std::uint64_t> values_;
  std::vector<void*> addresses_;
  std::vector<std::size_t> sizes_;
};

}  // namespace weir::rt
