// Which place runs a task.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weir/queue.h>

#include "sched/performance_model.hpp"

namespace weir::rt {

/// What the policies of weir know of a candidate besides.
struct CandidateEstimate {
  std::int64_t copying_ns = 0;    ///< for which links are busy with its copies
  std::size_t unmeasured = 0;     ///< tasks that it has and of which nothing is known
  std::uint64_t tasks_since = 0;  ///< of the kernel that were bound since the last one there
  PerformanceModel::Source source = PerformanceModel::Source::measured;  ///< of its run_ns
};

/// Chooses places for the tasks of one queue, one at a time.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Contract of weir_policy_function. There is an outlook for each candidate.
  virtual std::size_t choose(const char* task, std::span<const weir_candidate> candidates,
                             std::span<const CandidateEstimate> estimates) = 0;
  /// Whether it is asked for a task only when its operands have their values, or soon will.
  virtual bool wants_ready_tasks() const noexcept { return false; }
};

/// A policy by name.
struct PolicyEntry {
  std::string name, summary;
  weir_policy_function function = nullptr;  ///< of the program, with its payload
  void* payload = nullptr;
  std::unique_ptr<Policy> (*make)() = nullptr;  ///< of weir
};

/// The policies of a runtime.
class PolicyTable {
 public:
  PolicyTable();

  /// Throws Error{busy} when the name is taken, Error{invalid_argument} for a bad description.
  void add(const weir_policy_options& options);
  /// Makes a policy for a queue. Throws Error{not_found} with the nearest name.
  std::unique_ptr<Policy> make(const std::string& name) const;
  const std::vector<PolicyEntry>& entries() const noexcept { return entries_; }

 private:
  std::vector<PolicyEntry> entries_;
};

}  // namespace weir::rt
