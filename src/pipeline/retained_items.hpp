// Items that stages keep beyond their calls.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pipeline/flow_context.hpp"

namespace weir::rt {
class RetainedItems;
}

/// The public handle.
struct weir_item final : weir::rt::Handle<weir_item> {
  static constexpr const char* kNoun = "item";
  static constexpr const char* kEnd = "is complete already, or its pipeline has gone";

  weir_item(weir::rt::RetainedItems& owner, weir::rt::Stage& keeper, const weir::rt::ItemTag& with,
            std::uint64_t count, std::string called)
      : all(owner), stage(keeper), tag(with), number(count), name_(std::move(called)) {}
  const std::string& name() const noexcept { return name_; }

  weir::rt::RetainedItems& all;  ///< of its pipeline
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
  explicit RetainedItems(FlowContext& flow) noexcept : flow_(flow) {}

  /// Sets where to count items as complete, before the start.
  void count_in(WorkerCounts& counts) noexcept { counts_ = &counts; }
  /// Adds an item. Throws std::bad_alloc.
  weir_item* keep(Stage& stage, const ItemTag& tag);
  /// Removes an item that failed, or that a later call gets again.
  void forget(std::uint64_t number) noexcept;
  /// Notes that the calls that retained these items have settled. Returns how many are not
  /// complete.
  std::size_t settle(const std::vector<std::uint64_t>& numbers) noexcept;
  /// Completes an item. Throws Error for an invalid handle, also when its pipeline was destroyed.
  static void complete(weir_item* item);
  /// Removes all items without counting them. Returns their names.
  std::string abandon() noexcept;
  /// Call before reading the counts: makes visible what was completed before a worker announced
  /// that it sleeps.
  void synchronize() const noexcept { completed_.load(std::memory_order_seq_cst); }

  std::uint64_t retained_by(const Stage& stage) const noexcept;
  /// Names the first few retained items: "items '3 of write', '4 of write' are kept"; "" for none.
  std::string names() const;

 private:
  static sys::Mutex& ends() noexcept;

  FlowContext& flow_;
  mutable sys::Mutex mutex_;
  std::unordered_map<std::uint64_t, Owned<weir_item>> items_
      WEIR_GUARDED_BY(mutex_);  ///< by number
  std::unordered_set<std::uint64_t> called_
      WEIR_GUARDED_BY(mutex_);  ///< items whose call has not settled
  std::uint64_t numbers_ WEIR_GUARDED_BY(mutex_) = 0;
  WorkerCounts* counts_ WEIR_PT_GUARDED_BY(mutex_) = nullptr;
  sys::Atomic<std::uint64_t> completed_{0};
};

}  // namespace weir::rt
