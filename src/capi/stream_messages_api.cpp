#include <weir/stream_messages.h>

#include "capi/guard.hpp"
#include "runtime/stream_collectives.hpp"
#include "runtime/stream_messages.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

/// Calls make(stream, communicator), which returns an event.
template <class Make>
weir_status enqueue(weir_stream* stream, weir_communicator* communicator, weir_event* out_event,
                    const Make& make) {
  return guard([&] {
    weir_stream& live = weir_stream::check(stream);
    weir_communicator& group = weir_communicator::check(communicator);
    live.await_room();
    const weir_event event = make(live, group);
    if (out_event != nullptr) *out_event = event;
  });
}

weir_status enqueue(weir_stream* stream, weir_communicator* communicator,
                    const StreamMessageRequest& request, weir_event* out_event) {
  return enqueue(stream, communicator, out_event, [&](Stream& live, weir_communicator& group) {
    return enqueue_message(live, group, request);
  });
}

}  // namespace

extern "C" {

weir_status weir_stream_send(weir_stream* stream, weir_communicator* communicator, unsigned to,
                             uint32_t tag, weir_buffer* buffer, weir_region region,
                             weir_event* out_event) {
  return enqueue(stream, communicator, {true, to, tag, buffer, region}, out_event);
}

weir_status weir_stream_receive(weir_stream* stream, weir_communicator* communicator, unsigned from,
                                uint32_t tag, weir_buffer* buffer, weir_region region,
                                weir_event* out_event) {
  return enqueue(stream, communicator, {false, from, tag, buffer, region}, out_event);
}

weir_status weir_stream_collective(weir_stream* stream, weir_communicator* communicator,
                                   const weir_collective* collective, weir_event* out_event) {
  return enqueue(stream, communicator, out_event, [&](Stream& live, weir_communicator& group) {
    return enqueue_collective(
        live, group, read_options(collective, weir_collective WEIR_COLLECTIVE_INIT, "collective"));
  });
}
}
