#include "pipeline/batch_store.hpp"

#include <algorithm>

#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostKept = std::size_t{256} << 20;

}  // namespace

BatchCosts BatchStore::costs(const Key& key) const noexcept {
  const sys::Lock lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() ? found->second.costs : BatchCosts();
}

void BatchStore::keep_costs(const Key& key, const BatchCosts& costs) noexcept {
  if (!costs.known()) return;
  const sys::Lock lock(mutex_);
  try {
    entries_[key].costs = costs;
  } catch (...) {  // the next pipeline measures anew
  }
}

weir_buffer* BatchStore::take(const Key& key, std::size_t bytes) noexcept {
  const sys::Lock lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return nullptr;
  std::vector<weir_buffer*>& buffers = entry->second.buffers;
  auto best = buffers.end();
  for (auto each = buffers.begin(); each != buffers.end(); ++each) {
    if ((*each)->bytes() < bytes) continue;
    if (best == buffers.end() || (*each)->bytes() < (*best)->bytes()) best = each;
  }
  if (best == buffers.end()) return nullptr;
  weir_buffer* const buffer = *best;
  buffers.erase(best);
  kept_bytes_ -= buffer->bytes();
  return buffer;
}

bool BatchStore::keep(const Key& key, weir_buffer& buffer) noexcept {
  const sys::Lock lock(mutex_);
  if (kept_bytes_ + buffer.bytes() > kMostKept) return false;
  try {
    entries_[key].buffers.push_back(&buffer);
  } catch (...) {
    return false;
  }
  kept_bytes_ += buffer.bytes();
  return true;
}

}  // namespace weir::rt
