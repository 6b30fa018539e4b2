#include "common/app_streams.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "common/counted.hpp"

namespace weir::apps {

namespace {

/// Returns how many places a domain is divided into for kernels that run on all cores of a place.
/// Four at most, of seven cores or more: with fewer the last kernels leave cores idle, with more
/// each of them is slow, and the last ones end late.
std::size_t team_places(const weir_domain_info& info) {
  constexpr std::size_t kMostPlaces = 4, kFewestCores = 7;
  const std::string_view backend = info.backend;
  if (backend != "host" && backend != "sim") return 1;  // its places share the whole device
  const std::size_t cores = info.cores / std::max<std::size_t>(info.threads_per_core, 1);
  return std::clamp<std::size_t>(cores / kFewestCores, 1, kMostPlaces);
}

}  // namespace

AppStreams::AppStreams(const weir::Runtime& runtime, const Sharing& sharing)
    : streams_(sharing.streams) {
  for (std::size_t index = 0; index < runtime.domain_count(); ++index) {
    const weir::Domain domain = runtime.domain(index);
    weir_domain* const memory = domain.info().aliases_host ? nullptr : domain.handle();
    if (const std::size_t cores = domain.info().cores; sharing.places > cores && cores > 0) {
      throw weir::Error(
          WEIR_STATUS_INVALID_ARGUMENT,
          fmt::format("domain '{}' has {}: choose up to {} --places, not {}", domain.info().name,
                      counted(cores, "core"), cores, sharing.places));
    }
    const std::size_t more = sharing.teams ? team_places(domain.info()) : 1;
    teams_ = teams_ || more > 1;
    for (weir::Place& place : domain.partition(std::max(sharing.places, more))) {
      cores_.push_back(place.cores());
      for (std::size_t i = 0; i < streams_; ++i) {
        app_streams_.push_back({place.stream({.priority = i == 0 && streams_ > 1 ? 1 : 0}),
                                app_streams_.size(), index, memory});
      }
      places_.push_back(std::move(place));
    }
  }
}

std::size_t AppStreams::cores() const noexcept {
  return std::accumulate(cores_.begin(), cores_.end(), std::size_t{0});
}

std::vector<weir_place*> AppStreams::place_handles() const {
  std::vector<weir_place*> handles;
  for (const weir::Place& place : places_) handles.push_back(place.handle());
  return handles;
}

bool AppStreams::share_memory() const noexcept {
  return std::all_of(app_streams_.begin(), app_streams_.end(),
                     [](const AppStream& app_stream) { return app_stream.memory == nullptr; });
}

std::size_t AppStreams::memories() const {
  std::vector<const weir_domain*> memories;
  for (const AppStream& each : app_streams_) memories.push_back(each.memory);
  std::sort(memories.begin(), memories.end());
  return static_cast<std::size_t>(std::unique(memories.begin(), memories.end()) - memories.begin());
}

const AppStream& AppStreams::any(std::size_t place, std::size_t part) const noexcept {
  return streams_ == 1 ? urgent(place) : app_streams_[place * streams_ + 1 + part % (streams_ - 1)];
}

std::vector<std::size_t> AppStreams::deal(std::size_t parts) const {
  return deal(std::vector<double>(parts, 1));
}

std::vector<std::size_t> AppStreams::deal(const std::vector<double>& work,
                                          const std::vector<double>& copying) const {
  std::vector<std::size_t> order(work.size()), owners(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  std::vector<double> dealt(places(), 0);
  const auto cores = [this](std::size_t place) { return static_cast<double>(cores_[place]); };
  for (const std::size_t part : order) {
    const auto load_with_it = [&](std::size_t place) {
      const bool copies = !copying.empty() && urgent(place).memory != nullptr;
      return dealt[place] + work[part] + (copies ? copying[part] : 0);
    };
    std::size_t best = 0;  // the place that would be least loaded
    for (std::size_t place = 1; place < places(); ++place) {
      if (load_with_it(place) * cores(best) < load_with_it(best) * cores(place)) best = place;
    }
    dealt[best] = load_with_it(best);
    owners[part] = best;
  }
  return owners;
}

std::vector<const AppStream*> AppStreams::streams_of(const std::vector<std::size_t>& places) const {
  std::vector<std::size_t> turns(this->places(), 0);
  std::vector<const AppStream*> found;
  for (const std::size_t place : places) {
    found.push_back(&app_streams_[place * streams_ + turns[place]++ % streams_]);
  }
  return found;
}

std::vector<const AppStream*> AppStreams::spread(std::size_t parts) const {
  return streams_of(deal(parts));
}

std::vector<const AppStream*> AppStreams::spread(const std::vector<double>& work) const {
  return streams_of(deal(work));
}

std::vector<const AppStream*> AppStreams::spread_in_order(std::size_t parts) const {
  std::vector<std::size_t> owners = deal(parts);
  std::sort(owners.begin(), owners.end());
  return streams_of(owners);
}

std::size_t AppStreams::batch_of(std::size_t parts, std::size_t bytes) const noexcept {
  constexpr std::size_t kBytes = std::size_t{4} << 20, kCopies = 8;
  return std::max<std::size_t>(1, std::min(kBytes / bytes, parts / (kCopies * places())));
}

weir_kernel_shape AppStreams::shape_for(std::size_t parts) const noexcept {
  return parts >= cores() ? WEIR_KERNEL_SHAPE_SERIAL : WEIR_KERNEL_SHAPE_PARALLEL;
}

void AppStreams::synchronize() const {
  std::vector<weir::Event> events;
  for (const AppStream& app_stream : app_streams_) events.push_back(app_stream.stream.mark());
  for (const AppStream& app_stream : app_streams_)
    app_stream.stream.sync(events, {}, WEIR_SYNC_SCOPE_STREAM);
}

}  // namespace weir::apps
