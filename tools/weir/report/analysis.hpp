// Analyses a recording: busy places and links, hidden transfers, and causes of waits.
#pragma once

#include <algorithm>
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
  std::uint32_t cores = 1;    ///< of a place
};

/// All calls of one kernel or transfer; names count up to their first blank, "gemm 3,4" as "gemm".
struct KindOfAction {
  std::string name;
  std::uint64_t calls = 0;
  double total_s = 0, waited_s = 0;  ///< waited: ready, but the place or link was not free
};

/// The transfers of one buffer, or of one name that the program gave them.
struct Moved {
  std::string what;  ///< "" in recordings without names of buffers
  std::uint64_t copies = 0, bytes = 0;
  double total_s = 0;
};

/// Where the measured time went, in seconds, in parts that do not overlap: while kernels ran, while
/// only copies did, and while nothing did.
struct Spent {
  double computing_s = 0;
  double work_s = 0;  ///< of computing_s: as long as all cores of the places that computed needed
  /// Of the idle cores' part of computing_s: those of places without a kernel, which have one
  /// later, while copies to or from their memory run.
  double fetching_s = 0;
  double fill_s = 0, drain_s = 0;  ///< only copies, before the first and after the last kernel
  /// Only copies, between kernels, by what the next kernel's data waited for: the program, which
  /// enqueued the kernel after the kernels before had ended; those kernels, as a copy came after
  /// them; or the link.
  double late_copies_s = 0, ordered_copies_s = 0, slow_copies_s = 0;
  double starting_s = 0;  ///< nothing ran, though an action was ready
  double waiting_s = 0;   ///< nothing ran, and nothing was ready

  double exposed_s() const noexcept {
    return fill_s + drain_s + late_copies_s + ordered_copies_s + slow_copies_s;
  }
  double idle_cores_s() const noexcept { return computing_s - work_s; }
  double waiting_cores_s() const noexcept { return std::min(fetching_s, idle_cores_s()); }
};

enum class Judgement : std::uint8_t { good, fair, bad };

/// One finding, in words.
struct Finding {
  Judgement judgement;
  std::string words;
};

/// The choices of the recorded program that can be changed, as far as they are known.
struct Choices {
  bool streams = true;            ///< it can use another number of streams
  bool queue = false;             ///< a task queue or a share enqueues its actions
  const char* parts = "actions";  ///< what can be smaller or larger: "tiles", nullptr: nothing
  bool pipeline =
      false;  ///< it runs a pipeline: its stages say more than the actions of its workers
};

struct Analysis {
  double measured_s = 0;  ///< from the first enqueue to the last end
  double compute_s = 0, transfer_s = 0;
  double hidden_s = 0;  ///< transfer time during which some place computed
  double ideal_s = 0;   ///< the busiest place or link
  double first_kernel_s = 0;
  double critical_s = 0;      ///< longest chain of dependent actions
  double core_s = 0;          ///< kernels, each times its cores
  std::uint64_t cores = 0;    ///< of the places that computed
  std::uint64_t kernels = 0;  ///< how many ran
  Spent spent;
  Moved most_moved;                     ///< whose transfers took longest
  std::vector<std::uint32_t> critical;  ///< slices of that chain, in order
  std::vector<Resource> resources;      ///< places, then links
  std::vector<KindOfAction> kinds;      ///< by their total, largest first
  std::uint64_t failed = 0, dropped = 0;
  /// The first finding names the largest loss, with its remedy; the others are facts.
  std::vector<Finding> findings;
};

/// Analyses a recording with the definitions of weir_trace_summary.
Analysis analyze(const Trace& trace, const Choices& choices = {});

}  // namespace weir::cli::report
