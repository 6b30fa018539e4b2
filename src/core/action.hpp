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
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

struct Action;
class Buffer;
struct KernelCode;

enum class ActionKind : std::uint8_t {
  compute,       ///< calls a kernel
  transfer,      ///< copies operand 0 to operand 1
  sync,          ///< orders what touches its operands
  clear_poison,  ///< a sync after which earlier failures do not concern what overlaps its operands
  barrier,       ///< orders everything in its stream
  marker,        ///< waits for everything earlier, orders nothing
  drain,         ///< a barrier that is never poisoned and ends with the stream's failure
};

/// What becomes of a drain: the engine and the thread that waits for it decide it once.
enum class DrainFate : std::uint8_t {
  open,
  reported,   ///< the stream forgets its failure, with which the drain ends
  abandoned,  ///< no thread waits for it: it ends with the stream's failure, which stays
};

/// A region of one instance of a buffer. `memory` names the instance: the index of the domain whose
/// memory it is in, the host's where the domain aliases it.
struct Operand : Region {
  std::uint8_t memory = 0;
  std::uint8_t access = 0;  ///< a weir_access
  Buffer* buffer = nullptr;

  const Region& region() const noexcept { return *this; }
  bool writes() const noexcept { return (access & WEIR_ACCESS_WRITE) != 0; }
};
static_assert(sizeof(Operand) == 48, "actions are made of few cache lines");

/// An item in a stream's mailbox: an action that comes back, or the news of an event.
struct Message {
  enum class Kind : std::uint8_t { finished, event, retry, cancel, report, room };

  sys::Plain<Message*> next_message = nullptr;
  Kind message_kind = Kind::finished;
};

/// An event that an action waits for, the waiter that waits for it, and the news it brings.
struct EventWait : Waiter, Message {
  weir_event event;
  Action* action = nullptr;  ///< that waits
  FailureRef failure;
  bool ignores_failure = false;  ///< its failure does not concern the action

  // When a device orders actions.
  std::uint64_t submission_id =
      0;  ///< what has to be over instead, there; 0: nothing is known of it
  EventWait* next_awaiting_submission = nullptr;
  bool awaits_submission = false;  ///< for the event's action to become a job
};

/// Times of one action on the platform's clock, filled while a trace is recorded.
struct ActionTimes {
  std::int64_t enqueued, ready, started, ended;
};

/// What few actions have.
struct ActionExtras {
  static constexpr std::size_t kNameBytes = 32;

  ActionTimes times{};                ///< when traced or timed
  std::uint64_t task = 0;             ///< of a task queue with several places: its number there
  std::uint16_t worker = 0;           ///< worker that ran it, for the trace
  std::array<char, kNameBytes> name;  ///< when `named`
};

/// What an event names: what other threads may look at of an action, or of a task.
struct EventSlot {
  EventState& event;
  sys::Plain<Waiter*>& waiters;  ///< of the event, guarded by it

  /// What EventState does for the action with this id, if it is still in the slot.
  bool watch(std::uint64_t id, Waiter& waiter) const noexcept {
    return event.watch(id, waiters, waiter);
  }
  bool unwatch(std::uint64_t id, Waiter& waiter) const noexcept {
    return event.unwatch(id, waiters, waiter);
  }
};

/// The slot of an event that is no action's: of a task of a queue, which a stream runs later as an
/// action of its own. Lives in a TicketPool and is used again and again.
struct Ticket {
  /// Tells the slots of tickets from those of actions in events.
  static constexpr std::uint32_t kMark = std::uint32_t{1} << 31;

  EventState event;
  sys::Plain<Waiter*> waiters = nullptr;
  FailureRef failure;
  std::uint64_t kept_id = 0;  ///< of the task whose outcome the failure log keeps in this slot
  sys::Plain<Ticket*> next = nullptr;
  weir_status status = WEIR_STATUS_OK;
  std::uint32_t slot = 0;  ///< index in the pool, with the mark

