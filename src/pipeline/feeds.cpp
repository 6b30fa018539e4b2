#include "pipeline/feeds.hpp"

#include "base/counted.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

weir_feed* Feeds::open(Tunnel& tunnel) {
  const sys::Lock lock(mutex_);
  if (flow_.groups.sealed() && tunnel.open_feeds.load(std::memory_order_acquire) == 0) {
    fail(WEIR_STATUS_BUSY,
         "tunnel '{}' is closed: open a feed before the pipeline starts, or while another is open",
         tunnel.name());
  }
  feeds_.reserve(feeds_.size() + 1);
  open_feeds_.reserve(open_feeds_.size() + 1);
  auto counters = std::make_unique<FeedCounters>(tunnel, ended_epochs_, flow_.epochs.most());
  Owned<weir_feed> feed(new weir_feed(*counters));
  tunnel.fed = true;
  tunnel.open_feeds.fetch_add(1, std::memory_order_acq_rel);
  feeds_.push_back(std::move(counters));
  open_feeds_.push_back(std::move(feed));
  return open_feeds_.back().get();
}

void Feeds::put(weir_feed& feed, const void* items, std::size_t count, std::int64_t deadline_ns,
                std::size_t& put) {
  put = 0;
  if (count == 0) return;
  if (items == nullptr) {
    fail_argument("{} {} given as NULL", counted(count, "item"), is_or_are(count));
  }
  FeedCounters& own = feed.counters;
  Tunnel& tunnel = own.tunnel;
  const std::uint64_t epoch = own.epoch.load(std::memory_order_relaxed);
  const auto* const bytes = static_cast<const unsigned char*>(items);
  const ItemTag tag = tag_of(own, epoch);
  const auto try_it = [&] {
    if (flow_.completion.ended()) return true;
    if (!flow_.epochs.admitted(epoch)) return false;
    put += flow_.access.offer(
        own.items, own.epochs.get(), tunnel, {bytes + put * tunnel.item_bytes, tag}, count - put,
        [&](std::size_t claimed) {
          own.epochs_used.store(epoch + 1, std::memory_order_release);
          own.items.count.create(claimed);
          if (Count* const of = flow_.epochs.count_in(own.epochs.get(), epoch)) of->create(claimed);
        });
    return put == count;
  };
  if (try_it() && put == count) return;
  const FlowCompletion::Call call(flow_.completion);
  tunnel.room.listen(NoWaitScope::active() ? 0 : deadline_ns, try_it);
  if (put < count) fail_put(feed, count - put);
}

/// Samples now and then while latencies are measured.
ItemTag Feeds::tag_of(FeedCounters& feed, std::uint64_t epoch) const noexcept {
  constexpr std::int64_t kBetweenNs = 20'000;
  if (!flow_.clock.sampling()) return {epoch};
  const std::int64_t now = flow_.clock.now_ns();
  if (feed.sampled_ns != ItemTag::kNotSampled && now - feed.sampled_ns < kBetweenNs) return {epoch};
  feed.sampled_ns = now;
  return {epoch, now};
}

void Feeds::fail_put(weir_feed& feed, std::size_t remaining) {
  const char* const tunnel = feed.name().c_str();
  if (flow_.completion.finished()) {
    fail(WEIR_STATUS_CANCELLED, "pipeline '{}' is at its end: {} for tunnel '{}' {} refused",
         flow_.name, counted(remaining, "item"), tunnel, is_or_are(remaining));
  }
  if (flow_.completion.ended()) {
    fail(WEIR_STATUS_CANCELLED, "pipeline '{}' was stopped with {} left for tunnel '{}'",
         flow_.name, counted(remaining, "item"), tunnel);
  }
  const std::uint64_t epoch = feed.counters.epoch.load(std::memory_order_relaxed);
  if (!flow_.epochs.admitted(epoch)) {
    fail(WEIR_STATUS_TIMEOUT,
         "epoch {} did not begin before the deadline, {} for tunnel '{}' {} left: "
         "epoch {} is not complete, and pipeline '{}' has {} in flight at most",
         epoch, counted(remaining, "item"), tunnel, is_or_are(remaining),
         epoch - flow_.epochs.most(), flow_.name, flow_.epochs.most());
  }
  fail(WEIR_STATUS_TIMEOUT, "tunnel '{}' had no room for {} before the deadline", tunnel,
       counted(remaining, "item"));
}

void Feeds::next_epoch(weir_feed& feed) {
  if (!flow_.epochs.enabled()) {
    fail_argument("pipeline '{}' has no epochs: set epochs in its options", flow_.name);
  }
  FeedCounters& own = feed.counters;
  const std::uint64_t next = own.epoch.load(std::memory_order_relaxed) + 1;
  own.epochs_used.store(next, std::memory_order_release);
  own.epoch.store(next, std::memory_order_seq_cst);
  flow_.groups.wake_one();
}

void Feeds::close(weir_feed& feed) noexcept {
  FeedCounters& own = feed.counters;
  Tunnel& tunnel = own.tunnel;
  const FlowCompletion::Call call(flow_.completion);
  {
    const sys::Lock lock(mutex_);
    std::erase_if(open_feeds_, [&](const auto& each) { return each.get() == &feed; });
    own.closed.store(true, std::memory_order_release);
    // A program may open very many feeds: all closed feeds of a tunnel share one FeedCounters.
    const auto common = std::find_if(feeds_.begin(), feeds_.end(), [&](const auto& each) {
      return each.get() != &own && &each->tunnel == &tunnel &&
             each->closed.load(std::memory_order_relaxed);
    });
    if (common != feeds_.end()) {
      (*common)->take_over(own, flow_.epochs.most());
      std::erase_if(feeds_, [&](const auto& each) { return each.get() == &own; });
    }
    tunnel.open_feeds.fetch_sub(1, std::memory_order_seq_cst);  // last: open() relies on it
  }
  flow_.groups.wake_one();
}

}  // namespace weir::rt
