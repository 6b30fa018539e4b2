// Tasks of a queue, from submission to their end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <weir/queue.h>

#include "core/action.hpp"
#include "core/failure.hpp"
#include "core/kernel.hpp"
#include "runtime/coherence.hpp"
#include "runtime/stream.hpp"

namespace weir::rt {

class Queue;
struct Task;

/// Something that a task of the program waits for.
struct Gate : Waiter {
  Task* task = nullptr;
  bool harmless = false;  ///< how it went does not concern the task
  FailureRef failure;
};

/// One task. Its ticket is what the event names that the program has.
struct Task : ActionWatcher {
  enum class Kind : std::uint8_t {
    call,    ///< of a kernel
    access,  ///< by the program, to a region of host memory
    fetch,   ///< of everything to host memory
  };

  Queue* queue = nullptr;
  Ticket* ticket = nullptr;  ///< kept for another task
  Kind kind = Kind::call;
  int priority = 0;
  bool pending = false;   ///< has no place yet
  bool expected = false;  ///< its pieces know of it
  bool held = false;      ///< is over, but for those before it
  std::uint64_t sequence = 0;
  std::uint64_t lanes = 0;  ///< bit i: lane i may run it
  const weir_kernel* kernel = nullptr;
  std::string name;            ///< "": its kernel's
  std::vector<PieceUse> uses;  ///< by operand
  std::vector<weir_scalar> scalars;
  std::uint64_t bytes = 0;  ///< of all operands
  std::vector<Gate> gates;  ///< what an access or a fetch waits for
  sys::Atomic<std::uint32_t> gates_left{0};

  // Once it is bound.
  std::uint32_t lane = Use::kNoLane;
  std::int64_t estimate_ns = 0;
  bool unmeasured = false;  ///< there was no estimate
  bool timed = false;       ///< `run_ns` is to be known
  std::int64_t run_ns = -1;

  // Once it is over.
  weir_status status = WEIR_STATUS_OK;
  FailureRef failure;
  Waiter* told = nullptr;  ///< who waits for the ticket's event

  Task* next = nullptr;  ///< submitted, in the mail, finished, or spare
  Task *pending_before = nullptr, *pending_after = nullptr;
  Task *live_before = nullptr, *live_after = nullptr;

  const char* label() const noexcept {
    if (!name.empty()) return name.c_str();
    return kernel != nullptr ? kernel->name().c_str() : "access";
  }
};

/// A list of tasks through two of their pointers.
template <Task* Task::*kBefore, Task* Task::*kAfter>
class TaskList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  Task* first() const noexcept { return first_; }
  static Task* after(const Task& task) noexcept { return task.*kAfter; }

  void push(Task& task) noexcept {
    task.*kBefore = last_;
    task.*kAfter = nullptr;
    (last_ != nullptr ? last_->*kAfter : first_) = &task;
    last_ = &task;
  }
  void remove(Task& task) noexcept {
    Task* const before = task.*kBefore;
    Task* const after = task.*kAfter;
    (before != nullptr ? before->*kAfter : first_) = after;
    (after != nullptr ? after->*kBefore : last_) = before;
  }

 private:
  Task* first_ = nullptr;
  Task* last_ = nullptr;
};

}  // namespace weir::rt
