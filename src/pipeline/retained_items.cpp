#include "pipeline/retained_items.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::rt {

/// Held while an item is checked or completed and while its pipeline ends. One mutex for all
/// pipelines, because the item names its pipeline.
sys::Mutex& RetainedItems::ends() noexcept {
  static sys::Mutex mutex;
  return mutex;
}

weir_item* RetainedItems::keep(Stage& stage, const ItemTag& tag) {
  const sys::Lock lock(mutex_);
  const std::uint64_t number = numbers_++;
  Owned<weir_item> item(
      new weir_item(*this, stage, tag, number, fmt::format("{} of {}", number, stage.name)));
  called_.insert(number);
  return items_.emplace(number, std::move(item)).first->second.get();
}

void RetainedItems::forget(std::uint64_t number) noexcept {
  const sys::Lock ending(ends());
  const sys::Lock lock(mutex_);
  items_.erase(number);
  called_.erase(number);
}

std::size_t RetainedItems::settle(const std::vector<std::uint64_t>& numbers) noexcept {
  const sys::Lock lock(mutex_);
  std::size_t open = 0;
  for (const std::uint64_t number : numbers) {
    called_.erase(number);
    open += items_.count(number);
  }
  return open;
}

void RetainedItems::complete(weir_item* item) {
  sys::Lock ending(ends());
  const weir_item& live = weir_item::check(item);
  RetainedItems& all = live.all;
  FlowContext& flow = all.flow_;
  Stage& stage = live.stage;
  const ItemTag tag = live.tag;
  const std::uint64_t number = live.number;
  const FlowCompletion::Call call(flow.completion);
  sys::Lock lock(all.mutex_);
  all.items_.erase(number);
  const bool settled = all.called_.count(number) == 0;
  if (settled) {  // otherwise the worker counts the item
    Count* const epoch = flow.epochs.count_in(all.counts_->epochs.get(), tag.epoch);
    if (epoch != nullptr) epoch->complete(1);  // epochs first: the pipeline ends last
    all.counts_->tunnels[stage.input->index].count.complete(1);
    all.completed_.fetch_add(1, std::memory_order_seq_cst);
  }
  lock.unlock();
  ending.unlock();
  if (settled && tag.sampled()) stage.latencies.note(flow.clock.now_ns() - tag.timestamp_ns, 1);
  flow.groups.wake_one();
}

std::string RetainedItems::abandon() noexcept {
  const sys::Lock ending(ends());
  std::string kept;
  try {
    kept = names();
  } catch (...) {  // without the names
  }
  const sys::Lock lock(mutex_);
  items_.clear();
  return kept;
}

std::uint64_t RetainedItems::retained_by(const Stage& stage) const noexcept {
  const sys::Lock lock(mutex_);
  return static_cast<std::uint64_t>(
      std::count_if(items_.begin(), items_.end(),
                    [&](const auto& each) { return &each.second->stage == &stage; }));
}

std::string RetainedItems::names() const {
  constexpr std::size_t kMost = 4;
  const sys::Lock lock(mutex_);
  std::string text;
  std::size_t named = 0;
  for (const auto& [number, item] : items_) {
    if (++named > kMost) break;
    text += fmt::format("{}'{}'", text.empty() ? "items " : ", ", item->name());
  }
  if (items_.size() > kMost) text += fmt::format(" and {} others", items_.size() - kMost);
  return text.empty() ? "" : text + " are kept and not complete";
}

}  // namespace weir::rt
