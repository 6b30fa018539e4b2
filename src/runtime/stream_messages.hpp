// Messages between ranks as actions of streams.
#pragma once

#include <cstdint>

#include <weir/stream_messages.h>

#include "runtime/runtime.hpp"

namespace weir::rt {

struct StreamMessageRequest {
  bool is_send;
  unsigned peer;  ///< rank in the communicator
  std::uint32_t tag;
  weir_buffer* buffer;
  weir_region region;  ///< in the instance of the stream's domain
};

/// Enqueues a message. A region in device memory is copied through a buffer in host memory. Throws
/// Error, having enqueued nothing that the program sees; the operation of the other rank then
/// fails.
weir_event enqueue_message(Stream& stream, weir_communicator& group,
                           const StreamMessageRequest& request);

}  // namespace weir::rt
