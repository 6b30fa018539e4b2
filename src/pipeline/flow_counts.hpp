// The counts of a pipeline's items, by the thread that counts.
#pragma once

#include <algorithm>
#include <cassert>

#include "pipeline/tally.hpp"
#include "pipeline/tunnel.hpp"

namespace weir::rt {

/// The counters of a worker or feed of the items of one tunnel.
struct alignas(64) TunnelCounters {
  Count count;
  /// Dropped: the thread's own items, or older ones to make room for them.
  sys::Atomic<std::uint64_t> dropped{0}, failed{0}, most_kept{0};
};

/// A worker's counters of the calls of one stage.
struct StageCounters {
  sys::Atomic<std::uint64_t> put{0}, busy_ns{0};
};

/// Epochs end in order, and at most most() of them are incomplete at a time: an epoch begins when
/// the epoch most() before it has ended. So a count of each slot suffices for all epochs. Any
/// thread.
class Epochs {
 public:
  /// `most` 0: a pipeline without epochs.
  explicit Epochs(std::size_t most) noexcept : most_(most) {}

  bool enabled() const noexcept { return most_ > 0; }
  std::size_t most() const noexcept { return most_; }
  std::size_t slot_of(std::uint64_t epoch) const noexcept { return epoch % most_; }
  /// The count of an epoch among counts by slot; null in a pipeline without epochs.
  Count* count_in(Count* by_slot, std::uint64_t epoch) const noexcept {
    return enabled() ? &by_slot[slot_of(epoch)] : nullptr;
  }

  /// Whether sources and feeds may put items into an epoch.
  bool admitted(std::uint64_t epoch) const noexcept {
    return !enabled() || epoch < done_.load(std::memory_order_seq_cst) + most_;
  }
  /// The number of epochs that have ended and were reported.
  std::uint64_t done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Notes the next epoch as ended and reported. The thread that checks for ends calls it.
  void note_done(std::uint64_t epoch) noexcept {
    assert(epoch == done());
    done_.store(epoch + 1, std::memory_order_seq_cst);
  }

 private:
  const std::size_t most_;
  sys::Atomic<std::uint64_t> done_{0};
};

/// What one worker counts, or the threads that complete retained items, under a mutex. Other
/// threads only read.
struct WorkerCounts {
  WorkerCounts(std::size_t tunnel_count, std::size_t stage_count, std::size_t epoch_slots)
      : tunnels(std::make_unique<TunnelCounters[]>(tunnel_count)),
        stages(std::make_unique<StageCounters[]>(stage_count)),
        epochs(std::make_unique<Count[]>(epoch_slots)) {}

  /// Adds to a word that only the calling thread writes.
  static void add(sys::Atomic<std::uint64_t>& word, std::uint64_t by) noexcept {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  const std::unique_ptr<TunnelCounters[]> tunnels;
  const std::unique_ptr<StageCounters[]> stages;
  const std::unique_ptr<Count[]> epochs;  ///< by slot
};

/// Counts of a feed. They remain after the feed is closed, or are added to those of another closed
/// feed of the tunnel.
struct FeedCounters {
  FeedCounters(Tunnel& to, std::uint64_t first_epoch, std::size_t epoch_slots)
      : tunnel(to), epochs(std::make_unique<Count[]>(epoch_slots)), epoch(first_epoch) {}

  /// Adds the counts of another feed, while no thread reads either.
  void take_over(const FeedCounters& other, std::size_t epoch_slots) noexcept {
    items.count.add(other.items.count);
    for (std::size_t slot = 0; slot < epoch_slots; ++slot) epochs[slot].add(other.epochs[slot]);
    const auto read = [](const auto& word) { return word.load(std::memory_order_relaxed); };
    epochs_used.store(std::max(read(epochs_used), read(other.epochs_used)),
                      std::memory_order_relaxed);
    WorkerCounts::add(items.dropped, read(other.items.dropped));
  }

  Tunnel& tunnel;
  TunnelCounters items;
  const std::unique_ptr<Count[]> epochs;  ///< by slot
  sys::Atomic<std::uint64_t> epoch;       ///< of its next items
  sys::Atomic<std::uint64_t> epochs_used{0};
  sys::Atomic<bool> closed{false};
  std::int64_t sampled_ns = ItemTag::kNotSampled;  ///< last sample; only the feed's thread
};
using FeedList = std::vector<std::unique_ptr<FeedCounters>>;

/// All counts of a pipeline except those of feeds, which the caller passes (Feeds::locked()).
struct FlowCounts {
  /// Calls visit(counters) for all counters of a tunnel.
  template <class Visit>
  void each(const Tunnel& tunnel, const FeedList& feeds, Visit&& visit) const {
    for (const auto& counts : workers) visit(counts->tunnels[tunnel.index]);
    for (const auto& feed : feeds) {
      if (&feed->tunnel == &tunnel) visit(feed->items);
    }
  }
  /// Calls visit(count) for all counts of an epoch.
  template <class Visit>
  void each_of_epoch(std::size_t slot, const FeedList& feeds, Visit&& visit) const {
    for (const auto& counts : workers) visit(counts->epochs[slot]);
    for (const auto& feed : feeds) visit(feed->epochs[slot]);
  }

  std::vector<std::unique_ptr<WorkerCounts>> workers;  ///< and of retained items
};

}  // namespace weir::rt
