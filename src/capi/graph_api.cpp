#include <weir/graph.h>

#include "capi/guard.hpp"
#include "graph/graph.hpp"
#include "runtime/runtime.hpp"
#include "tasks/queue.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

Runtime& runtime_of(const weir_graph_options& options) {
  if ((options.queue == nullptr) == (options.stream == nullptr)) {
    fail_argument("a graph records one queue or one stream: give one of them");
  }
  if (options.queue != nullptr) return Runtime::of(weir_queue::check(options.queue).registry());
  return Runtime::of(Registry::of(weir_stream::check(options.stream).context()));
}

}  // namespace

extern "C" {

weir_status weir_graph_begin(const weir_graph_options* options, weir_graph** out_graph) {
  return guard([&] {
    weir_graph*& result = out(out_graph, "out_graph");
    const weir_graph_options known =
        read_options(&out(const_cast<weir_graph_options*>(options), "options"),
                     weir_graph_options WEIR_GRAPH_OPTIONS_INIT, "options");
    result = runtime_of(known).create_graph(known);
  });
}

weir_status weir_graph_end(weir_graph* graph) {
  return guard([&] { weir_graph::check(graph).end(); });
}

weir_status weir_graph_launch(weir_graph* graph, const weir_graph_launch_options* options,
                              weir_event* out_event) {
  return guard([&] {
    weir_graph& live = weir_graph::check(graph);
    const weir_graph_launch_options known =
        read_options(options, weir_graph_launch_options WEIR_GRAPH_LAUNCH_OPTIONS_INIT, "options");
    const weir_event event = live.launch(known);
    if (out_event != nullptr) *out_event = event;
  });
}

weir_status weir_graph_get_info(weir_graph* graph, weir_graph_info* out_info) {
  return guard([&] { write_info(out_info, weir_graph::check(graph).info(), "out_info"); });
}

void weir_graph_destroy(weir_graph* graph) {
  if (graph == nullptr) return;
  guard([&] {
    weir_graph& live = weir_graph::check(graph);
    Runtime::of(Registry::of(live.context())).destroy_graph(&live);
  });
}
}
