#include <weir/trace.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"
#include "trace/export.hpp"
#include "trace/summary.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_trace_start(weir_runtime* runtime, size_t max_bytes) {
  return guard([&] { weir_runtime::check(runtime).recorder().start(max_bytes); });
}

weir_status weir_trace_stop(weir_runtime* runtime) {
  return guard([&] { weir_runtime::check(runtime).recorder().stop(); });
}

weir_status weir_trace_write(weir_runtime* runtime, const char* path) {
  return guard([&] {
    if (path == nullptr) fail_argument("the path of the trace is NULL");
    trace::write_file(weir_runtime::check(runtime).recorder().recording(), path);
  });
}

weir_status weir_trace_summarize(weir_runtime* runtime, weir_trace_summary* out_summary) {
  return guard([&] {
    const trace::Summary found =
        trace::summarize(weir_runtime::check(runtime).recorder().recording());
    weir_trace_summary summary = WEIR_TRACE_SUMMARY_INIT;
    summary.actions = found.actions;
    summary.dropped = found.dropped;
    summary.measured_s = found.measured_s;
    summary.compute_s = found.compute_s;
    summary.transfer_s = found.transfer_s;
    summary.busiest_place_s = found.busiest_place_s;
    summary.busiest_link_s = found.busiest_link_s;
    summary.ideal_s = found.ideal_s;
    summary.overlap_ratio = found.overlap_ratio;
    summary.hidden_s = found.hidden_s;
    summary.idle_share = found.idle_share;
    summary.critical_path_s = found.critical_path_s;
    found.busiest_place.copy(summary.busiest_place, sizeof summary.busiest_place - 1);
    found.busiest_link.copy(summary.busiest_link, sizeof summary.busiest_link - 1);
    write_info(out_summary, summary, "out_summary");
  });
}
}
