// The host, or a card.
#pragma once

#include <cstdint>
#include <vector>

#include <weir/weir.hpp>

#include "hstreams/cpu_mask.hpp"
#include "hstreams/environment.hpp"

namespace weir::hs {

/// A domain of weir with the hardware threads that programs see of it.
struct PhysicalDomain {
  PhysicalDomain(HSTR_PHYS_DOM id, const weir::Domain& domain, const Environment& environment);

  /// The cores that threads stand for: neighbours share one when there are more threads.
  std::vector<std::uint32_t> cores_of(const CpuMask& mask) const;
  bool is_host() const noexcept { return id < 0; }
  CpuMask usable() const { return max & ~avoid; }

  HSTR_PHYS_DOM id;
  weir_domain* domain;
  HSTR_ISA_TYPE isa;
  std::size_t cores;
  std::size_t threads;
  std::uint32_t mhz;
  std::uint64_t bytes;
  CpuMask max;
  CpuMask avoid;  ///< those that a card's system uses
};

/// Whether a program can tell the two apart.
bool alike(const PhysicalDomain& a, const PhysicalDomain& b);

}  // namespace weir::hs
