// Collective operations between ranks as actions of streams.
#pragma once

#include <weir/stream_messages.h>

#include "runtime/runtime.hpp"

namespace weir::rt {

/// Enqueues a collective operation. Regions that are in device memory or not contiguous are copied
/// through buffers in host memory. Throws Error: {invalid_argument} without effect, others after
/// the operations of the other ranks fail.
weir_event enqueue_collective(Stream& stream, weir_communicator& group,
                              const weir_collective& collective);

}  // namespace weir::rt
