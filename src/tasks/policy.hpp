// Scheduling policies: which place runs a task.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weir/queue.h>

#include "tasks/performance_model.hpp"

namespace weir::rt {

struct Piece;

/// What built-in policies know of a candidate in addition to weir_candidate.
struct CandidateEstimate {
  std::int64_t copying_ns = 0;    ///< how long its copies occupy links
  std::size_t unmeasured = 0;     ///< its tasks without an estimate
  std::uint64_t tasks_since = 0;  ///< tasks of the kernel bound since the last one there
  PerformanceModel::Source source = PerformanceModel::Source::measured;  ///< origin of its run_ns
  Piece* largest = nullptr;  ///< the largest piece to copy; null: none
};

/// Chooses places for the tasks of one queue, one at a time.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Contract of weir_policy_function. `estimates` has an element for each candidate.
  virtual std::size_t choose(const char* task, std::span<const weir_candidate> candidates,
                             std::span<const CandidateEstimate> estimates) = 0;
  /// Whether the queue asks only for tasks whose operands have their values, or soon will.
  virtual bool wants_ready_tasks() const noexcept { return false; }
};

/// A policy by name.
struct PolicyEntry {
  std::string name, summary;
  weir_policy_function function = nullptr;  ///< of the program; called with `payload`
  void* payload = nullptr;
  std::unique_ptr<Policy> (*make)() = nullptr;  ///< makes a built-in policy
};

/// The policies of a runtime.
class PolicyTable {
 public:
  PolicyTable();

  /// Throws Error{invalid_argument} for an invalid description and for a name that is taken.
  void add(const weir_policy_options& options);
  /// Makes a policy for a queue. Throws Error{not_found} with the nearest name.
  std::unique_ptr<Policy> make(const std::string& name) const;
  const std::vector<PolicyEntry>& entries() const noexcept { return entries_; }

 private:
  std::vector<PolicyEntry> entries_;
};

}  // namespace weir::rt
