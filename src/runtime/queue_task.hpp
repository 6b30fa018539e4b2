// Tasks of a queue, from submission to completion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
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
struct BoundTask;

/// Data that only few tasks have.
struct TaskExtras {
  std::string name;
  std::unique_ptr<std::byte[]> spill;  ///< arguments that do not fit inline
  std::size_t spill_bytes = 0;
  std::vector<Region> regions;  ///< by operand: regions that do not fit in a use
};

/// One task. The program's event names its ticket, which also holds its outcome.
///
/// All submitted tasks may be deferred, so each is small: a BoundTask holds what a task needs only
/// while it is bound.
struct Task {
  enum class Kind : std::uint8_t {
    call,    ///< calls a kernel
    access,  ///< an access by the program to a region of host memory
    fetch,   ///< copies everything to host memory
  };
  static constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << Action::kSequenceBits) - 1;
  static constexpr std::size_t kInlineBytes = 3 * sizeof(PieceUse) + 2 * sizeof(weir_scalar);

  Ticket* ticket = nullptr;  ///< kept for the next task
  Task* next = nullptr;      ///< link of the submitted, deferred, finished or spare list
  Task* pending_before = nullptr;
  Task *live_before = nullptr, *live_after = nullptr;
  std::uint64_t sequence : Action::kSequenceBits = 0;
  std::uint8_t use_count = 0, scalar_count = 0;
  Kind kind : 2 = Kind::call;
  std::uint8_t level : 2 = 1;        ///< priority + 1
  bool pending : 1 = false;          ///< deferred: has no place yet
  bool found : 1 = false;            ///< its uses have pieces
  bool completion_held : 1 = false;  ///< complete, except for tasks before it
  bool kept : 1 = false;             ///< the failure log keeps its ticket
  std::uint64_t allowed_places = 0;  ///< bit i: queue place i may run it
  const weir_kernel* kernel = nullptr;
  std::unique_ptr<TaskExtras> extras;  ///< kept for reuse
  alignas(8) std::array<std::byte, kInlineBytes> inline_arguments;

  /// By operand.
  std::span<PieceUse> uses() noexcept {
    return {std::launder(reinterpret_cast<PieceUse*>(arguments())), use_count};
  }
  std::span<const PieceUse> uses() const noexcept { return const_cast<Task*>(this)->uses(); }
  std::span<weir_scalar> scalars() noexcept {
    std::byte* const start = arguments() + use_count * sizeof(PieceUse);
    return {std::launder(reinterpret_cast<weir_scalar*>(start)), scalar_count};
  }
  std::span<const weir_scalar> scalars() const noexcept {
    return const_cast<Task*>(this)->scalars();
  }

  /// Sets the argument counts, at most 255 each, and allocates memory for the arguments. Throws
  /// std::bad_alloc.
  void reserve(std::size_t uses, std::size_t scalars);
  /// Sets the use with this index, below the reserved count. Throws std::bad_alloc.
  void set_use(std::size_t index, const NamedUse& named);
  /// Sets the task's own name; null: none. Throws std::bad_alloc.
  void set_name(const char* name);

  bool has_name() const noexcept { return extras && !extras->name.empty(); }
  const char* label() const noexcept {
    if (has_name()) return extras->name.c_str();
    return kernel != nullptr ? kernel->name().c_str() : "access";
  }
  /// Returns the bytes of all operands. Their buffers must be alive.
  std::uint64_t bytes() const noexcept;

 private:
  std::byte* arguments() noexcept {
    return bytes_of(use_count, scalar_count) > kInlineBytes ? extras->spill.get()
                                                            : inline_arguments.data();
  }
  static constexpr std::size_t bytes_of(std::size_t uses, std::size_t scalars) noexcept {
    return uses * sizeof(PieceUse) + scalars * sizeof(weir_scalar);
  }
  TaskExtras& reserve_extras();
};

static_assert(sizeof(Task) + sizeof(Ticket) <= 248, "as many as 2^16 may wait");

/// One event that an access or a fetch by the program waits for.
struct AccessWait : Waiter {
  BoundTask* task = nullptr;
  bool ignores_failure = false;  ///< does not propagate the event's failure
  FailureRef failure;
};

/// What a task needs from its binding until the owner processes its completion. There are few: the
/// tasks in flight on the places, and the accesses by the program.
struct BoundTask : ActionWatcher {
  Queue* queue = nullptr;
  Task* task = nullptr;
  BoundTask* next = nullptr;  ///< link of the completion list or of the spare ones
  std::uint64_t bytes = 0;    ///< of all operands
  std::uint32_t queue_place = Use::kNoPlace;
  bool unmeasured = false;  ///< bound without an estimate
  bool timed = false;       ///< the stream measures `run_ns`
  std::int64_t estimate_ns = 0;
  std::int64_t run_ns = -1;
  std::vector<AccessWait> access_waits;  ///< events that an access or a fetch waits for
  sys::Atomic<std::uint32_t> access_waits_left{0};
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
