// Buffers over memory of the program that devices copy by DMA.
#pragma once

#include <cstddef>

#include <weir/weir.hpp>

namespace weir::apps {

/// Makes a buffer of memory that is copied to devices and back several times: page-locked when a
/// device of the runtime gains by it.
inline weir::Buffer wrap_for_cards(const weir::Runtime& runtime, void* address, std::size_t bytes,
                                   const char* name) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = name;
  options.kind = WEIR_MEMORY_KIND_PINNED;
  return runtime.wrap(address, bytes, options);
}

}  // namespace weir::apps