  std::uint64_t id() const noexcept { return event.id(); }
};

/// One edge of the dependence graph, known to the action that is waited for and, when a device
/// orders the actions, to the one that waits.
struct Edge {
  Action* successor;
  Edge* next;              ///< of the same predecessor, as Successors has it
  Action* predecessor;     ///< null: it is over
  Edge* next_predecessor;  ///< of the same successor
  bool ignores_failure;    ///< a failure of the predecessor does not concern the successor
};

/// The edges to what waits for an action, in the order in which it was enqueued.
class Successors {
 public:
  bool empty() const noexcept { return last_ == nullptr; }
  void add(Edge& edge) noexcept {
    edge.next = last_ != nullptr ? std::exchange(last_->next, &edge) : &edge;
    last_ = &edge;
  }
  /// Removes the first one; nullptr when there is none.
  Edge* take_first() noexcept {
    if (empty()) return nullptr;
    Edge* const first = last_->next;
    if (first == last_) {
      last_ = nullptr;
    } else {
      last_->next = first->next;
    }
    return first;
  }
  /// Calls visit(edge), which must not remove any.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (empty()) return;
    Edge* edge = last_;
    do {
      edge = edge->next;
      visit(*edge);
    } while (edge != last_);
  }

 private:
  Edge* last_ = nullptr;  ///< whose `next` is the first one
};

/// One unit in a stream. Lives in a slot of an ActionPool that is used again and again.
///
/// The producer fills it, then it belongs to the stream's engine; only `event` and `waiters` are
/// shared. It is written on one core and read on another, so every line counts: what every action
/// touches comes first, what few do comes last and keeps its values from use to use.
struct alignas(64) Action : Message {
  static constexpr std::size_t kInlineBytes = 3 * sizeof(Operand) + 4 * sizeof(weir_scalar);
  static constexpr std::uint8_t kDefaultPriorityClass = 1;

  ActionKind kind = ActionKind::compute;
  bool has_event = false;            ///< somebody has its event
  DrainFate fate = DrainFate::open;  ///< of a drain, guarded by its event
  bool elided : 1 = false;           ///< a transfer between instances that share their memory
  bool traced : 1 = false;
  bool timed : 1 = false;          ///< who waits for its event is told its times
  bool clears_poison : 1 = false;  ///< a transfer that what happened to its target does not concern
  bool non_ordering : 1 = false;   ///< a sync of the program's: nothing after it depends on it
  std::uint8_t priority_class : 2 =
      kDefaultPriorityClass;  ///< of ready compute actions those with less go first
  bool named = false;         ///< has a name of its own
  bool needs_memory = false;  ///< has operands in a memory other than the host's
  bool spilled = false;       ///< arguments are in `spill`
  EventState event;
  union {
    const KernelCode* code = nullptr;  ///< of a compute action
    std::uint64_t kept_id;  ///< of the action whose outcome the failure log keeps in this slot
  };
  std::uint16_t operand_count = 0;
  std::uint16_t event_count = 0;
  std::uint8_t scalar_count = 0;
  bool in_window = false;     ///< in the engine's window
  bool started = false;       ///< handed out to run
  bool host_ordered = false;  ///< its device does not order it with the others
  alignas(8) std::array<std::byte, kInlineBytes> inline_arguments;  ///< operands, scalars, events

  // What few actions use.
  sys::Plain<Action*> next = nullptr;  ///< in the engine's lists
  Successors successors;
  FailureRef failure;  ///< so far: the earliest root among its predecessors; in the end: its own
  weir_status status = WEIR_STATUS_OK;
  std::uint32_t pending = 0;              ///< predecessors and events that are not complete
  sys::Plain<Waiter*> waiters = nullptr;  ///< of the event, guarded by it
  std::unique_ptr<std::byte[]> spill;  ///< arguments that do not fit; kept for the slot's next use
  std::uint32_t spill_bytes = 0;
  std::uint32_t slot = 0;                ///< index in the pool
  void* stream = nullptr;                ///< the runtime's stream whose slot it is
  std::unique_ptr<ActionExtras> extras;  ///< kept for the slot's next use

