#include <weir/stream_messages.h>

#include "capi/guard.hpp"
#include "runtime/stream_messages.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

weir_status enqueue(weir_stream* stream, weir_communicator* communicator,
                    const StreamMessageRequest& request, weir_event* out_event) {
  return guard([&] {
    weir_stream& live = weir_stream::check(stream);
    weir_communicator& group = weir_communicator::check(communicator);
    live.await_room();
    const weir_event event = enqueue_message(live, group, request);
    if (out_event != nullptr) *out_event = event;
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
}
