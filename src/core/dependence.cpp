#include "core/dependence.hpp"

#include <algorithm>
#include <bit>

#include "core/buffer.hpp"

namespace weir::rt {

namespace {

/// Makes room for `more` elements and for half of the current size, so that not every call copies
/// the list. Throws std::bad_alloc.
template <class T>
void grow_for(std::vector<T>& list, std::size_t more) {
  const std::size_t wanted = list.size() + more;
  if (wanted > list.capacity()) list.reserve(std::max(wanted, list.size() + list.size() / 2));
}

}  // namespace

std::uint64_t DependenceTable::Index::hash_of(const Region& region) noexcept {
  std::uint64_t hash = region.offset * 0x9E3779B97F4A7C15u;
  hash ^= (region.row + (std::uint64_t{region.rows} << 32)) * 0xC2B2AE3D27D4EB4Fu;
  return hash ^ hash >> 29;
}

DependenceTable::Entry* DependenceTable::Index::find(const Region& region) const noexcept {
  if (slots_.empty()) return nullptr;
  const std::uint64_t hash = hash_of(region), mask = slots_.size() - 1;
  for (std::uint64_t at = hash & mask; slots_[at].entry != nullptr; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && slot.entry->region == region) return slot.entry;
  }
  return nullptr;
}

void DependenceTable::Index::insert(std::vector<Slot>& slots, Entry& entry) noexcept {
  const std::uint64_t hash = hash_of(entry.region), mask = slots.size() - 1;
  std::uint64_t at = hash & mask;
  while (slots[at].entry != nullptr) at = (at + 1) & mask;
  slots[at] = {hash, &entry};
}

void DependenceTable::Index::reserve() {
  constexpr std::size_t kFewest = 32;
  if (entries_.size() == entries_.capacity()) {
    entries_.reserve(std::max(kFewest, 2 * entries_.size()));
  }
  if (2 * (entries_.size() + 1) <= slots_.size()) return;
  std::vector<Slot> bigger(std::max(2 * kFewest, 2 * slots_.size()));
  for (const auto& entry : entries_) insert(bigger, *entry);
  slots_ = std::move(bigger);
}

