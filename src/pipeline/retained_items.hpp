// Items that stages keep beyond their calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <weir/pipeline.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "pipeline/tally.hpp"
#include "pipeline/tunnel.hpp"

namespace weir::rt {
class Flow;
}

/// The public handle.
struct weir_item final : weir::rt::Handle<weir_item> {
  static constexpr const char* kNoun = "item";
  static constexpr const char* kEnd = "is complete already, or its pipeline has gone";

  weir_item(weir::rt::Flow& owner, weir::rt::Stage& keeper, const weir::rt::ItemTag& with,
            std::uint64_t count, std::string called)
      : flow(owner), stage(keeper), tag(with), number(count), name_(std::move(called)) {}
  const std::string& name() const noexcept { return name_; }

  weir::rt::Flow& flow;
  weir::rt::Stage& stage;
  const weir::rt::ItemTag tag;
  const std::uint64_t number;  ///< of the retained items of the pipeline

 private:
  const std::string name_;
};

namespace weir::rt {

/// The retained items of a pipeline that are not complete. The call that retained an item must
/// count its output first: an item that is completed before its call has settled is counted by the
/// worker, with the other items of the batch.
class RetainedItems {
 public:
  /// Throws std::bad_alloc.
  RetainedItems(std::size_t tunnels, std::size_t epoch_slots)
      : counts_(std::make_unique<Count[]>(tunnels)),
        epochs_(std::make_unique<Count[]>(epoch_slots)) {}

  /// Adds an item. Throws std::bad_alloc.
  weir_item* keep(Flow& flow, Stage& stage, const ItemTag& tag);
  /// The mutex to hold while checking or completing an item and while ending its pipeline. One for
  /// all pipelines, because the item names its pipeline.
  static sys::Mutex& ends() noexcept;
  /// Removes an item that failed, or that a later call gets again.
  void forget(std::uint64_t number) noexcept;
  /// Notes that the calls that retained these items have settled. Returns how many are not
  /// complete.
  std::size_t settle(const std::vector<std::uint64_t>& numbers) noexcept;
  /// Completes and removes an item. If its call has settled, counts it as complete in its tunnel,
  /// and in the epoch slot unless null; otherwise the worker counts it. Returns whether it counted
  /// the item. The caller holds ends().
  bool complete(const weir_item& item, const std::size_t* slot) noexcept;
  /// Removes all items without counting them. The caller holds ends().
  void clear() noexcept {
    const sys::Lock lock(mutex_);
    items_.clear();
  }
  /// Call before reading the counts: makes visible what was completed before a worker announced
  /// that it sleeps.
  void synchronize() const noexcept { completed_.load(std::memory_order_seq_cst); }

  std::uint64_t retained_by(const Stage& stage) const noexcept;
  /// Names the first few retained items: "items '3 of write', '4 of write' are kept"; "" for none.
  std::string names() const;

  const Count& count(std::size_t tunnel) const noexcept { return counts_[tunnel]; }
  const Count& epoch(std::size_t slot) const noexcept { return epochs_[slot]; }

 private:
  mutable sys::Mutex mutex_;
  std::unordered_map<std::uint64_t, Owned<weir_item>> items_
      WEIR_GUARDED_BY(mutex_);  ///< by number
  std::unordered_set<std::uint64_t> called_
      WEIR_GUARDED_BY(mutex_);  ///< items whose call has not settled
  sys::Atomic<std::uint64_t> completed_{0};
  std::uint64_t numbers_ WEIR_GUARDED_BY(mutex_) = 0;
  const std::unique_ptr<Count[]> counts_;  ///< by tunnel
  const std::unique_ptr<Count[]> epochs_;  ///< by slot
};

}  // namespace weir::rt
