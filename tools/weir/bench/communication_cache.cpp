#include "bench/communication_cache.hpp"

#include <algorithm>
#include <utility>

namespace weir::cli::bench {

CommunicationCache::CommunicationCache(std::size_t sets, std::size_t ways, Placement placement,
                                       Send send)
    : sets_(sets),
      ways_(ways),
      placement_(placement),
      send_(std::move(send)),
      numbers_(sets * ways, kFree),
      lines_(sets * ways),
      used_(ways, 0),
      next_(sets, 0) {}

void CommunicationCache::insert(std::uint64_t number, const Line& line) {
  const std::size_t set = number % sets_;
  for (std::size_t way = 0; way < ways_; ++way) {
    const std::size_t index = index_of(way, set);
    if (numbers_[index] != number) continue;
    lines_[index] = line;
    return;
  }
  const std::size_t way = free_way(set), index = index_of(way, set);
  numbers_[index] = number;
  lines_[index] = line;
  ++used_[way];
  if (placement_ == Placement::round_robin) next_[set] = (way + 1) % ways_;
}

void CommunicationCache::flush() {
  for (std::size_t way = 0; way < ways_; ++way) {
    if (used_[way] > 0) send_way(way);
  }
}

/// Returns a free way of a set. If the set has none, sends the fullest way, and returns it.
std::size_t CommunicationCache::free_way(std::size_t set) {
  for (std::size_t i = 0; i < ways_; ++i) {
    const std::size_t way = (next_[set] + i) % ways_;
    if (numbers_[index_of(way, set)] == kFree) return way;
  }
  const auto fullest = std::max_element(used_.begin(), used_.end());
  const auto way = static_cast<std::size_t>(fullest - used_.begin());
  send_way(way);
  return way;
}

void CommunicationCache::send_way(std::size_t way) {
  sent_numbers_.clear();
  sent_lines_.clear();
  for (std::size_t set = 0; set < sets_; ++set) {
    const std::size_t index = index_of(way, set);
    if (numbers_[index] == kFree) continue;
    sent_numbers_.push_back(std::exchange(numbers_[index], kFree));
    sent_lines_.push_back(lines_[index]);
  }
  used_[way] = 0;
  send_(sent_numbers_, sent_lines_);
}

}  // namespace weir::cli::bench
