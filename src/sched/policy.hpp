// Which place runs a task.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weir/queue.h>

namespace weir::rt {

/// Chooses places for the tasks of one queue, one at a time.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Contract of weir_policy_function.
  virtual std::size_t choose(const char* task, std::span<const weir_candidate> candidates) = 0;
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
