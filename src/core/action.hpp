// Actions: the units in a stream.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <weir/event.h>
#include <weir/kernel.h>

#include "base/plain.hpp"
#include "base/prefetch.hpp"
#include "base/region.hpp"
#include "core/edge.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

struct Action;
class Buffer;
class Executor;
struct KernelCode;

enum class ActionKind : std::uint8_t {
  compute,       ///< calls a kernel
  transfer,      ///< copies operand 0 to operand 1
  external,      ///< a function of the program starts it, and any thread completes it
  sync,          ///< orders the accesses to its operands
  clear_poison,  ///< a sync that clears the poison of its operands
  barrier,       ///< orders everything in its stream
  marker,        ///< completes after everything earlier, orders nothing
  drain,         ///< a barrier that ends with the stream's failure and is never poisoned
};

/// Whether the engine hands out actions of this kind; it completes others itself.
constexpr bool is_handed_out(ActionKind kind) noexcept { return kind <= ActionKind::external; }

constexpr bool orders_stream(ActionKind kind) noexcept {
  return kind == ActionKind::barrier || kind == ActionKind::drain || kind == ActionKind::marker;
}

/// The fate of a drain. The engine or the waiting thread decides it, once.
enum class DrainFate : std::uint8_t {
  open,
  reported,  ///< the drain ends with the stream's failure, and the stream forgets it
  /// No thread waits: the drain ends with the stream's failure, and the stream keeps it.
  abandoned,
};

/// A region of one instance of a buffer. `memory` is the index of the instance's memory: that of
/// the domain, or the host's if the domain aliases host memory.
struct Operand : Region {
  std::uint8_t memory = 0;
  std::uint8_t access = 0;  ///< a weir_access
  Buffer* buffer = nullptr;

  const Region& region() const noexcept { return *this; }
  bool writes() const noexcept { return (access & WEIR_ACCESS_WRITE) != 0; }
};
static_assert(sizeof(Operand) == 48, "actions are made of few cache lines");

/// A message to the owner of a stream: a returned action, a completed event or a request.
struct Message {
  enum class Kind : std::uint8_t { finished, event, retry, cancel, report, room };

  sys::Plain<Message*> next_message = nullptr;
  Kind message_kind = Kind::finished;
};

/// An event that an action waits for: the waiter of the event and the message that it posts.
struct EventWait : Waiter, Message {
  weir_event event;
  Action* action = nullptr;  ///< the waiting action
  FailureRef failure;
  bool ignores_failure = false;  ///< does not propagate the event's failure to the action

  // With device ordering.
  /// The job to wait for on the device instead of the event; 0: unknown.
  std::uint64_t submission_id = 0;
  EventWait* next_pending_submission = nullptr;
  bool awaits_submission = false;  ///< waits for the submission of the event's action
};

/// Times of one action in nanoseconds on the platform's clock, set while a trace is recorded.
struct ActionTimes {
  std::int64_t enqueued, ready, started, ended;
};

/// For the trace, for waiters that receive times, and of a task. Few actions have it.
struct ActionRecord {
  static constexpr std::size_t kNameBytes = 32;

  ActionTimes times{};                ///< set if the action is `traced` or `timed`
  std::uint64_t task = 0;             ///< number of the task, in a task queue with several places
  std::uint16_t worker = 0;           ///< worker that ran the action, for the trace
  std::array<char, kNameBytes> name;  ///< set if `named`
};

/// Data that only few actions have.
struct ActionExtras {
  std::unique_ptr<std::byte[]> spill;  ///< arguments that do not fit into the action
  std::unique_ptr<ActionRecord> record;
  std::uint32_t spill_bytes = 0;
};

/// The part of an action or a task that an event refers to. Any thread may use it.
struct EventSlot {
  EventState& event;
  sys::Plain<Waiter*>& waiters;  ///< waiters of the event, guarded by it

  /// Calls EventState if the action with this id is still in the slot.
  bool watch(std::uint64_t id, Waiter& waiter) const noexcept {
    return event.watch(id, waiters, waiter);
  }
  bool unwatch(std::uint64_t id, Waiter& waiter) const noexcept {
    return event.unwatch(id, waiters, waiter);
  }
};

/// The event slot of a queue's task, whose action a stream creates later. Lives in a TicketPool and
/// is reused.
struct Ticket {
  /// Marks the slot number of a ticket in an event; slots of actions do not have this bit.
  static constexpr std::uint32_t kMark = std::uint32_t{1} << 31;

