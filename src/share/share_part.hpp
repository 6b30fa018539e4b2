// The places of this process in a share.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/place.h>
#include <weir/stream.h>

#include "base/spin_lock.hpp"
#include "core/event.hpp"
#include "share/chunk_source.hpp"
#include "share/completed_items.hpp"
#include "share/share_group.hpp"
#include "share/share_outcome.hpp"
#include "share/throughput_meter.hpp"

namespace weir::rt {

class Registry;
class Share;
struct LocalPart;

/// Counts what keeps a share from its end: chunks, counter fetches and active threads; at the root
/// also places of other ranks that may hold items, and ranks that have not left; at other ranks one
/// for "the share is not complete". It starts with a count of the caller. Any thread.
class PendingCount {
 public:
  /// Takes a count for the caller. The count is 0 only for a moment, in release().
  void enter() noexcept {
    for (;;) {
      std::uint64_t count = count_.load();
      if (count > 0 && count_.compare_exchange_strong(count, count + 1)) return;
      sys::yield();
    }
  }
  /// Takes and returns further counts. The caller has one.
  void add() noexcept { count_.fetch_add(1); }
  void remove() noexcept {
    [[maybe_unused]] const std::uint64_t before = count_.fetch_sub(1);
    assert(before > 1);
  }
  /// Returns the caller's count. Returns true if it was the last: then the caller has it again, and
  /// ends the share or finds more work.
  bool release() noexcept {
    if (count_.fetch_sub(1) > 1) return false;
    count_.store(1);
    return true;
  }
  bool has_others() const noexcept { return count_.load() > 1; }

 private:
  sys::Atomic<std::uint64_t> count_{1};
};

/// What the places and ranks of a share have in common. Any thread.
struct ShareState {
  Registry& registry;
  const std::string name;
  ChunkSource source;
  CompletedItems completed;
  ShareOutcome outcome{name};
  PendingCount pending{};
  std::vector<PlaceStatus> statuses{};  ///< of all places, in the order of ranks
};

/// A chunk of a place.
struct ShareChunk : Waiter {
  LocalPart* part = nullptr;
  ItemRange range{0, 0};     ///< no items: free
  std::uint64_t number = 0;  ///< number of the visit that took it
  std::size_t way = 0;
  bool cut = false;  ///< enqueued during a cancellation: may be cancelled in part
};

/// A place of this process, with its chunks and what they have measured.
struct LocalPart {
  using OnChunkEnd = decltype(Waiter::deliver);

  /// Opens a stream. `on_chunk_end` is called with each chunk that has ended. Throws Error.
  LocalPart(Share& share, ShareState& state, std::uint32_t index, weir_place& place,
            OnChunkEnd on_chunk_end);
  LocalPart(const LocalPart&) = delete;
  LocalPart& operator=(const LocalPart&) = delete;
  ~LocalPart();

  /// Whether the place should have a further chunk.
  bool wants_chunk() const noexcept WEIR_REQUIRES(lock) {
    return in_flight < state.source.depth(meter.speed() > 0) && !state.outcome.has_stopped() &&
           !status.lost.load();
  }
  std::uint64_t next_size() noexcept WEIR_REQUIRES(lock);
  /// Makes items a chunk, and takes a count. The place has had fewer than kMostChunks.
  ShareChunk& begin_chunk(const ItemRange& range) noexcept WEIR_REQUIRES(lock);
  /// Frees a chunk, and counts its items if it is complete.
  void end_chunk(ShareChunk& chunk, bool complete, std::int64_t now_ns) noexcept
      WEIR_REQUIRES(lock);
  PartReport report(std::int64_t now_ns) noexcept WEIR_EXCLUDES(lock);

  Share& share;
  ShareState& state;
  const std::uint32_t index;  ///< among the places of all ranks
  weir_place& place;
  PlaceStatus& status;
  weir_stream* stream = nullptr;
  /// On a root that sends status broadcasts: the number of changes of statuses.
  sys::Atomic<std::uint64_t>* changes = nullptr;

  SpinLock lock;
  std::array<ShareChunk, ChunkSource::kMostChunks> chunks WEIR_GUARDED_BY(lock);
  std::size_t in_flight WEIR_GUARDED_BY(lock) = 0;
  ThroughputMeter meter WEIR_GUARDED_BY(lock);
  WayTrial trial WEIR_GUARDED_BY(lock);
  std::uint64_t done WEIR_GUARDED_BY(lock) = 0;
  double work_done WEIR_GUARDED_BY(lock) = 0;
  std::int64_t busy_since_ns WEIR_GUARDED_BY(lock) = 0, busy_ns WEIR_GUARDED_BY(lock) = 0;
  std::vector<SharePeer> peers WEIR_GUARDED_BY(lock);  ///< for next_size()
  std::uint64_t changed WEIR_GUARDED_BY(lock) = 0;     ///< number of the last change of its status
  // On ranks other than the root.
  std::uint64_t fetches WEIR_GUARDED_BY(lock) = 0;  ///< one in flight is not a visit yet
  /// The fetch is in flight, or the root was sent a request.
  bool fetching WEIR_GUARDED_BY(lock) = false;

 private:
  void measure(const ShareChunk& chunk, std::int64_t now_ns) noexcept WEIR_REQUIRES(lock);
  void publish() noexcept WEIR_REQUIRES(lock);
};

}  // namespace weir::rt
