// Collective operations for which no thread waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "fabric/collective_call.hpp"
#include "fabric/communicator.hpp"
#include "fabric/tagged_messages.hpp"

namespace weir::rt {

/// The messages of one rank in a collective operation, in rounds: a round begins when the messages
/// of the round before are complete. A sum of 2 numbers over 2 ranks, on rank 0:
///
///     round 0   send own[1] to 1, receive scratch[1] from 1
///     combine   own[0] = scratch[0] + scratch[1]
///     round 1   send own[0] to 1, receive own[1] from 1
struct CollectiveSchedule {
  /// Memory of the operation.
  enum class Area : std::uint8_t {
    own,      ///< what the rank contributes or receives
    all,      ///< a part for each rank, in their order
    scratch,  ///< of the operation
  };
  static constexpr std::size_t kAreas = 3;
  using Addresses = std::array<std::byte*, kAreas>;  ///< by area; null: not used

  struct Part {
    Area area;
    std::size_t offset, bytes;
  };
  /// A message. `slot`: differs for the messages from one rank to another.
  struct Step {
    bool is_send;
    unsigned peer;
    std::uint32_t slot;
    Part part;
  };
  struct Copy {
    Part from, to;
  };

  CollectiveCall call{};
  std::size_t scratch_bytes = 0;
  std::vector<Copy> copies{};  ///< before the first round
  std::vector<std::vector<Step>> rounds{};
  std::function<void(const Addresses&)> combine{};  ///< after the first round, or empty
};

/// The rank in the group, and the size of the group.
struct GroupPosition {
  unsigned rank, size;
};

// Schedules; `bytes` are those of `own`, and `root` may be CollectiveCall::kAllRanks for a gather
// or reduction.
CollectiveSchedule schedule_broadcast(GroupPosition at, std::uint32_t root, std::size_t bytes);
CollectiveSchedule schedule_gather(GroupPosition at, std::uint32_t root, std::size_t bytes);
CollectiveSchedule schedule_scatter(GroupPosition at, std::uint32_t root, std::size_t bytes);
CollectiveSchedule schedule_all_to_all(GroupPosition at, std::size_t bytes);
/// Combines in the order of the ranks: all ranks get the same bits. The bytes of `numbers` are not
/// used.
CollectiveSchedule schedule_reduction(GroupPosition at, std::uint32_t root, std::size_t bytes,
                                      const Numbers& numbers);

/// A collective operation in progress on one rank.
class ScheduledCollective {
 public:
  /// `number`: of the operation, the same on all ranks of the group. Throws std::bad_alloc.
  ScheduledCollective(std::shared_ptr<TaggedMessages> messages, CollectiveSchedule schedule,
                      std::uint32_t number);
  ScheduledCollective(const ScheduledCollective&) = delete;
  ScheduledCollective& operator=(const ScheduledCollective&) = delete;

  /// Begins the operation, which calls done() once, on any thread, possibly before start() returns.
  /// The memory must be valid until then.
  void start(const CollectiveSchedule::Addresses& memory) noexcept;
  /// Instead of start(): the operation fails on the other ranks.
  void refuse(const char* why) noexcept { refuse_from(0, why); }

 protected:
  ~ScheduledCollective() = default;
  /// Is called when the operation is complete. May destroy the object.
  virtual void done(const Outcome& outcome) noexcept = 0;

 private:
  struct Message final : TaggedMessages::Operation {
    ScheduledCollective* owner = nullptr;
    void done(const Outcome& outcome) noexcept override { owner->take(outcome); }
  };

  void run_rounds() noexcept;
  void take(const Outcome& outcome) noexcept;
  void end_round() noexcept;
  void note(const Outcome& failure) noexcept;
  void refuse_from(std::size_t round, const char* why) noexcept;
  TaggedMessages::Key key(const CollectiveSchedule::Step& step) const noexcept;
  std::byte* address(const CollectiveSchedule::Part& part) const noexcept;

  const std::shared_ptr<TaggedMessages> messages_;
  const CollectiveSchedule schedule_;
  const std::uint32_t number_;
  CollectiveSchedule::Addresses memory_{};
  std::vector<Message> in_progress_;
  std::size_t round_ = 0;
  sys::Atomic<std::size_t> incomplete_{
      0};  ///< messages of the round, and the thread that begins it
  sys::Mutex mutex_;
  Outcome failure_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
