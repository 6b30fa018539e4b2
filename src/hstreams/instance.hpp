// A buffer's memory in one logical domain.
#pragma once

#include <cstdint>
#include <memory>

#include <weir/weir.hpp>

#include "hstreams/physical_domain.hpp"

namespace weir::hs {

/// Memory in a domain of weir. Destroying it waits for the actions that use it.
struct Instance {
  weir::Buffer memory;
  weir_domain* domain;  ///< nullptr: host memory
  HSTR_PHYS_DOM physical;
  std::size_t pad;  ///< bytes before the buffer, so that addresses keep their last six bits

  Region range(std::uint64_t offset, std::uint64_t bytes) const {
    return memory.range(pad + offset, bytes);
  }
};

/// Wraps the program's own memory. Throws Error{OUT_OF_MEMORY} when it overlaps memory of weir.
std::shared_ptr<Instance> wrap_instance(const weir::Runtime& runtime, void* base,
                                        std::uint64_t bytes);

/// Allocates zeroed memory in a domain. Throws Error{OUT_OF_MEMORY} when the domain has no such
/// memory.
std::shared_ptr<Instance> make_instance(const weir::Runtime& runtime,
                                        const PhysicalDomain& physical, const void* base,
                                        std::uint64_t bytes, const HSTR_BUFFER_PROPS& props,
                                        std::size_t huge_from);

/// Allocates zeroed host memory for the layer itself.
weir::Buffer make_host_memory(const weir::Runtime& runtime, std::uint64_t bytes);

}  // namespace weir::hs
