// Tasks of a queue, from submission to their end.
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

/// What few tasks have.
struct TaskExtras {
  std::string name;
  std::unique_ptr<std::byte[]> spill;  ///< arguments that do not fit
  std::size_t spill_bytes = 0;
  std::vector<Region> regions;  ///< by operand: those that do not fit in a use
};

/// One task. The program's event names its ticket, which also holds its outcome.
///
/// All tasks that the program has submitted may wait for a place, so each is small: a BoundTask
/// holds what a task needs only while it has a place.
struct Task {
  enum class Kind : std::uint8_t {
    call,    ///< of a kernel
    access,  ///< by the program, to a region of host memory
    fetch,   ///< of everything to host memory
  };
  static constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << Action::kSequenceBits) - 1;
  static constexpr std::size_t kInlineBytes = 3 * sizeof(PieceUse) + 2 * sizeof(weir_scalar);

  Ticket* ticket = nullptr;  ///< kept for another task
  Task* next = nullptr;      ///< submitted, pending, finished, or spare
  Task* pending_before = nullptr;
  Task *live_before = nullptr, *live_after = nullptr;
  std::uint64_t sequence : Action::kSequenceBits = 0;
  std::uint8_t use_count = 0, scalar_count = 0;
  Kind kind : 2 = Kind::call;
  std::uint8_t level : 2 = 1;        ///< its priority, from 0
  bool pending : 1 = false;          ///< has no place yet
  bool found : 1 = false;            ///< its uses have pieces
  bool completion_held : 1 = false;  ///< is over, but for those before it
  bool kept : 1 = false;             ///< the failure log keeps its ticket
  std::uint64_t allowed_places = 0;  ///< bit i: place i may run it
  const weir_kernel* kernel = nullptr;
  std::unique_ptr<TaskExtras> extras;  ///< kept for its next use
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

  /// Sets the argument counts, of at most 255, and makes room for them. Throws std::bad_alloc.
  void reserve(std::size_t uses, std::size_t scalars);
  /// Sets a use there is room for. Throws std::bad_alloc.
  void set_use(std::size_t index, const NamedUse& named);
  /// Sets its own name; null: it has none. Throws std::bad_alloc.
  void set_name(const char* name);

  bool has_name() const noexcept { return extras && !extras->name.empty(); }
  const char* label() const noexcept {
    if (has_name()) return extras->name.c_str();
    return kernel != nullptr ? kernel->name().c_str() : "access";
  }
  /// Bytes of all operands. Their buffers are alive.
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
  bool ignores_failure = false;  ///< how it went does not concern the task
  FailureRef failure;
};

/// What a task needs from the time when it is bound until the owner knows of its end. There are
/// few: the tasks that the places of the queue take at a time, and the accesses of the program.
struct BoundTask : ActionWatcher {
  Queue* queue = nullptr;
  Task* task = nullptr;
  BoundTask* next = nullptr;  ///< in the mail, or spare
  std::uint64_t bytes = 0;    ///< of all operands
  std::uint32_t queue_place = Use::kNoPlace;
  bool unmeasured = false;  ///< there was no estimate
  bool timed = false;       ///< `run_ns` is to be known
  std::int64_t estimate_ns = 0;
  std::int64_t run_ns = -1;
  std::vector<AccessWait> access_waits;  ///< what an access or a fetch waits for
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
