// Domains and streams of the app interface.
#include <algorithm>
#include <exception>
#include <utility>

#include "hstreams/error.hpp"
#include "hstreams/session.hpp"

namespace weir::hs {

/// Divides the usable threads of a device over logical domains; the last one gets the remainder.
void Session::partition_cards(std::size_t count) {
  const std::size_t cards = std::min(cards_.size(), count);
  partitions_.reserve(count);
  for (std::size_t card = 0; card < cards; ++card) {
    const std::size_t here = count / cards + (card < count % cards ? 1 : 0);
    const CpuMask usable = cards_[card].usable();
    const std::size_t first = first_of(usable), width = usable.count() / here;
    for (std::size_t i = 0; i < here; ++i) {
      const std::size_t rest = i + 1 == here ? usable.count() % here : 0;
      HSTR_OVERLAP_TYPE overlap;
      partitions_.push_back(
          add_domain(cards_[card].id, mask_range(first + i * width, width + rest), overlap));
    }
  }
}

/// Divides the threads of a logical domain over places; the first ones get one more.
std::vector<CpuMask> Session::places_in(HSTR_LOG_DOM id, std::size_t count) const {
  const CpuMask mask = domain(id, HSTR_RESULT_DOMAIN_OUT_OF_RANGE).mask;
  const std::size_t threads = mask.count();
  if (count > threads) {
    fail(HSTR_RESULT_OUT_OF_RANGE,
         "{} places in logical domain {} of {} thread{}: WEIR_HSTREAMS_THREADS gives cards more",
         count, id, threads, threads == 1 ? "" : "s");
  }
  std::vector<CpuMask> places;
  std::size_t first = first_of(mask);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t width = threads / count + (i < threads % count ? 1 : 0);
    places.push_back(mask_range(first, width));
    first += width;
  }
  return places;
}

void Session::partition(std::span<const std::uint32_t> places, std::uint32_t oversubscription) {
  const std::lock_guard lock(partition_mutex_);
  if (!partitions_.empty() && partitions_.size() != places.size()) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} logical domains: the first call made {}", places.size(),
         partitions_.size());
  }
  if (std::all_of(places.begin(), places.end(), [](std::uint32_t count) { return count == 0; })) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "no logical domain gets a stream");
  }
  const bool first = partitions_.empty();
  const HSTR_LOG_STR first_stream = next_stream_;
  try {
    if (first) partition_cards(places.size());
    create_streams(places, oversubscription);
  } catch (...) {
    undo_partition(first, first_stream);
    throw;
  }
}

void Session::create_streams(std::span<const std::uint32_t> places,
                             std::uint32_t oversubscription) {
  struct Place {
    HSTR_LOG_DOM domain;
    CpuMask mask;
  };
  std::vector<Place> all;
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (const CpuMask& mask : places_in(partitions_[i], places[i])) {
      all.push_back({partitions_[i], mask});
    }
  }
  for (std::uint32_t level = 0; level < oversubscription; ++level) {
    for (const Place& place : all) {
      create_stream(next_stream_, place.domain, place.mask);
      ++next_stream_;
    }
  }
}

void Session::undo_partition(bool domains, HSTR_LOG_STR first_stream) noexcept {
  const auto unless_gone = [](const auto& remove) {
    try {
      remove();
    } catch (const std::exception&) {  // the program has removed it meanwhile
    }
  };
  while (next_stream_ > first_stream) {
    unless_gone([this, id = --next_stream_] { destroy_stream(id); });
  }
  if (!domains) return;
  for (const HSTR_LOG_DOM id : std::exchange(partitions_, {})) {
    unless_gone([this, id] { remove_domain(id); });
  }
}

}  // namespace weir::hs
