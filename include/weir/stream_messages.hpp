/// Messages between ranks as actions of streams, in C++.
#pragma once

#include <cstdint>

#include <weir/stream_messages.h>
#include <weir/communicator.hpp>
#include <weir/weir.hpp>

namespace weir {

/// Enqueues the send of a region of the stream's domain to a rank: weir_stream_send(). Throws
/// Error.
inline Event send(const StreamRef& stream, const Communicator& communicator, unsigned to,
                  const Region& part, std::uint32_t tag = 0) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_send(stream.handle(), communicator.handle(), to, tag, part.buffer, part.region,
                         &event));
  return {stream.runtime(), event};
}

/// Enqueues the matching receive: weir_stream_receive(). Throws Error.
inline Event receive(const StreamRef& stream, const Communicator& communicator, unsigned from,
                     const Region& part, std::uint32_t tag = 0) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_receive(stream.handle(), communicator.handle(), from, tag, part.buffer,
                            part.region, &event));
  return {stream.runtime(), event};
}

}  // namespace weir
