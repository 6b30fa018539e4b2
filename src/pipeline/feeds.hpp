// How the program puts items into tunnels.
#pragma once

#include <algorithm>
#include <utility>

#include "pipeline/flow_context.hpp"

/// The public handle. One thread at a time uses a feed.
struct weir_feed final : weir::rt::Handle<weir_feed> {
  static constexpr const char* kNoun = "feed";
  explicit weir_feed(weir::rt::FeedCounters& of) noexcept : counters(of) {}
  const std::string& name() const noexcept { return counters.tunnel.name(); }

  weir::rt::FeedCounters& counters;
};

namespace weir::rt {

/// The feeds of a pipeline and their counts. A tunnel without an open feed gets none after the
/// start, so its stage can end. A feed begins in an epoch that has not ended.
class Feeds {
 public:
  explicit Feeds(FlowContext& flow) noexcept : flow_(flow) {}

  // Called by the program. They throw Error. put() sets the number of items put, also when it
  // throws.
  weir_feed* open(Tunnel& tunnel);
  void put(weir_feed& feed, const void* items, std::size_t count, std::int64_t deadline_ns,
           std::size_t& put);
  void next_epoch(weir_feed& feed);
  /// Closes the feed and retires its handle.
  void close(weir_feed& feed) noexcept;

  /// Returns act(feeds), while no feed opens or closes: a closed feed moves its counts to another.
  template <class Act>
  auto locked(Act&& act) const {
    const sys::Lock lock(mutex_);
    return act(std::as_const(feeds_));
  }
  /// Ends the next epoch for the feeds opened from now on, if complete(feeds). Returns whether it
  /// did.
  template <class Complete>
  bool end_epoch(std::uint64_t epoch, Complete&& complete) {
    const sys::Lock lock(mutex_);
    if (!complete(std::as_const(feeds_))) return false;
    ended_epochs_ = epoch + 1;
    return true;
  }
  /// The number of epochs that feeds have put items into, or have ended and one more.
  std::uint64_t epochs_used() const noexcept {
    const sys::Lock lock(mutex_);
    std::uint64_t used = ended_epochs_ + 1;
    for (const auto& feed : feeds_) {
      used = std::max(used, feed->epochs_used.load(std::memory_order_acquire));
    }
    return used;
  }

 private:
  [[noreturn]] void fail_put(weir_feed& feed, std::size_t remaining);
  ItemTag tag_of(FeedCounters& feed, std::uint64_t epoch) const noexcept;

  FlowContext& flow_;
  mutable sys::Mutex mutex_;
  FeedList feeds_ WEIR_GUARDED_BY(mutex_);
  std::vector<Owned<weir_feed>> open_feeds_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t ended_epochs_ WEIR_GUARDED_BY(mutex_) = 0;  ///< on_epoch may be pending
};

}  // namespace weir::rt
