#include <weir/stream_messages.h>

#include "capi/guard.hpp"
#include "runtime/stream_collectives.hpp"
#include "runtime/stream_halo.hpp"
#include "runtime/stream_messages.hpp"
#include "runtime/stream_one_sided.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

/// Calls make(stream, object), which returns an event.
template <class Object, class Make>
weir_status enqueue(weir_stream* stream, Object* object, weir_event* out_event, const Make& make) {
  return guard([&] {
    weir_stream& live = weir_stream::check(stream);
    Object& checked = Object::check(object);
    live.await_room();
    const weir_event event = make(live, checked);
    if (out_event != nullptr) *out_event = event;
  });
}

weir_status enqueue(weir_stream* stream, weir_communicator* communicator,
                    const StreamMessageRequest& request, weir_event* out_event) {
  return enqueue(stream, communicator, out_event, [&](Stream& live, weir_communicator& group) {
    return enqueue_message(live, group, request);
  });
}

weir_status enqueue(weir_stream* stream, weir_window* window, const StreamOneSidedRequest& request,
                    weir_event* out_event) {
  return enqueue(stream, window, out_event, [&](Stream& live, weir_window& checked) {
    return enqueue_one_sided(live, checked, request);
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

weir_status weir_stream_halo(weir_stream* stream, weir_halo* halo, const weir_operand* operands,
                             size_t operand_count, weir_event* out_event) {
  return enqueue(stream, halo, out_event, [&](Stream& live, weir_halo& checked) {
    return enqueue_halo(live, checked, {operands, operand_count});
  });
}

weir_status weir_stream_put(weir_stream* stream, weir_window* window, unsigned to, size_t offset,
                            weir_buffer* buffer, weir_region region, weir_event* out_event) {
  return enqueue(stream, window, {true, to, offset, buffer, region}, out_event);
}

weir_status weir_stream_get(weir_stream* stream, weir_window* window, unsigned from, size_t offset,
                            weir_buffer* buffer, weir_region region, weir_event* out_event) {
  return enqueue(stream, window, {false, from, offset, buffer, region}, out_event);
}
}