  EventState event;
  sys::Plain<Waiter*> waiters = nullptr;
  FailureRef failure;
  std::uint64_t kept_id = 0;  ///< id of the task whose outcome the failure log keeps in this slot
  sys::Plain<Ticket*> next = nullptr;
  weir_status status = WEIR_STATUS_OK;
  std::uint32_t slot = 0;  ///< index in the pool, with kMark

  std::uint64_t id() const noexcept { return event.id(); }
};

/// A weir_status in a byte. A bit-field would be read together with its neighbours.
class StatusByte {
 public:
  // NOLINTBEGIN(google-explicit-constructor,hicpp-explicit-conversions): it is a status
  constexpr StatusByte(weir_status status = WEIR_STATUS_OK) noexcept
      : value_(static_cast<std::uint8_t>(status)) {}
  constexpr operator weir_status() const noexcept { return static_cast<weir_status>(value_); }
  // NOLINTEND(google-explicit-constructor,hicpp-explicit-conversions)

 private:
  std::uint8_t value_;
};

/// What the producer says of an action. Constant once the action is enqueued.
struct ActionTraits {
  static constexpr std::uint8_t kDefaultPriorityClass = 1;

  bool elided : 1 = false;  ///< a transfer between instances in the same memory: nothing to copy
  bool traced : 1 = false;
  bool timed : 1 = false;          ///< waiters of its event receive its times
  bool clears_poison : 1 = false;  ///< a transfer that clears the poison of its target
  bool non_ordering : 1 = false;   ///< a sync by the program: no later action depends on it
  bool named : 1 = false;          ///< the record has the action's name
  /// Ready compute actions with a lower value go first.
  std::uint8_t priority_class : 2 = kDefaultPriorityClass;
  bool has_event = false;     ///< the program or a queue has its event
  bool needs_memory = false;  ///< has operands in device memory
};

/// One unit in a stream. Lives in a slot of an ActionPool, which is reused.
///
/// The producer fills it; from then on the stream's engine owns it. Only `event` and `waiters` are
/// shared. One core writes it and another reads it, so the layout saves cache lines: fields that
/// every action uses come first; rarely used fields come last and keep their values between uses.
struct alignas(64) Action : Message {
  static constexpr std::size_t kInlineBytes = 3 * sizeof(Operand) + sizeof(weir_scalar);
  /// Which arguments are in `extras`.
  enum class Spilled : std::uint8_t { none, all_but_operands, all };

  ActionKind kind = ActionKind::compute;
  DrainFate fate = DrainFate::open;  ///< of a drain; guarded by `event`
  ActionTraits traits;
  Spilled spilled = Spilled::none;
  StatusByte status;
  EventState event;
  union {
    const KernelCode* code = nullptr;  ///< code of a compute action
    std::uint64_t kept_id;  ///< id of the action whose outcome the failure log keeps in this slot
  };
  std::uint16_t operand_count = 0;
  std::uint16_t event_count = 0;
  std::uint8_t scalar_count = 0;
  bool in_window = false;     ///< in the engine's window
  bool started = false;       ///< handed out to run
  bool host_ordered = false;  ///< the host orders it, although its device orders others
  alignas(8) std::array<std::byte, kInlineBytes> inline_arguments;  ///< operands, scalars, events

  // Fields that only few actions use.
  sys::Plain<Action*> next = nullptr;  ///< link of the engine's lists
  Successors successors;
  FailureRef failure;  ///< before it runs: the earliest failure of its predecessors; then its own
  std::uint32_t pending = 0;              ///< number of incomplete predecessors and events
  std::uint32_t slot = 0;                 ///< index in the pool
  sys::Plain<Waiter*> waiters = nullptr;  ///< waiters of `event`, guarded by it
  Executor* stream = nullptr;             ///< of the stream whose slot it is
  std::unique_ptr<ActionExtras> extras;   ///< kept for reuse

  /// An id is (serial number of the stream, position in the stream), both from 1. Valid until the
  /// event is closed.
  static constexpr unsigned kSequenceBits = 40;
  std::uint64_t id() const noexcept { return event.id(); }
  std::uint64_t sequence() const noexcept {
    return id() & ((std::uint64_t{1} << kSequenceBits) - 1);
  }

