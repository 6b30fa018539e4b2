#include <weir/queue.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"
#include "tasks/queue.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_queue_create(weir_runtime* runtime, const weir_queue_options* options,
                              weir_queue** out_queue) {
  return guard([&] {
    weir_queue*& result = out(out_queue, "out_queue");
    weir_runtime& live = weir_runtime::check(runtime);
    const weir_queue_options known =
        read_options(options, weir_queue_options WEIR_QUEUE_OPTIONS_INIT, "options");
    result = live.create_queue(known);
  });
}

void weir_queue_destroy(weir_queue* queue) {
  if (queue == nullptr) return;
  guard([&] {
    weir_queue& live = weir_queue::check(queue);
    Runtime::of(live.registry()).destroy_queue(&live);
  });
}

weir_status weir_queue_submit(weir_queue* queue, const weir_task* task, weir_event* out_event) {
  return guard([&] {
    weir_queue& live = weir_queue::check(queue);
    weir_task copy = WEIR_TASK_INIT;
    const weir_event event = live.submit(current(task, copy, "task"), out_event != nullptr);
    if (out_event != nullptr) *out_event = event;
  });
}

weir_status weir_queue_acquire(weir_queue* queue, weir_buffer* buffer, weir_region region,
                               weir_access access, int64_t timeout_ns) {
  weir_status status = WEIR_STATUS_OK;
  const weir_status failed = guard([&] {
    status = report_wait(weir_queue::check(queue).acquire(buffer, region, access, timeout_ns));
  });
  return failed != WEIR_STATUS_OK ? failed : status;
}

weir_status weir_queue_flush(weir_queue* queue, weir_buffer* buffer, weir_region region,
                             weir_event* out_event) {
  return guard([&] {
    const weir_event event = weir_queue::check(queue).flush(buffer, region);
    if (out_event != nullptr) *out_event = event;
  });
}

weir_status weir_queue_synchronize(weir_queue* queue, int64_t timeout_ns) {
  weir_status status = WEIR_STATUS_OK;
  const weir_status failed =
      guard([&] { status = report_wait(weir_queue::check(queue).synchronize(timeout_ns)); });
  return failed != WEIR_STATUS_OK ? failed : status;
}

weir_status weir_queue_cancel(weir_queue* queue) {
  return guard([&] { weir_queue::check(queue).cancel(); });
}

weir_status weir_queue_get_info(weir_queue* queue, weir_queue_info* out_info,
                                weir_queue_share* shares, size_t share_count) {
  return guard([&] {
    weir_queue_info info = WEIR_QUEUE_INFO_INIT;
    weir_queue::check(queue).get_info(info, shares, share_count);
    write_info(out_info, info, "out_info");
  });
}

weir_status weir_policy_register(weir_runtime* runtime, const weir_policy_options* options) {
  return guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    live.add_policy(read_options(options, weir_policy_options WEIR_POLICY_OPTIONS_INIT, "options"));
  });
}
}
