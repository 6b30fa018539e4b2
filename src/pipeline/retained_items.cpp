#include "pipeline/retained_items.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::rt {

weir_item* RetainedItems::keep(Flow& flow, Stage& stage, const ItemTag& tag) {
  const sys::Lock lock(mutex_);
  const std::uint64_t number = numbers_++;
  Owned<weir_item> item(
      new weir_item(flow, stage, tag, number, fmt::format("{} of {}", number, stage.name)));
  called_.insert(number);
  return items_.emplace(number, std::move(item)).first->second.get();
}

sys::Mutex& RetainedItems::ends() noexcept {
  static sys::Mutex mutex;
  return mutex;
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

bool RetainedItems::complete(const weir_item& item, const std::size_t* slot) noexcept {
  const sys::Lock lock(mutex_);
  const std::uint64_t number = item.number;
  const std::size_t tunnel = item.stage.input->index;
  items_.erase(number);
  if (called_.count(number) > 0) return false;
  if (slot != nullptr) epochs_[*slot].complete(1);  // epochs first: the pipeline ends last
  counts_[tunnel].complete(1);
  completed_.fetch_add(1, std::memory_order_seq_cst);
  return true;
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
  std::size_t told = 0;
  for (const auto& [number, item] : items_) {
    if (++told > kMost) break;
    text += fmt::format("{}'{}'", text.empty() ? "items " : ", ", item->name());
  }
  if (items_.size() > kMost) text += fmt::format(" and {} others", items_.size() - kMost);
  return text.empty() ? "" : text + " are kept and not complete";
}

}  // namespace weir::rt
