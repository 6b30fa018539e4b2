#include <weir/share.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"
#include "share/share.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

/// Calls the program's function; throws its failure as an Error.
Share::Enqueue make_enqueue(const weir_share_options& options) {
  return [function = options.enqueue, payload = options.payload](const weir_chunk& chunk) {
    weir_event event = WEIR_EVENT_INIT;
    const weir_status status = function(&chunk, payload, &event);
    if (status != WEIR_STATUS_OK) fail(status, "{}", weir_last_error());
    return event;
  };
}

}  // namespace

extern "C" {

weir_status weir_share_start(weir_runtime* runtime, const weir_share_options* options,
                             weir_share** out_share) {
  return guard([&] {
    weir_share*& result = out(out_share, "out_share");
    weir_runtime& live = weir_runtime::check(runtime);
    const weir_share_options known =
        read_options(options, weir_share_options WEIR_SHARE_OPTIONS_INIT, "options");
    result = live.create_share(known, make_enqueue(known));
  });
}

weir_status weir_share_wait(weir_share* share, int64_t timeout_ns) {
  weir_status status = WEIR_STATUS_OK;
  const weir_status failed =
      guard([&] { status = report_wait(weir_share::check(share).wait(timeout_ns)); });
  return failed != WEIR_STATUS_OK ? failed : status;
}

weir_status weir_share_cancel(weir_share* share) {
  return guard([&] { weir_share::check(share).cancel(); });
}

void weir_share_destroy(weir_share* share) {
  if (share == nullptr) return;
  guard([&] {
    weir_share& live = weir_share::check(share);
    Runtime::of(live.registry()).destroy_share(&live);
  });
}

weir_status weir_share_get_info(weir_share* share, weir_share_info* out_info,
                                weir_share_part* parts, size_t part_count) {
  return guard([&] {
    weir_share_info info = WEIR_SHARE_INFO_INIT;
    weir_share::check(share).get_info(info, parts, part_count);
    write_info(out_info, info, "out_info");
  });
}
}
