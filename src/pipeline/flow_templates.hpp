// Templates of Flow.
#pragma once

#include "pipeline/flow.hpp"

namespace weir::rt {

template <class Claimed>
std::size_t Flow::offer(const Counters& counters, Tunnel& tunnel, const ItemsToPut& items,
                        std::size_t count, Claimed&& claimed) noexcept {
  const std::size_t bytes = tunnel.item_bytes;
  std::size_t done = 0;
  for (;;) {
    if (done < count) {
      const std::size_t put = tunnel.ring.push(ItemsToPut{items.items + done * bytes, items.tag},
                                               at_once(count - done), claimed);
      if (put > 0) wake_group_of(tunnel);
      done += put;
      if (put > 0 && done < count && one_by_one()) continue;
    }
    if (done == count || tunnel.overflow == WEIR_OVERFLOW_BLOCK) return done;
    // Drops the remaining new items, or the oldest items to make room for them.
    const bool newest = tunnel.overflow == WEIR_OVERFLOW_DROP_NEWEST;
    const std::size_t left = count - done, room = newest ? 0 : tunnel.ring.capacity();
    if (left > room) {
      claimed(left - room);
      drop(counters, items.tag.epoch, left - room);
      done += left - room;
    } else {
      drop_waiting(counters, tunnel, left);
    }
  }
}

/// Runs a callback of the program: an exception stops the pipeline.
template <class Callback>
void Flow::guarded(Callback&& callback) noexcept {
  try {
    callback();
  } catch (...) {
    const Outcome thrown = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    stop(thrown.status, thrown.message.c_str());
  }
}

template <class Act>
void Flow::each_count(std::size_t tunnel, Act&& act) const {
  for (const auto& worker : workers_) act(worker->tunnel_counters[tunnel].count);
  act(retained_items_->count(tunnel));
  for (const auto& feed : feeds_) {
    if (feed->tunnel.index == tunnel) act(feed->count);
  }
}

}  // namespace weir::rt
