#include <weir/pipeline.h>

#include <cstdarg>
#include <cstdio>

#include "capi/guard.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/pipeline.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_batch_fail(weir_batch* batch, weir_status status, const char* format, ...) {
  auto* const call = static_cast<StageCall*>(batch);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(call->message, sizeof call->message, format, arguments);
  va_end(arguments);
  return status == WEIR_STATUS_OK ? WEIR_STATUS_KERNEL_ERROR : status;
}

weir_status weir_item_keep(weir_batch* batch, size_t index, weir_item** out_item) {
  return guard([&] {
    weir_item*& result = out(out_item, "out_item");
    if (batch == nullptr) fail_argument("batch is NULL");
    auto& call = static_cast<StageCall&>(*batch);
    result = call.keep(index);
  });
}

weir_status weir_item_complete(weir_item* item) {
  return guard([&] { RetainedItems::complete(item); });
}

weir_status weir_outlet_grow(weir_outlet* outlet) {
  return guard([&] { static_cast<WorkerBuffer*>(outlet)->grow(); });
}

weir_status weir_pipeline_create(weir_runtime* runtime, const weir_pipeline_options* options,
                                 weir_pipeline** out_pipeline) {
  return guard([&] {
    weir_pipeline*& result = out(out_pipeline, "out_pipeline");
    weir_runtime& live = weir_runtime::check(runtime);
    result = live.create_pipeline(
        read_options(options, weir_pipeline_options WEIR_PIPELINE_OPTIONS_INIT, "options"));
  });
}

void weir_pipeline_destroy(weir_pipeline* pipeline) {
  if (pipeline == nullptr) return;
  guard([&] {
    weir_pipeline& live = weir_pipeline::check(pipeline);
    Runtime::of(live.registry()).destroy_pipeline(&live);
  });
}

weir_status weir_pipeline_add_tunnel(weir_pipeline* pipeline, const weir_tunnel_options* options,
                                     weir_tunnel** out_tunnel) {
  return guard([&] {
    weir_tunnel*& result = out(out_tunnel, "out_tunnel");
    weir_pipeline& live = weir_pipeline::check(pipeline);
    result = live.flow().graph.add_tunnel(
        read_options(options, weir_tunnel_options WEIR_TUNNEL_OPTIONS_INIT, "options"));
  });
}

weir_status weir_pipeline_add_stage(weir_pipeline* pipeline, const weir_stage_options* options) {
  return guard([&] {
    weir_pipeline& live = weir_pipeline::check(pipeline);
    weir_stage_options wanted =
        read_options(options, weir_stage_options WEIR_STAGE_OPTIONS_INIT, "options");
    weir_stage_kernel kernel = WEIR_STAGE_KERNEL_INIT;
    if (wanted.kernel != nullptr) {
      kernel = read_options(wanted.kernel, kernel, "options.kernel");
      wanted.kernel = &kernel;
    }
    live.add_stage(wanted);
  });
}

weir_status weir_pipeline_add_stencil(weir_pipeline* pipeline, const weir_stencil_options* options,
                                      weir_stencil** out_stencil) {
  return guard([&] {
    weir_stencil*& result = out(out_stencil, "out_stencil");
    weir_pipeline& live = weir_pipeline::check(pipeline);
    result = live.add_stencil(
        read_options(options, weir_stencil_options WEIR_STENCIL_OPTIONS_INIT, "options"));
  });
}

weir_status weir_stencil_set(weir_stencil* stencil, weir_outlet* outlet, size_t row, size_t column,
                             size_t rows, size_t columns, const void* values, size_t stride) {
  return guard([&] {
    weir_stencil& live = weir_stencil::check(stencil);
    live.set(out(outlet, "outlet"), {row, column, rows, columns}, values, stride);
  });
}

weir_status weir_stencil_get_info(weir_stencil* stencil, weir_stencil_info* out_info) {
  return guard([&] {
    weir_stencil_info info = WEIR_STENCIL_INFO_INIT;
    weir_stencil::check(stencil).get_info(info);
    write_info(out_info, info, "out_info");
  });
}

weir_status weir_pipeline_start(weir_pipeline* pipeline) {
  return guard([&] { weir_pipeline::check(pipeline).start(); });
}

weir_status weir_pipeline_run(weir_pipeline* pipeline) {
  return guard([&] { weir_pipeline::check(pipeline).run(); });
}

weir_status weir_pipeline_wait(weir_pipeline* pipeline, int64_t timeout_ns) {
  return guard([&] { weir_pipeline::check(pipeline).wait(timeout_ns); });
}

weir_status weir_pipeline_cancel(weir_pipeline* pipeline) {
  return guard([&] { weir_pipeline::check(pipeline).flow().cancel(); });
}

weir_status weir_feed_open(weir_tunnel* tunnel, weir_feed** out_feed) {
  return guard([&] {
    weir_feed*& result = out(out_feed, "out_feed");
    weir_tunnel& live = weir_tunnel::check(tunnel);
    result = live.feeds.open(live);
  });
}

weir_status weir_feed_put(weir_feed* feed, const void* items, size_t count, int64_t timeout_ns,
                          size_t* out_put) {
  return guard([&] {
    weir_feed& live = weir_feed::check(feed);
    std::size_t put = 0;
    live.counters.tunnel.feeds.put(live, items, count, sys::deadline_after(timeout_ns),
                                   out_put != nullptr ? *out_put : put);
  });
}

weir_status weir_feed_next_epoch(weir_feed* feed) {
  return guard([&] {
    weir_feed& live = weir_feed::check(feed);
    live.counters.tunnel.feeds.next_epoch(live);
  });
}

void weir_feed_close(weir_feed* feed) {
  if (feed == nullptr) return;
  guard([&] {
    weir_feed& live = weir_feed::check(feed);
    live.counters.tunnel.feeds.close(live);
  });
}

weir_status weir_pipeline_get_info(weir_pipeline* pipeline, weir_pipeline_info* out_info,
                                   weir_stage_info* stages, size_t stage_count) {
  return guard([&] {
    weir_pipeline_info info = WEIR_PIPELINE_INFO_INIT;
    weir_pipeline::check(pipeline).flow().get_info(info, stages, stage_count);
    write_info(out_info, info, "out_info");
  });
}

weir_status weir_pipeline_get_stage(weir_pipeline* pipeline, size_t number,
                                    weir_stage_state* out_state) {
  return guard([&] {
    weir_stage_state state = WEIR_STAGE_STATE_INIT;
    weir_pipeline::check(pipeline).flow().get_stage(number, state);
    write_info(out_state, state, "out_state");
  });
}

weir_status weir_pipeline_get_tunnel(weir_pipeline* pipeline, size_t number,
                                     weir_tunnel_state* out_state) {
  return guard([&] {
    weir_tunnel_state state = WEIR_TUNNEL_STATE_INIT;
    weir_pipeline::check(pipeline).flow().get_tunnel(number, state);
    write_info(out_state, state, "out_state");
  });
}

weir_status weir_latency_percentile(const weir_latency* latency, const weir_latency* before,
                                    double percent, int64_t* out_ns) {
  return guard([&] {
    if (latency == nullptr) fail_argument("latency is NULL");
    int64_t& result = out(out_ns, "out_ns");
    result = percentile(*latency, before, percent);
  });
}
}
