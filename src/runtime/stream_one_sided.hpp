// One-sided operations as actions of streams.
#pragma once

#include <weir/stream_messages.h>

#include "runtime/runtime.hpp"

namespace weir::rt {

struct StreamOneSidedRequest {
  bool is_put;
  Rank rank;
  std::size_t offset;  ///< in bytes, in the part of the rank
  weir_buffer* buffer;
  weir_region region;  ///< in the instance of the stream's domain
};

/// Enqueues a put or get. A region that is in device memory or not contiguous is copied through a
/// buffer in host memory. Throws Error without effect.
weir_event enqueue_one_sided(Stream& stream, weir_window& window,
                             const StreamOneSidedRequest& request);

}  // namespace weir::rt
