// What a recording says: who was busy, what was hidden, what everything waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/trace_file.hpp"

namespace weir::cli::report {

/// A place or one direction of a link. Times in seconds.
struct Resource {
  std::string name;
  bool is_link = false;
  std::uint64_t actions = 0, bytes = 0;
  double busy_s = 0;          ///< while at least one of its actions ran
  std::uint32_t streams = 0;  ///< of a place: how many used it
};

/// All calls of one kernel or transfer; names count up to their first blank, "gemm 3,4" as "gemm".
struct KindOfAction {
  std::string name;
  std::uint64_t calls = 0;
  double total_s = 0, waited_s = 0;  ///< waited: ready, but the place or link was not free
};

enum class Judgement : std::uint8_t { good, fair, bad };

/// One thing worth saying, in words.
struct Finding {
  Judgement judgement;
  std::string words;
};

struct Analysis {
  double measured_s = 0;  ///< from the first enqueue to the last end
  double compute_s = 0, transfer_s = 0;
  double hidden_s = 0;  ///< transfer time during which some place computed
  double ideal_s = 0;   ///< the busiest place or link
  double first_kernel_s = 0;
  double critical_s = 0;                ///< longest chain of dependent actions
  std::vector<std::uint32_t> critical;  ///< its slices, in order
  std::vector<Resource> resources;      ///< places, then links
  std::vector<KindOfAction> kinds;      ///< by their total, largest first
  std::uint64_t failed = 0;
  std::vector<Finding> findings;
};

/// Analyses a recording with the definitions of weir_trace_summary.
Analysis analyze(const Trace& trace);

}  // namespace weir::cli::report
