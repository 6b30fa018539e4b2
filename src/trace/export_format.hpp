// The formats that a recording can be written in.
#pragma once

#include "base/sys.hpp"
#include "trace/graph.hpp"
#include "trace/recording.hpp"
#include "trace/timeline.hpp"

namespace weir::rt::trace {

/// A recording with its graph and timeline, which both formats show.
struct Drawing {
  explicit Drawing(const Recording& what) : recording(what) {}

  const Recording& recording;
  const Graph graph{recording};
  const Timeline timeline{recording, graph};
};

/// Write a whole file, which the caller commits. Throw Error naming path and reason.
void write_chrome(const Drawing& drawing, sys::FileWriter& file);
void write_perfetto(const Drawing& drawing, sys::FileWriter& file);

}  // namespace weir::rt::trace
