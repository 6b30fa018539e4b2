#include <weir/stream.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"
#include "stream/executor.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

/// Runs an enqueue that returns an event, made only when the caller wants it.
template <class Enqueue>
weir_status guard_enqueue(weir_stream* stream, weir_event* out_event, Enqueue&& enqueue) noexcept {
  return guard([&] {
    weir_stream& live = weir_stream::check(stream);
    live.await_room();
    const weir_event event = enqueue(live, out_event != nullptr);
    if (out_event != nullptr) *out_event = event;
  });
}

weir_transfer between_host(weir_stream& stream, weir_buffer* buffer, const weir_region& region,
                           bool upload) {
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  const weir_endpoint host{nullptr, buffer, region};
  const weir_endpoint here{static_cast<weir_domain*>(&stream.domain()), buffer, region};
  transfer.source = upload ? host : here;
  transfer.target = upload ? here : host;
  return transfer;
}

}  // namespace

extern "C" {

weir_status weir_stream_create(weir_place* place, const weir_stream_options* options,
                               weir_stream** out_stream) {
  return guard([&] {
    weir_stream*& result = out(out_stream, "out_stream");
    weir_place& live = weir_place::check(place);
    const weir_stream_options known =
        read_options(options, weir_stream_options WEIR_STREAM_OPTIONS_INIT, "options");
    result = Registry::of(live.domain().context()).create_stream(live, known);
  });
}

void weir_stream_destroy(weir_stream* stream) {
  if (stream == nullptr) return;
  guard([&] {
    weir_stream& live = weir_stream::check(stream);
    Registry::of(live.context()).destroy_stream(&live);
  });
}

weir_status weir_stream_compute(weir_stream* stream, const weir_compute* compute,
                                weir_event* out_event) {
  return guard_enqueue(stream, out_event, [&](weir_stream& live, bool with_event) {
    weir_compute copy = WEIR_COMPUTE_INIT;
    return live.compute(current(compute, copy, "compute"), with_event);
  });
}

weir_status weir_stream_transfer(weir_stream* stream, const weir_transfer* transfer,
                                 weir_event* out_event) {
  return guard_enqueue(stream, out_event, [&](weir_stream& live, bool with_event) {
    weir_transfer copy = WEIR_TRANSFER_INIT;
    return live.transfer(current(transfer, copy, "transfer"), with_event);
  });
}

weir_status weir_stream_upload(weir_stream* stream, weir_buffer* buffer, weir_region region,
                               weir_event* out_event) {
  return guard_enqueue(stream, out_event, [&](weir_stream& live, bool with_event) {
    return live.transfer(between_host(live, buffer, region, true), with_event);
  });
}

weir_status weir_stream_download(weir_stream* stream, weir_buffer* buffer, weir_region region,
                                 weir_event* out_event) {
  return guard_enqueue(stream, out_event, [&](weir_stream& live, bool with_event) {
    return live.transfer(between_host(live, buffer, region, false), with_event);
  });
}

weir_status weir_stream_external(weir_stream* stream, const weir_external* external,
                                 weir_event* out_event) {
  return guard_enqueue(stream, out_event, [&](weir_stream& live, bool) {
    weir_external copy = WEIR_EXTERNAL_INIT;
    return live.external(current(external, copy, "external"));
  });
}

weir_status weir_external_complete(weir_runtime* runtime, const weir_event* event,
                                   weir_status status, const char* message) {
  return guard([&] {
    complete_external(weir_runtime::check(runtime), out(const_cast<weir_event*>(event), "event"),
                      status, message);
  });
}

weir_status weir_stream_sync(weir_stream* stream, const weir_sync* sync, weir_event* out_event) {
  return guard_enqueue(stream, out_event, [&](weir_stream& live, bool with_event) {
    weir_sync copy = WEIR_SYNC_INIT;
    return live.sync(current(sync, copy, "sync"), with_event);
  });
}

weir_status weir_stream_wait_event(weir_stream* stream, const weir_event* event) {
  return guard_enqueue(stream, nullptr, [&](weir_stream& live, bool with_event) {
    weir_sync sync = WEIR_SYNC_INIT;
    sync.events = &out(const_cast<weir_event*>(event), "event");
    sync.event_count = 1;
    return live.sync(sync, with_event);
  });
}

weir_status weir_stream_synchronize(weir_stream* stream, int64_t timeout_ns) {
  weir_status status = WEIR_STATUS_OK;
  const weir_status failed = guard([&] {
    weir_stream& live = weir_stream::check(stream);
    const WaitResult result = Registry::of(live.context()).synchronize(live, timeout_ns);
    if (result.status == WEIR_STATUS_TIMEOUT) {
      fail(WEIR_STATUS_TIMEOUT, "the deadline passed before stream '{}' was done", live.name());
    }
    status = report_wait(result);
  });
  return failed != WEIR_STATUS_OK ? failed : status;
}

weir_status weir_stream_cancel(weir_stream* stream) {
  return guard([&] { weir_stream::check(stream).cancel(); });
}
}
