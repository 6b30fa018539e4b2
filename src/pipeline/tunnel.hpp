// Tunnels, stages and feeds: what a pipeline is made of.
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

/// Items that were taken from a ring with others of an earlier epoch, for the next batch of a
/// device. Only who takes a batch touches them.
struct Leftover {
  Leftover(std::size_t room, std::size_t item_bytes)
      : items(std::make_unique<unsigned char[]>(room * item_bytes)), tags(room) {}

  const std::unique_ptr<unsigned char[]> items;
  std::vector<ItemTag> tags;
  sys::Atomic<std::size_t> count{0};
};

/// A way to one stage. What waits for any worker is in the ring; what a worker keeps, in its stash.
class Tunnel {
 public:
  Tunnel(Flow& owner, std::size_t number, const weir_tunnel_options& options);

  const std::string& name() const noexcept { return name_; }

  Flow& flow;
  const std::size_t index;
  const std::size_t item_bytes;
  const weir_overflow overflow;
  Ring<ItemCells> ring;
  Bell room;  ///< rung when there may be some
  Stage* stage = nullptr;
  bool written = false;   ///< some stage puts items there
  bool in_order = false;  ///< leads to or from an ordered stage
  bool queued = false;    ///< all items go through the ring
  bool sized;             ///< the program has said how many items wait
  bool fed = false;       ///< a feed was opened: the ring stays as it is
  sys::Atomic<std::uint64_t> open_feeds{0};

 private:
  const std::string name_;
};

/// Code between tunnels. Sources have no input.
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
  /// Outputs that get what a serial stage puts in order: it is not left before they have all.
  std::vector<Tunnel*> order_preserving;
  bool limited =
      false;  ///< fewer workers than its group has, or not left before `order_preserving` is
  bool feeds_itself = false;
  bool newest_first = false;  ///< is in a loop
  bool ordered = false;       ///< as the program wants it

  // Of a stage whose batches go to a device; those that are under way are in `reorder`.
  OffloadExecutor* executor = nullptr;
  std::unique_ptr<Leftover> leftover;  ///< in a pipeline with epochs
  sys::Plain<std::uint64_t> taken = 0;
  sys::Atomic<std::int64_t> last_batch_ns{INT64_MIN};  ///< the last batch
  sys::Atomic<std::uint64_t> busy_ns{0};               ///< while a batch was under way
  sys::Atomic<std::uint64_t> failed{0};                ///< items of batches

  sys::Atomic<bool> at_its_end{false};
  Latencies latencies;

  sys::Atomic<std::uint64_t> epochs_used{0};  ///< by a source, or by what is put at the end
  sys::Atomic<std::uint64_t> epoch{0};        ///< of what a source puts next
};

/// What a thread of the program has put. Stays after the feed is closed, or those of another closed
/// feed of the tunnel take it over.
struct FeedCounters {
  FeedCounters(Tunnel& to, std::uint64_t first_epoch, std::size_t epoch_slots)
      : tunnel(to), epochs(std::make_unique<Count[]>(epoch_slots)), epoch(first_epoch) {}

  /// While nobody looks at either.
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
  sys::Atomic<std::uint64_t> epoch;       ///< of what it puts next
  sys::Atomic<std::uint64_t> epochs_used{0};
  sys::Atomic<std::uint64_t> dropped{0};  ///< of all that had to go for its items
  sys::Atomic<bool> closed{false};
  std::int64_t sampled_ns = INT64_MIN;  ///< when it put what is sampled last; the feed's own
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
