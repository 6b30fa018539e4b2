// Writing a recording for timeline viewers.
#pragma once

#include <string>

#include "trace/recording.hpp"

namespace weir::rt::trace {

/// Writes Perfetto's protobuf when path ends in ".pftrace", Chrome's JSON otherwise. The file
/// appears whole or not at all. Throws Error naming path and reason, std::bad_alloc.
///
/// Both show a process for each domain, with the rows of trace/timeline.hpp; a slice for each
/// action with its id, stream, bytes, status, and when it was enqueued and ready; an arrow for each
/// dependence, from the end of the earlier to the start of the later; and how many actions were
/// dropped. Times count from the first enqueue, in nanoseconds (JSON: microseconds with three
/// decimals). In names, bytes that are not UTF-8 become U+FFFD.
void write_file(const Recording& recording, const std::string& path);

}  // namespace weir::rt::trace
