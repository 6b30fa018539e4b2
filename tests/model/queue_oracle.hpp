// What a program of tasks must do: its execution one task after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue_plan.hpp"

namespace weir::queue_model {

using Bytes = std::vector<std::uint8_t>;

/// The sequential execution, told of failures and cancelled tasks as they were. It says what cannot
/// have been: all that says so returns what is wrong, "" if nothing.
class Oracle {
 public:
  explicit Oracle(const Plan& plan);

  /// A task will be followed that was not well. If it only adds, others of its kind may have come
  /// after it, and been poisoned, that come before it in the program.
  void will_fail(const PlannedTask& task);
  /// A task that ended so. `cancellable`: the queue was cancelled after it was submitted.
  std::string follow(const PlannedTask& task, weir_status status, bool cancellable);
  /// The program was given a part, or not, and then found these bytes there.
  std::string acquired(std::size_t part, weir_status status, const Bytes& seen);
  /// It changed them.
  void change(std::size_t part);
  /// A flush of a part ended so, and its bytes were not read.
  std::string flushed(std::size_t part, weir_status status) const;
  /// A buffer came to its end, and its memory was this.
  std::string released(std::size_t buffer, const Bytes& memory);
  void cancelled();
  /// All is over, and host memory of the buffers is this.
  std::string synchronized(const std::vector<Bytes>& memory);

  /// How the program changes a byte.
  static std::uint8_t changed(std::uint8_t byte) { return byte ^ 0x5A; }

 private:
  /// What some tasks were to write, and none has written: what is to be added comes in any order.
  enum class Missing : std::uint8_t { none, sum, value };

  bool meets(const Access& access, const std::vector<Access>& others) const;
  bool reads_any(const PlannedTask& task, const std::vector<std::vector<Missing>>& missing) const;
  std::string given(std::size_t part) const;
  std::string settle(std::size_t buffer, const Bytes& memory);
  void apply(const PlannedTask& task);
  void call_off(const PlannedTask& task);
  void note_writes(const PlannedTask& task, bool lost, bool failed);
  template <class Use>
  void each_byte(std::size_t part, Use&& use) const;

  const Plan& plan_;
  std::vector<Bytes> memory_;
  std::vector<std::vector<bool>> unknown_;     ///< may be anything, until a step has read it
  std::vector<Access> reached_;                ///< of tasks that failed, or depend on such
  std::vector<Access> failed_sums_;            ///< of all tasks that only add and that failed
  std::vector<std::vector<Missing>> bad_;      ///< by tasks that failed
  std::vector<std::vector<Missing>> missing_;  ///< by tasks cancelled, since the last cancel
};

}  // namespace weir::queue_model