  std::span<Operand> operands() noexcept {
    std::byte* const start =
        spilled == Spilled::all ? extras->spill.get() : inline_arguments.data();
    return {std::launder(reinterpret_cast<Operand*>(start)), operand_count};
  }
  std::span<const Operand> operands() const noexcept {
    return const_cast<Action*>(this)->operands();
  }
  std::span<weir_scalar> scalars() noexcept {
    return {std::launder(reinterpret_cast<weir_scalar*>(after_operands())), scalar_count};
  }
  std::span<EventWait> events() noexcept {
    std::byte* const start = after_operands() + scalar_count * sizeof(weir_scalar);
    return {std::launder(reinterpret_cast<EventWait*>(start)), event_count};
  }

  /// Whether the failure of a predecessor poisons the action: it has no other outcome yet.
  bool may_be_poisoned() const noexcept {
    return kind != ActionKind::clear_poison &&
           (status == WEIR_STATUS_OK || status == WEIR_STATUS_POISONED);
  }

  EventSlot event_slot() noexcept { return {event, waiters}; }
  ActionRecord& record() noexcept { return *extras->record; }
  const ActionRecord& record() const noexcept { return *extras->record; }
  ActionTimes& times() noexcept { return record().times; }
  /// Allocates the record if necessary. Throws std::bad_alloc.
  void reserve_record() {
    if (!extras || !extras->record) [[unlikely]]
      make_record();
  }

  /// Decides the fate of the drain with this id, if it is in the slot and open. Returns whether it
  /// is in the slot and has this fate.
  bool decide_fate(std::uint64_t wanted, DrainFate is) noexcept {
    bool has = false;
    event.guard(wanted, [&] {
      if (fate == DrainFate::open) fate = is;
      has = fate == is;
    });
    return has;
  }

  /// Sets the argument counts and allocates memory for the arguments. Throws std::bad_alloc.
  void reserve(std::size_t operand_room, std::size_t scalar_room, std::size_t event_room) {
    const std::size_t of_operands = operand_room * sizeof(Operand);
    const std::size_t others = scalar_room * sizeof(weir_scalar) + event_room * sizeof(EventWait);
    spilled = Spilled::none;
    if (of_operands + others > kInlineBytes) [[unlikely]]
      spill(of_operands, others);
    operand_count = static_cast<std::uint16_t>(operand_room);
    scalar_count = static_cast<std::uint8_t>(scalar_room);
    event_count = static_cast<std::uint16_t>(event_room);
    if (event_room > 0) make_events();
  }

  /// Prefetches the cache lines of an action that has as many operands as this one. Does not block.
  void prefetch_alike(const Action* other) const noexcept {
    const auto before = inline_arguments.data() - reinterpret_cast<const std::byte*>(this);
    const std::size_t operands = std::min<std::size_t>(operand_count, 3);
    prefetch_for_write(other, static_cast<std::size_t>(before) + operands * sizeof(Operand));
  }

  /// Prepares the slot for its next use: releases what the action owns.
  void recycle() noexcept {
    release_waits();
    if (status != WEIR_STATUS_OK) [[unlikely]] {
      status = WEIR_STATUS_OK;
      failure.reset();
    }
  }

  /// Releases the events that the action waited for.
  void release_waits() noexcept {
    if (event_count > 0) drop_events();
  }

  /// Copies the name, cut to ActionRecord::kNameBytes - 1 bytes. Throws std::bad_alloc.
  void set_name(const char* text) {
    constexpr std::size_t kMost = ActionRecord::kNameBytes - 1;
    reserve_record();
    std::strncpy(record().name.data(), text, kMost);
    record().name[kMost] = '\0';
    traits.named = true;
  }

  /// Returns the name for messages: the action's own, its kernel's, or the kind of the action.
  const char* label() const noexcept;

  /// Returns the bytes of all operands; for a transfer the bytes that it copies.
  std::uint64_t bytes() const noexcept;

 private:
  std::byte* after_operands() noexcept {
    if (spilled == Spilled::all_but_operands) [[unlikely]]
      return extras->spill.get();
    return reinterpret_cast<std::byte*>(operands().data() + operand_count);
  }
  void spill(std::size_t of_operands, std::size_t others);
  void make_events() noexcept;
  void make_record();
  void drop_events() noexcept;
};

}  // namespace weir::rt
