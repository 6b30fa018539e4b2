// Moves items into and out of rings.
#pragma once

#include <algorithm>

#include "pipeline/flow_counts.hpp"
#include "pipeline/worker_groups.hpp"

namespace weir::rt {

/// Puts items into rings by the overflow policy of the tunnel, and takes items. No call waits for
/// room: what does not fit stays with the caller. With WEIR_RELIEF_OFF items move one by one. Any
/// thread.
class TunnelAccess {
 public:
  TunnelAccess(weir_relief relief, const Epochs& epochs, WorkerGroups& groups) noexcept
      : one_by_one_(relief == WEIR_RELIEF_OFF), epochs_(epochs), groups_(groups) {}

  /// How many of some items to move at once.
  std::size_t at_once(std::size_t items) const noexcept {
    return one_by_one_ ? std::min<std::size_t>(items, 1) : items;
  }

  /// Puts items into the ring; on overflow applies the policy of the tunnel. `epochs`: the thread's
  /// counts by slot. Returns how many items were put or dropped; calls claimed(number) for each
  /// part before other threads can see it.
  template <class Claimed>
  std::size_t offer(TunnelCounters& counters, Count* epochs, Tunnel& tunnel,
                    const ItemsToPut& items, std::size_t count, Claimed&& claimed) const noexcept {
    const std::size_t bytes = tunnel.item_bytes;
    std::size_t done = 0;
    for (;;) {
      if (done < count) {
        const std::size_t put = tunnel.ring.push(ItemsToPut{items.items + done * bytes, items.tag},
                                                 at_once(count - done), claimed);
        if (put > 0) groups_.on_items(tunnel);
        done += put;
        if (put > 0 && done < count && one_by_one_) continue;
      }
      if (done == count || tunnel.overflow == WEIR_OVERFLOW_BLOCK) return done;
      // Drops the remaining new items, or the oldest items to make room for them.
      const bool newest = tunnel.overflow == WEIR_OVERFLOW_DROP_NEWEST;
      const std::size_t remaining = count - done, room = newest ? 0 : tunnel.ring.capacity();
      if (remaining > room) {
        claimed(remaining - room);
        drop(counters, epochs, items.tag.epoch, remaining - room);
        done += remaining - room;
      } else {
        drop_waiting(counters, epochs, tunnel, remaining);
      }
    }
  }

  /// Takes up to `count` items from a ring. Returns the number.
  std::size_t pop(Tunnel& tunnel, const ItemsToTake& to, std::size_t count) const noexcept {
    if (!one_by_one_) return tunnel.ring.pop(to, count);
    std::size_t found = 0, more = 1;
    for (; found < count && more > 0; found += more) {
      more = tunnel.ring.pop(ItemsToTake{to.items + found * tunnel.item_bytes, to.tags + found}, 1);
    }
    return found;
  }

 private:
  void drop(TunnelCounters& counters, Count* epochs, std::uint64_t epoch,
            std::size_t count) const noexcept {
    WorkerCounts::add(counters.dropped, count);
    if (Count* const of = epochs_.count_in(epochs, epoch)) of->complete(count);
    counters.count.complete(count);
  }
  /// Drops the oldest waiting items; if other threads are putting or taking these, yields.
  void drop_waiting(TunnelCounters& counters, Count* epochs, Tunnel& tunnel,
                    std::size_t count) const noexcept {
    constexpr std::size_t kAtOnce = 64;
    ItemTag tags[kAtOnce];
    const std::size_t found =
        tunnel.ring.pop(ItemsToTake{nullptr, tags}, at_once(std::min(count, kAtOnce)));
    for (std::size_t i = 0; i < found; ++i) drop(counters, epochs, tags[i].epoch, 1);
    if (found == 0) sys::yield();
  }

  const bool one_by_one_;
  const Epochs& epochs_;
  WorkerGroups& groups_;
};

}  // namespace weir::rt
