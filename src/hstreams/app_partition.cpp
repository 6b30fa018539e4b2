#include "hstreams/app_partition.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <hstreams/hStreams_common.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

/// Divides the threads of a logical domain over places; the first ones get one more.
std::vector<CpuMask> places_in(HSTR_LOG_DOM id, const CpuMask& mask, std::size_t count) {
  const std::size_t threads = mask.count();
  if (count > threads) {
    fail(HSTR_RESULT_OUT_OF_RANGE,
         "{} places in logical domain {} of {} thread{}: WEIR_HSTREAMS_THREADS gives devices more",
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

}  // namespace

void AppPartition::create(std::span<const std::uint32_t> places, std::uint32_t oversubscription) {
  const std::lock_guard lock(mutex_);
  if (!domains_.empty() && domains_.size() != places.size()) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} logical domains: the first call made {}", places.size(),
         domains_.size());
  }
  if (std::all_of(places.begin(), places.end(), [](std::uint32_t count) { return count == 0; })) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "no logical domain gets a stream");
  }
  const bool first = domains_.empty();
  const HSTR_LOG_STR first_stream = next_stream_;
  try {
    if (first) create_domains(places.size());
    create_streams(places, oversubscription);
  } catch (...) {
    undo(first, first_stream);
    throw;
  }
}

/// Divides the usable threads of each device over its logical domains; the last one gets the
/// remainder.
void AppPartition::create_domains(std::size_t count) {
  const std::vector<PhysicalDomain>& devices = session_.physical().devices();
  const std::size_t used = std::min(devices.size(), count);
  domains_.reserve(count);
  for (std::size_t device = 0; device < used; ++device) {
    const std::size_t here = count / used + (device < count % used ? 1 : 0);
    const CpuMask usable = devices[device].usable();
    const std::size_t first = first_of(usable), width = usable.count() / here;
    for (std::size_t i = 0; i < here; ++i) {
      const std::size_t rest = i + 1 == here ? usable.count() % here : 0;
      HSTR_OVERLAP_TYPE overlap;
      domains_.push_back(session_.add_domain(devices[device].id,
                                             mask_range(first + i * width, width + rest), overlap));
    }
  }
}

void AppPartition::create_streams(std::span<const std::uint32_t> places,
                                  std::uint32_t oversubscription) {
  std::vector<std::pair<HSTR_LOG_DOM, CpuMask>> all;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const HSTR_LOG_DOM domain = domains_[i];
    const CpuMask whole = session_.domain(domain, HSTR_RESULT_DOMAIN_OUT_OF_RANGE).mask;
    for (const CpuMask& mask : places_in(domain, whole, places[i])) all.emplace_back(domain, mask);
  }
  for (std::uint32_t level = 0; level < oversubscription; ++level) {
    for (const auto& [domain, mask] : all) {
      session_.create_stream(next_stream_, domain, mask);
      ++next_stream_;
    }
  }
}

void AppPartition::undo(bool domains, HSTR_LOG_STR first_stream) noexcept {
  const auto unless_removed = [](const auto& remove) {
    try {
      remove();
    } catch (const std::exception&) {  // the program has removed it meanwhile
    }
  };
  while (next_stream_ > first_stream) {
    unless_removed([this, id = --next_stream_] { session_.destroy_stream(id); });
  }
  if (!domains) return;
  for (const HSTR_LOG_DOM id : std::exchange(domains_, {})) {
    unless_removed([this, id] { session_.remove_domain(id); });
  }
}

}  // namespace weir::hs
