// Policies of task queues that are functions of Python.
#pragma once

#include <string>

#include "session.hpp"

namespace weir::py {

/// A place that could run a task, as a policy sees it. Times in seconds from now.
struct Candidate {
  std::string place;
  std::size_t cores, tasks;
  bool full;
  double weight, free_s, ready_s, transfer_s;
  std::optional<double> run_s;  ///< none: it never ran on a place like this
  std::uint64_t missing_bytes, owned_bytes;
};

/// Registers choose(task, candidates), which returns an index or None: not now. When it raises, the
/// task fails, and the exception is the cause of that of a wait.
void add_policy(Session& session, const std::string& name, nb::handle choose);

}  // namespace weir::py