  /// Ids are (serial number of the stream, position in the stream), both from 1. Valid until the
  /// event is closed.
  static constexpr unsigned kSequenceBits = 40;
  std::uint64_t id() const noexcept { return event.id(); }
  std::uint64_t sequence() const noexcept {
    return id() & ((std::uint64_t{1} << kSequenceBits) - 1);
  }

  std::span<Operand> operands() noexcept {
    return {std::launder(reinterpret_cast<Operand*>(arguments())), operand_count};
  }
  std::span<const Operand> operands() const noexcept {
    return const_cast<Action*>(this)->operands();
  }
  std::span<weir_scalar> scalars() noexcept {
    std::byte* const start = arguments() + operand_count * sizeof(Operand);
    return {std::launder(reinterpret_cast<weir_scalar*>(start)), scalar_count};
  }
  std::span<EventWait> events() noexcept {
    std::byte* const start =
        arguments() + operand_count * sizeof(Operand) + scalar_count * sizeof(weir_scalar);
    return {std::launder(reinterpret_cast<EventWait*>(start)), event_count};
  }

  EventSlot event_slot() noexcept { return {event, waiters}; }
  ActionTimes& times() noexcept { return extras->times; }
  /// Makes sure that there are extras. Throws std::bad_alloc.
  void reserve_extras() {
    if (!extras) [[unlikely]]
      extras = std::make_unique<ActionExtras>();
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

  /// Sets the argument counts and makes room for them. Throws std::bad_alloc.
  void reserve(std::size_t operand_room, std::size_t scalar_room, std::size_t event_room) {
    const std::size_t bytes = operand_room * sizeof(Operand) + scalar_room * sizeof(weir_scalar) +
                              event_room * sizeof(EventWait);
    spilled = bytes > kInlineBytes;
    if (spilled && bytes > spill_bytes) [[unlikely]]
      grow_spill(bytes);
    operand_count = static_cast<std::uint16_t>(operand_room);
    scalar_count = static_cast<std::uint8_t>(scalar_room);
    event_count = static_cast<std::uint16_t>(event_room);
    for (EventWait& wait : events()) new (&wait) EventWait;
  }

  /// Fetches, without waiting, what an action touches that has as many operands as this one.
  void prefetch_alike(const Action* other) const noexcept {
    const auto before = inline_arguments.data() - reinterpret_cast<const std::byte*>(this);
    const std::size_t operands = std::min<std::size_t>(operand_count, 3);
    prefetch_for_write(other, static_cast<std::size_t>(before) + operands * sizeof(Operand));
  }

  /// Makes the slot ready for its next use: drops what the action owns.
  void recycle() noexcept {
    release_waits();
    if (status != WEIR_STATUS_OK) [[unlikely]] {
      status = WEIR_STATUS_OK;
      failure.reset();
    }
  }

  /// Drops the events that the action waited for.
  void release_waits() noexcept {
    if (event_count > 0) drop_events();
  }

  /// Throws std::bad_alloc.
  void set_name(const char* text) {
    constexpr std::size_t kMost = ActionExtras::kNameBytes - 1;
    reserve_extras();
    std::strncpy(extras->name.data(), text, kMost);
    extras->name[kMost] = '\0';
    named = true;
  }

  /// The name for people: its own, its kernel's, or what it does.
  const char* label() const noexcept;

  /// Bytes of all operands together; of a transfer, what it moves.
  std::uint64_t bytes() const noexcept;

 private:
  std::byte* arguments() noexcept { return spilled ? spill.get() : inline_arguments.data(); }
  void grow_spill(std::size_t bytes);
  void drop_events() noexcept;
};

}  // namespace weir::rt
