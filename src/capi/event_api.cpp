#include <weir/event.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"
#include "stream/event_callback.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_event_wait(weir_runtime* runtime, const weir_event* events, size_t count,
                            weir_wait_mode mode, int64_t timeout_ns, size_t* out_index) {
  weir_status status = WEIR_STATUS_OK;
  const weir_status failed = guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    if (count > 0) out(const_cast<weir_event*>(events), "events");
    const WaitResult result = wait_for_events(live, {events, count}, mode, timeout_ns);
    if (out_index != nullptr) *out_index = result.index;
    status = report_wait(result);
  });
  return failed != WEIR_STATUS_OK ? failed : status;
}

weir_status weir_event_get_info(weir_runtime* runtime, const weir_event* event,
                                weir_event_info* out_info) {
  return guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    const weir_event& known = out(const_cast<weir_event*>(event), "event");
    weir_event_info info = WEIR_EVENT_INFO_INIT;
    if (live.virtual_time()) live.drive();
    const WaitResult result = wait_for_events(live, {&known, 1}, WEIR_WAIT_MODE_ALL, 0);
    info.complete = result.status != WEIR_STATUS_TIMEOUT;
    info.status = info.complete ? result.status : WEIR_STATUS_OK;
    if (result.failure) {
      result.failure->mark_reported();
      result.failure->describe(result.status == WEIR_STATUS_POISONED)
          .copy(info.message, sizeof info.message - 1);
    }
    write_info(out_info, info, "out_info");
  });
}

weir_status weir_event_on_complete(weir_runtime* runtime, const weir_event* event,
                                   weir_event_callback callback, void* payload) {
  return guard([&] {
    on_complete(weir_runtime::check(runtime), out(const_cast<weir_event*>(event), "event"),
                callback, payload);
  });
}
}
