// The statistics of a recording: overlap, idle time, critical path. Computed only here.
#pragma once

#include <string>

#include "trace/recording.hpp"

namespace weir::rt::trace {

/// Times in seconds, all 0 for an empty recording. Fields as in weir_trace_summary, with these
/// details:
/// - A place is occupied while at least one of its cores computes, a link while it moves data.
/// - The share of idle time is one over cores, not over places: an idle place of 15 cores weighs 15
///   times one of a single core. Only places that got a compute action count, also when it failed
///   before it ran: unused places are ignored. An action counts for the cores that it occupied: all
///   cores of the place if its kernel is parallel.
/// - The critical path counts the time that actions ran. Dependences on actions that are not in the
///   recording are ignored.
struct Summary {
  std::uint64_t actions = 0, dropped = 0;
  double measured_s = 0;
  double compute_s = 0, transfer_s = 0;
  double busiest_place_s = 0, busiest_link_s = 0;
  double ideal_s = 0, overlap_ratio = 0;
  double hidden_s = 0;
  double idle_share = 0;
  double critical_path_s = 0;
  std::string busiest_place, busiest_link;  ///< names of tracks, "" when none was occupied
};

/// Computes all statistics, in a second or less for a million entries. Throws std::bad_alloc.
Summary summarize(const Recording& recording);

}  // namespace weir::rt::trace
