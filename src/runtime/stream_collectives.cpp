#include "runtime/stream_collectives.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/collective_schedule.hpp"
#include "runtime/fabric_action.hpp"
#include "runtime/reduction.hpp"
#include "stream/completion_listener.hpp"

namespace weir::rt {

namespace {

using Area = CollectiveSchedule::Area;

/// The operation of an action, to whose event it listens.
class StreamCollective final : public ScheduledCollective, public CompletionListener {
 public:
  StreamCollective(Context& context, weir_communicator& group, CollectiveSchedule schedule,
                   std::vector<Area> areas, std::size_t alignment)
      : ScheduledCollective(group.messages(), std::move(schedule), group.next_collective()),
        CompletionListener(context.listeners()),
        completion_(context, group.fabric().port()),
        areas_(std::move(areas)),
        alignment_(alignment) {}

  static weir_status start_external(const weir_external_call* started) {
    StreamCollective& own = *static_cast<StreamCollective*>(started->payload);
    CollectiveSchedule::Addresses memory{};
    for (std::size_t i = 0; i < own.areas_.size(); ++i) {
      memory[static_cast<std::size_t>(own.areas_[i])] =
          static_cast<std::byte*>(started->operands[i].address);
    }
    own.completion_.event = started->event;
    if (reinterpret_cast<std::uintptr_t>(memory[0]) % own.alignment_ != 0) {
      own.done({WEIR_STATUS_INVALID_ARGUMENT, kNotAligned});
    } else {
      own.is_started_ = true;
      own.start(memory);
    }
    return WEIR_STATUS_OK;
  }

  void completed(weir_status status, const FailureRef& failure) noexcept override {
    if (is_started_) return;
    std::string room;
    refuse(describe(status, failure, room));
  }

 private:
  static constexpr const char* kNotAligned = "the numbers of a reduction are not aligned";

  void done(const Outcome& outcome) noexcept override { completion_.complete(outcome); }

  FabricCompletion completion_;
  const std::vector<Area> areas_;  ///< of the operands
  const std::size_t alignment_;    ///< of `own`
  bool is_started_ = false;
};

/// A region that the operation uses.
struct Used {
  Area area;
  weir_buffer* buffer;
  weir_region region;
  weir_access access;
};

/// A checked call.
struct Call {
  std::vector<Used> used;
  CollectiveSchedule schedule;
  std::size_t alignment = 1;
};

std::size_t bytes_of_region(weir_buffer* buffer, const weir_region& region) {
  const weir_buffer& live = weir_buffer::check(buffer);
  return make_region(region, live.bytes(), live.name().c_str()).bytes();
}

/// Throws Error if a region has not a part of the same size for each rank.
void check_parts(const weir_collective& call, std::size_t bytes, unsigned ranks) {
  const std::size_t all = bytes_of_region(call.all_buffer, call.all_region);
  if (all == bytes * ranks) return;
  fail_argument("the region of all ranks has {} bytes, but {} bytes of each of {} ranks need {}",
                all, bytes, ranks, bytes * ranks);
}

Call check_call(const weir_collective& call, GroupPosition at) {
  const bool may_be_all =
      call.kind == WEIR_COLLECTIVE_REDUCE || call.kind == WEIR_COLLECTIVE_GATHER;
  const bool has_root = call.kind != WEIR_COLLECTIVE_ALL_TO_ALL;
  const bool is_to_all = may_be_all && call.root == WEIR_ALL_RANKS;
  if (has_root && !is_to_all && call.root >= at.size) {
    fail_argument("there is no rank {} in the group: it has the ranks 0 to {}", call.root,
                  at.size - 1);
  }
  const std::size_t bytes = bytes_of_region(call.buffer, call.region);
  const bool is_root = is_to_all || call.root == at.rank;
  const auto own = [&](weir_access access) {
    return Used{Area::own, call.buffer, call.region, access};
  };
  const auto all = [&](weir_access access) {
    return Used{Area::all, call.all_buffer, call.all_region, access};
  };
  switch (call.kind) {
    case WEIR_COLLECTIVE_BROADCAST:
      return {{own(is_root ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE)},
              schedule_broadcast(at, call.root, bytes)};
    case WEIR_COLLECTIVE_REDUCE: {
      const Numbers numbers = numbers_at(nullptr, 0, call.reduction);
      if (bytes % numbers.size != 0) {
        fail_argument("a region of {} bytes is not a number of values of {} bytes", bytes,
                      numbers.size);
      }
      return {{own(WEIR_ACCESS_READ_WRITE)},
              schedule_reduction(at, call.root, bytes, numbers),
              call.reduction.combine != nullptr ? 1 : numbers.size};
    }
    case WEIR_COLLECTIVE_GATHER: {
      Call checked{{own(WEIR_ACCESS_READ)}, schedule_gather(at, call.root, bytes)};
      if (is_root) check_parts(call, bytes, at.size);
      if (is_root) checked.used.push_back(all(WEIR_ACCESS_WRITE));
      return checked;
    }
    case WEIR_COLLECTIVE_SCATTER: {
      Call checked{{own(WEIR_ACCESS_WRITE)}, schedule_scatter(at, call.root, bytes)};
      if (is_root) check_parts(call, bytes, at.size);
      if (is_root) checked.used.push_back(all(WEIR_ACCESS_READ));
      return checked;
    }
    case WEIR_COLLECTIVE_ALL_TO_ALL:
      if (bytes % at.size != 0) {
        fail_argument("a region of {} bytes has no {} parts of the same size", bytes, at.size);
      }
      check_parts(call, bytes / at.size, at.size);
      return {{own(WEIR_ACCESS_READ), all(WEIR_ACCESS_WRITE)}, schedule_all_to_all(at, bytes)};
  }
  fail_argument("the kind of a collective operation is {}: choose one of weir_collective_kind",
                static_cast<int>(call.kind));
}

const char* name_of(weir_collective_kind kind) noexcept {
  constexpr std::array kNames = {"broadcast", "reduce", "gather", "scatter", "all-to-all"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

weir_event enqueue_collective(Stream& stream, weir_communicator& group,
                              const weir_collective& collective) {
  check_same_fabric(stream, group.fabric().port(), "communicator");
  Call call = check_call(collective, {group.rank(), group.size()});
  std::vector<Area> areas;
  for (const Used& used : call.used) areas.push_back(used.area);
  const std::size_t scratch_bytes = call.schedule.scratch_bytes;
  if (scratch_bytes > 0) areas.push_back(Area::scratch);
  auto operation = std::make_unique<StreamCollective>(
      stream.context(), group, std::move(call.schedule), std::move(areas), call.alignment);
  try {
    FabricAction action(stream, FabricAction::Rows::packed);
    for (const Used& used : call.used) action.add(used.buffer, used.region, used.access);
    if (scratch_bytes > 0) action.add_scratch(scratch_bytes);
    return action.enqueue(name_of(collective.kind), StreamCollective::start_external, operation);
  } catch (...) {
    if (operation) {
      operation->refuse(current_exception_outcome(WEIR_STATUS_INTERNAL).message.c_str());
    }
    throw;
  }
}

}  // namespace weir::rt
