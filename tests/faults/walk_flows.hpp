// The part of the walk that shares work out: task queues, shares and pipelines.
#pragma once

#include <weir/weir.h>

#include "walk.hpp"

namespace faults {

/// A runtime, and what is shared out in it.
struct Flows {
  const Route& route;
  Report& report;
  weir_runtime* runtime = nullptr;
  weir_kernel *add = nullptr, *sum = nullptr, *combine = nullptr;
  weir_kernel *forward = nullptr, *tile = nullptr;
  weir_buffer *grid = nullptr, *sums = nullptr, *from = nullptr, *to = nullptr, *result = nullptr;
  weir_place* card = nullptr;

  bool took(weir_status status, const char* call, unsigned expected = only(WEIR_STATUS_OK)) const {
    return faults::took(route, report, status, call, expected);
  }
};

/// Creates the runtime and registers the kernels; `add` adds one to all ints of its operand. The
/// runtime is the caller's to destroy, also after false.
bool open_flows(Flows& flows, const weir_runtime_options& options);
/// Wraps the buffers, which go with the runtime.
bool wrap_flows(Flows& flows);

/// Tasks on each row, which are then summed. All of it is right when nothing said otherwise.
void walk_queue(const Flows& flows);
/// Calls on each row, recorded in a graph that is launched.
void walk_graph(const Flows& flows);
/// Copies items, in chunks, on all domains.
void walk_share(const Flows& flows);

/// In a runtime of its own, which it destroys afterwards. Allocates nothing itself. `folder` is not
/// used.
void walk_flows(const Route& route, const char* folder, Report& report);

}  // namespace faults