DependenceTable::Entry& DependenceTable::Index::add(std::unique_ptr<Entry> entry) noexcept {
  insert(slots_, *entry);
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

template <class Remove>
void DependenceTable::Index::remove_if(Remove&& remove) noexcept {
  std::erase_if(entries_, [&](const auto& entry) { return remove(*entry); });
  std::fill(slots_.begin(), slots_.end(), Slot());
  for (const auto& entry : entries_) insert(slots_, *entry);
}

DependenceTable::DependenceTable() = default;
DependenceTable::~DependenceTable() = default;

DependenceTable::InstanceIndex& DependenceTable::index_of(const Operand& operand) {
  const Key key{operand.buffer->id(), operand.memory};
  if (last_index_ == nullptr || !(key == last_key_)) {
    last_index_ = &instances_[key];
    last_key_ = key;
  }
  return *last_index_;
}

DependenceTable::Entry& DependenceTable::entry_of(const Operand& operand) {
  InstanceIndex& shadow = index_of(operand);
  Entry* const found = shadow.entries.find(operand.region());
  return found != nullptr ? *found : make_entry(shadow, operand);
}

template <class Visit>
void DependenceTable::each_candidate(InstanceIndex& shadow, const Region& region, Visit&& visit) {
  if (shadow.bins.empty()) {
    for (const auto& entry : shadow.entries) visit(*entry);
    return;
  }
  ++searches_;
  const std::uint64_t last = (region.end() - 1) >> shadow.bin_shift;
  for (std::uint64_t bin = region.offset >> shadow.bin_shift; bin <= last; ++bin) {
    for (Entry* entry : shadow.bins[bin]) {
      if (std::exchange(entry->search_mark, searches_) != searches_) visit(*entry);
    }
  }
}

DependenceTable::Entry& DependenceTable::make_entry(InstanceIndex& shadow, const Operand& operand) {
  if (shadow.entries.size() >= shadow.bins_full_at) fill_bins(shadow, operand.buffer->bytes());
  auto made = std::make_unique<Entry>();
  made->region = operand.region();
  each_candidate(shadow, operand.region(), [&](Entry& other) {
    if (overlap(other.region, made->region)) made->peers.push_back(&other);
  });
  for (Entry* peer : made->peers) grow_for(peer->peers, 1);
  shadow.entries.reserve();
  if (!shadow.bins.empty()) add_to_bins(shadow, *made);
  // Nothing below fails.
  Entry& entry = shadow.entries.add(std::move(made));
  for (Entry* peer : entry.peers) peer->peers.push_back(&entry);
  ++entry_count_;
  return entry;
}

/// Divides the buffer into bins again, about as long as the regions, at most one bin per entry.
/// Without memory for that, searches take longer.
void DependenceTable::fill_bins(InstanceIndex& shadow, std::uint64_t bytes) noexcept {
  const std::size_t count = shadow.entries.size();
  std::uint64_t reach = 0;
  for (const auto& entry : shadow.entries) reach += entry->region.end() - entry->region.offset;
  shadow.bins_full_at = 4 * count;
  try {
    shadow.bin_shift = static_cast<unsigned>(std::bit_width(std::max(bytes, reach) / count));
    shadow.bins.clear();
    shadow.bins.resize((bytes >> shadow.bin_shift) + 1);
    for (const auto& entry : shadow.entries) add_to_bins(shadow, *entry);
  } catch (const std::bad_alloc&) {
    shadow.bins.clear();
  }
}

void DependenceTable::add_to_bins(InstanceIndex& shadow, Entry& entry) {
  const std::uint64_t first = entry.region.offset >> shadow.bin_shift;
  const std::uint64_t last = (entry.region.end() - 1) >> shadow.bin_shift;
  std::uint64_t bin = first;
  try {
    for (; bin <= last; ++bin) shadow.bins[bin].push_back(&entry);
  } catch (...) {
    while (bin-- > first) shadow.bins[bin].pop_back();
    throw;
  }
}

void DependenceTable::enter(const Action& action) noexcept {
  const std::uint64_t sequence = action.sequence();
  for (std::size_t i = 0; i < collected_.size(); ++i) {
    Entry& entry = *collected_[i];
    if (action.operands()[i].writes() && !action.traits.non_ordering) {
      entry.writer = sequence;
      entry.readers.clear();
    } else {
      entry.readers.push_back(sequence);
    }
  }
}

void DependenceTable::poison(const Action& action, const FailureRef& failure) {
  grow_for(poisoned_, action.operand_count);
  for (const Operand& operand : action.operands()) {
    Entry& entry = entry_of(operand);
    if (action.sequence() < entry.poison_cleared_at) continue;
    if (!std::exchange(entry.poisoned, true)) poisoned_.push_back(&entry);
    (operand.writes() ? entry.poisoned_write : entry.poisoned_read).merge(failure);
  }
}

void DependenceTable::clear_poison() noexcept {
  for (Entry* entry : poisoned_) {
    entry->poisoned_write.reset();
    entry->poisoned_read.reset();
    entry->poisoned = false;
  }
  poisoned_.clear();
}

void DependenceTable::clear_poison_of(const Action& action) noexcept {
  const auto clear = [&](Entry& entry) {
    entry.poison_cleared_at = action.sequence();
    if (!std::exchange(entry.poisoned, false)) return;
    entry.poisoned_write.reset();
    entry.poisoned_read.reset();
    std::erase(poisoned_, &entry);
  };
  for (const Operand& operand : action.operands()) {
    const auto shadow = instances_.find(Key{operand.buffer->id(), operand.memory});
    if (!operand.writes() || shadow == instances_.end()) continue;
    each_candidate(shadow->second, operand.region(), [&](Entry& entry) {
      if (contains(operand.region(), entry.region)) clear(entry);
    });
  }
}

void DependenceTable::find_poison(const Action& action, FailureRef& poison) const noexcept {
  for (const Operand& operand : action.operands()) {
    if (action.traits.clears_poison && operand.writes()) continue;
    const bool writes = operand.writes() && !action.traits.non_ordering;
    const auto shadow = instances_.find(Key{operand.buffer->id(), operand.memory});
    if (shadow == instances_.end()) continue;
    for (const auto& entry : shadow->second.entries) {
      if (!entry->poisoned || !overlap(entry->region, operand.region())) continue;
      merge_poison(*entry, writes, poison);
    }
  }
}

void DependenceTable::merge_poison(const Entry& entry, bool writes, FailureRef& poison) noexcept {
  poison.merge(entry.poisoned_write);
  if (writes) poison.merge(entry.poisoned_read);
}

void DependenceTable::remove_idle(InstanceIndex& shadow) noexcept {
  const auto idle = [](const Entry* entry) { return entry->idle; };
  for (auto& bin : shadow.bins) std::erase_if(bin, idle);
  for (const auto& entry : shadow.entries) {
    if (!entry->idle) std::erase_if(entry->peers, idle);
  }
  const std::size_t before = shadow.entries.size();
  shadow.entries.remove_if([](const Entry& entry) { return entry.idle; });
  entry_count_ -= before - shadow.entries.size();
}

}  // namespace weir::rt
