// The items of a share that no place has taken, and the chunks that are cut from them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "share/chunk_policy.hpp"
#include "share/items.hpp"
#include "share/range_set.hpp"

namespace weir::rt {

/// The speed and load of a place. One thread at a time writes it, any thread reads it.
struct alignas(64) PlaceStatus {
  sys::Atomic<double> speed{0};                ///< work per nanosecond; 0: unknown
  sys::Atomic<double> pending{0}, current{0};  ///< work of its chunks, and of the current chunk
  sys::Atomic<std::int64_t> since_ns{0};       ///< start of the current chunk
  sys::Atomic<std::uint64_t> grain{1}, visits{0};
  sys::Atomic<bool> idle{false}, lost{false};
  /// Constant: the status is one round old, and the place has progressed since.
  bool stale = false;

  /// Returns the state that a chunk policy assumes now.
  SharePeer estimate(std::int64_t now_ns) const noexcept;
  /// Returns the estimated work that a place with an old status has started since.
  double unreported_work(std::int64_t now_ns) const noexcept;
};

/// Cuts chunks from the items that no place has taken: those that places returned, then those above
/// the share counter. Any thread after begin().
class ChunkSource {
 public:
  static constexpr std::size_t kMostChunks = 2;  ///< that a place has at once

  /// Throws Error as Items does.
  ChunkSource(std::uint64_t count, const double* work) : items_(count, work) {}
  /// Sets the policy by its text, and the states of all places, which outlive the source. `word`,
  /// if not null, is the counter: other ranks add to it, too. Throws Error.
  void begin(const std::string& policy, std::span<const PlaceStatus> places, std::int64_t* word);

  std::uint64_t count() const noexcept { return items_.count(); }
  double work_of(const ItemRange& range) const noexcept {
    return items_.work(range.first, range.first + range.count);
  }
  bool contains(const ItemRange& range) const noexcept {
    return range.first < count() && range.count <= count() - range.first;
  }
  const ChunkPolicy& policy() const noexcept { return *policy_; }
  /// Returns how many chunks a place has at once.
  std::size_t depth(bool speed_known) const noexcept {
    const bool measured = speed_known || !policy_->uses_measured_speeds();
    return measured && policy_->fetches_ahead() ? kMostChunks : 1;
  }

  /// Returns how many items a place should take now; 0: none. `trial`, if not 0, is the number that
  /// it wants. Overwrites `peers`, which has an element for each place.
  std::uint64_t next_size(std::size_t place, std::uint64_t trial, std::span<SharePeer> peers,
                          std::int64_t now_ns) const noexcept;
  /// Takes up to `count` items. Returns false if there are none.
  bool take(std::uint64_t count, ItemRange& range) noexcept;
  /// Returns items that the place which took them does not complete.
  void give_back(const ItemRange& range) noexcept;

  /// Returns the number of items below the counter, returned ones included.
  std::uint64_t taken() const noexcept { return std::min(counter(), count()); }
  bool has_returned_items() const noexcept { return returned_items_.load() > 0; }
  /// On ranks other than the root: raises the number of items that are known to be taken.
  void raise_taken(std::uint64_t taken) noexcept;

 private:
  std::uint64_t counter() const noexcept {
    if (word_ != nullptr) return static_cast<std::uint64_t>(std::atomic_ref(*word_).load());
    return counter_.load(std::memory_order_relaxed);
  }
  /// Adds to the counter, and returns the value before. The caller owns the items that it added.
  std::uint64_t fetch_add(std::uint64_t count) noexcept {
    if (word_ == nullptr) return counter_.fetch_add(count, std::memory_order_relaxed);
    const auto added = static_cast<std::int64_t>(count);
    return static_cast<std::uint64_t>(std::atomic_ref(*word_).fetch_add(added));
  }
  ItemRange next_range(std::uint64_t taken) const noexcept;

  const Items items_;
  std::unique_ptr<ChunkPolicy> policy_;
  std::span<const PlaceStatus> places_;
  std::int64_t* word_ = nullptr;
  /// The number of items that have been taken. On ranks other than the root the known number.
  alignas(64) sys::Atomic<std::uint64_t> counter_{0};
  mutable SpinLock lock_;  ///< also held by raise_taken()
  std::vector<ItemRange> returned_ WEIR_GUARDED_BY(lock_);
  sys::Atomic<std::uint64_t> returned_items_{0};
};

}  // namespace weir::rt
