// Tunnels, stages and feeds: the parts of a pipeline.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/pipeline.h>

#include "base/handle.hpp"
#include "base/plain.hpp"
#include "base/threads.hpp"
#include "pipeline/bell.hpp"
#include "pipeline/item_cells.hpp"
#include "pipeline/latencies.hpp"
#include "pipeline/offload_executor.hpp"
#include "pipeline/permit.hpp"
#include "pipeline/reorder.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/tally.hpp"

namespace weir::rt {

/// Items that were taken from a ring with items of an earlier epoch, for the next batch of a
/// device. Only the thread that takes a batch accesses them.
struct Leftover {
  Leftover(std::size_t room, std::size_t item_bytes)
      : items(std::make_unique<unsigned char[]>(room * item_bytes)), tags(room) {}

  const std::unique_ptr<unsigned char[]> items;
  std::vector<ItemTag> tags;
  sys::Atomic<std::size_t> count{0};
};

/// The bounded queue in front of one stage. Items for any worker are in the ring; items that a
/// worker keeps are in its WorkerBuffer.
class Tunnel {
 public:
  Tunnel(Flow& owner, std::size_t number, const weir_tunnel_options& options);

  const std::string& name() const noexcept { return name_; }

  Flow& flow;
  const std::size_t index;
  const std::size_t item_bytes;
  const weir_overflow overflow;
  Ring<ItemCells> ring;
  Bell room;  ///< rung when there may be room
  Stage* stage = nullptr;
  bool written = false;   ///< some stage puts items there
  bool in_order = false;  ///< leads to or from an ordered stage
  bool queued = false;    ///< all items go through the ring
  bool sized;             ///< the program has set the capacity
  bool fed = false;       ///< a feed was opened: the ring stays as it is
  sys::Atomic<std::uint64_t> open_feeds{0};

 private:
  const std::string name_;
};

/// A stage. Sources have no input.
struct Stage {
  std::string name;
  std::size_t index = 0;  ///< of all stages
  Tunnel* input = nullptr;
  std::vector<Tunnel*> outputs;
  std::vector<std::size_t> output_numbers;  ///< of these
  weir_stage_function function = nullptr;
  weir_stage_function at_end = nullptr;
  void* payload = nullptr;
  std::size_t group = 0;
  std::size_t component = 0;
  Permit permit;
  std::unique_ptr<Reorder> reorder;  ///< of an ordered stage
  /// Outputs into which a serial stage puts items in order: a worker leaves the stage only when
  /// they have all items.
  std::vector<Tunnel*> order_preserving;
  bool limited =
      false;  ///< fewer workers than its group has, or not left before `order_preserving` is
  bool feeds_itself = false;
  bool newest_first = false;  ///< is in a loop
  bool ordered = false;       ///< set by the program

  // For a stage with an executor; its batches in flight are in `reorder`.
  OffloadExecutor* executor = nullptr;
  std::unique_ptr<Leftover> leftover;  ///< in a pipeline with epochs
  sys::Plain<std::uint64_t> taken = 0;
  sys::Atomic<std::int64_t> last_batch_ns{INT64_MIN};  ///< the last batch
  sys::Atomic<std::uint64_t> busy_ns{0};               ///< while a batch was in flight
  sys::Atomic<std::uint64_t> failed{0};                ///< items of batches

  sys::Atomic<bool> at_its_end{false};
  Latencies latencies;

  sys::Atomic<std::uint64_t> epochs_used{
      0};                               ///< by a source, or by items put at the end of a stage
  sys::Atomic<std::uint64_t> epoch{0};  ///< of the next items of a source
};

/// Counts of a feed. They remain after the feed is closed, or are added to those of another closed
/// feed of the tunnel.
struct FeedCounters {
  FeedCounters(Tunnel& to, std::uint64_t first_epoch, std::size_t epoch_slots)
      : tunnel(to), epochs(std::make_unique<Count[]>(epoch_slots)), epoch(first_epoch) {}

  /// Adds the counts of another feed, while no thread reads either.
  void take_over(const FeedCounters& other, std::size_t epoch_slots) noexcept {
    count.add(other.count);
    for (std::size_t slot = 0; slot < epoch_slots; ++slot) epochs[slot].add(other.epochs[slot]);
    const auto read = [](const auto& word) { return word.load(std::memory_order_relaxed); };
    epochs_used.store(std::max(read(epochs_used), read(other.epochs_used)),
                      std::memory_order_relaxed);
    dropped.store(read(dropped) + read(other.dropped), std::memory_order_relaxed);
  }

  Tunnel& tunnel;
  Count count;
  const std::unique_ptr<Count[]> epochs;  ///< by slot
  sys::Atomic<std::uint64_t> epoch;       ///< of its next items
  sys::Atomic<std::uint64_t> epochs_used{0};
  sys::Atomic<std::uint64_t> dropped{
      0};  ///< dropped to make room for its items, or dropped items of its own
  sys::Atomic<bool> closed{false};
  std::int64_t sampled_ns =
      INT64_MIN;  ///< time of its last sample; only the feed's thread accesses it
};

}  // namespace weir::rt

/// The public handles.
struct weir_tunnel final : weir::rt::Handle<weir_tunnel>, weir::rt::Tunnel {
  static constexpr const char* kNoun = "tunnel";
  using Tunnel::Tunnel;
};
struct weir_feed final : weir::rt::Handle<weir_feed> {
  static constexpr const char* kNoun = "feed";
  explicit weir_feed(weir::rt::FeedCounters& of) noexcept : counters(of) {}
  const std::string& name() const noexcept { return counters.tunnel.name(); }

  weir::rt::FeedCounters& counters;
};
