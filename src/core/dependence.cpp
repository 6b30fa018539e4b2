#include "core/dependence.hpp"

#include <algorithm>
#include <bit>

#include "core/buffer.hpp"

namespace weir::rt {

DependenceTable::DependenceTable() = default;
DependenceTable::~DependenceTable() = default;

DependenceTable::Shadow& DependenceTable::shadow_of(const Operand& operand) {
  const Key key{operand.buffer->id(), operand.memory};
  if (last_shadow_ == nullptr || !(key == last_key_)) {
    last_shadow_ = &shadows_[key];
    last_key_ = key;
  }
  return *last_shadow_;
}

DependenceTable::Entry& DependenceTable::entry_of(const Operand& operand) {
  Shadow& shadow = shadow_of(operand);
  const auto found = shadow.entries.find(operand.region());
  return found != shadow.entries.end() ? *found->second : make_entry(shadow, operand);
}

template <class Visit>
void DependenceTable::each_candidate(Shadow& shadow, const Region& region, Visit&& visit) {
  if (shadow.bins.empty()) {
    for (auto& [key, entry] : shadow.entries) visit(*entry);
    return;
  }
  ++visits_;
  const std::uint64_t last = (region.end() - 1) >> shadow.bin_shift;
  for (std::uint64_t bin = region.offset >> shadow.bin_shift; bin <= last; ++bin) {
    for (Entry* entry : shadow.bins[bin]) {
      if (std::exchange(entry->visit, visits_) != visits_) visit(*entry);
    }
  }
}

DependenceTable::Entry& DependenceTable::make_entry(Shadow& shadow, const Operand& operand) {
  auto made = std::make_unique<Entry>();
  made->region = operand.region();
  each_candidate(shadow, operand.region(), [&](Entry& other) {
    if (overlap(other.region, made->region)) made->peers.push_back(&other);
  });
  for (Entry* peer : made->peers) peer->peers.reserve(peer->peers.size() + 1);
  Entry& entry = *made;
  if (shadow.bins.empty() && shadow.entries.size() >= kFewEntries) {
    fill_bins(shadow, operand.buffer->bytes());
  }
  if (!shadow.bins.empty()) add_to_bins(shadow, entry);
  try {
    shadow.entries.emplace(operand.region(), std::move(made));
  } catch (...) {
    for (auto& bin : shadow.bins) std::erase(bin, &entry);
    throw;
  }
  for (Entry* peer : entry.peers) peer->peers.push_back(&entry);
  ++entry_count_;
  return entry;
}

void DependenceTable::fill_bins(Shadow& shadow, std::uint64_t bytes) {
  shadow.bin_shift = static_cast<unsigned>(std::bit_width(bytes / kBins));
  shadow.bins.resize((bytes >> shadow.bin_shift) + 1);
  try {
    for (auto& [region, entry] : shadow.entries) add_to_bins(shadow, *entry);
  } catch (...) {
    shadow.bins.clear();
    throw;
  }
}

void DependenceTable::add_to_bins(Shadow& shadow, Entry& entry) {
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
    if (action.operands()[i].writes()) {
      entry.writer = sequence;
      entry.readers.clear();
    } else {
      entry.readers.push_back(sequence);
    }
  }
}

void DependenceTable::poison(const Action& action, const FailureRef& failure) {
  poisoned_.reserve(poisoned_.size() + action.operand_count);
  for (const Operand& operand : action.operands()) {
    Entry& entry = entry_of(operand);
    if (!entry.poisoned_write && !entry.poisoned_read) poisoned_.push_back(&entry);
    (operand.writes() ? entry.poisoned_write : entry.poisoned_read).merge(failure);
  }
}

void DependenceTable::clear_poison() noexcept {
  for (Entry* entry : poisoned_) {
    entry->poisoned_write.reset();
    entry->poisoned_read.reset();
  }
  poisoned_.clear();
}

void DependenceTable::find_poison(const Action& action, FailureRef& poison) const noexcept {
  for (const Operand& operand : action.operands()) {
    const auto shadow = shadows_.find(Key{operand.buffer->id(), operand.memory});
    if (shadow == shadows_.end()) continue;
    for (const auto& [region, entry] : shadow->second.entries) {
      if (!overlap(region, operand.region())) continue;
      poison.merge(entry->poisoned_write);
      if (operand.writes()) poison.merge(entry->poisoned_read);
    }
  }
}

void DependenceTable::remove_idle(Shadow& shadow) noexcept {
  const auto idle = [](const Entry* entry) { return entry->idle; };
  for (auto& bin : shadow.bins) std::erase_if(bin, idle);
  for (auto& [region, entry] : shadow.entries) {
    if (!entry->idle) std::erase_if(entry->peers, idle);
  }
  entry_count_ -= std::erase_if(shadow.entries, [](const auto& item) { return item.second->idle; });
}

}  // namespace weir::rt
