#include "tasks/queue_place.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kEnoughNs = 2'000'000;  ///< of work for each core of a place
constexpr std::uint64_t kManyTasks = 256;      ///< for each core

}  // namespace

void QueuePlace::DestroyStream::operator()(weir_stream* stream) const noexcept {
  Registry::of(stream->context()).destroy_stream(stream);
}

std::int64_t QueuePlace::expected_free_ns(const weir_kernel& kernel,
                                          std::int64_t now_ns) const noexcept {
  const auto cores = static_cast<std::int64_t>(place->width());
  const std::int64_t taken = static_cast<std::int64_t>(load) + claimed;
  const std::int64_t needed = cores_of(kernel);
  if (taken + needed <= cores) return 0;
  const std::int64_t mean_ns = (backlog_ns + claimed_ns) / taken;
  const std::int64_t most_ns = mean_ns * ((taken + needed - 1) / cores);
  const CoreTimes& planned = claimed > 0 ? claimed_times : core_times;
  const std::int64_t free_ns = needed > 1 ? planned.all_free_ns() : planned.first_free_ns();
  return std::clamp(free_ns - now_ns, most_ns - mean_ns, most_ns);
}

void QueuePlace::claim(const weir_kernel& kernel, std::int64_t count, std::int64_t run_ns,
                       std::int64_t from_ns) noexcept {
  if (claimed == 0) claimed_times = core_times;
  claimed += count * cores_of(kernel);
  claimed_ns += count * cores_of(kernel) * run_ns;
  plan(claimed_times, kernel, from_ns, count * run_ns);
}

bool QueuePlace::has_enough() const noexcept {
  const std::uint64_t cores = place->width();
  const std::uint64_t waiting =
      load > tasks ? cores : cores + 4;  // a parallel task, or a few serial ones
  if (load < cores + (saturated ? waiting * 3 / 4 : waiting)) return false;
  const std::uint64_t scale = saturated ? 2 : 1;
  return unmeasured > 0 || scale * load >= kManyTasks * cores ||
         static_cast<std::int64_t>(scale) * backlog_ns >=
             kEnoughNs * static_cast<std::int64_t>(cores);
}

QueuePlaces::QueuePlaces(const QueueProperties& properties, const weir_queue_options& options)
    : set_(properties.registry, fmt::format("queue '{}'", properties.name), options.places,
           options.place_count) {
  const std::vector<weir_place*>& places = set_.all();
  if (options.weight_count != 0 && options.weight_count != places.size()) {
    fail_argument("{} for {}: give one for each place", counted(options.weight_count, "weight"),
                  counted(places.size(), "place"));
  }
  if (options.weights == nullptr && options.weight_count > 0) {
    fail_argument("{} {} given as NULL", counted(options.weight_count, "weight"),
                  is_or_are(options.weight_count));
  }
  all_.reserve(places.size());
  for (weir_place* const place : places) {
    const std::size_t index = all_.size();
    const double weight =
        options.weight_count > 0 ? options.weights[index] : static_cast<double>(place->width());
    if (!(weight > 0) || weight > 1e9) {
      fail_argument("weight {} of place '{}' is not a positive number", weight, place->name());
    }
    const DeviceInfo& info = place->domain().info();
    const std::string name = fmt::format("{}/{}", properties.name, place->name());
    weir_stream_options stream_options = WEIR_STREAM_OPTIONS_INIT;
    stream_options.name = name.c_str();
    stream_options.max_in_flight = properties.max_in_flight;
    QueuePlace& made = all_.emplace_back();
    made.index = static_cast<std::uint32_t>(index);
    made.place = place;
    made.kind = fmt::format("{} {} x{}", info.backend, info.description, place->width());
    made.weight = weight;
    made.core_times = made.claimed_times = CoreTimes(place->width());
    made.share.place = place->name().c_str();
    made.stream.reset(properties.registry.create_stream(*place, stream_options));
  }
}

weir_stream* QueuePlaces::direct_stream() const noexcept {
  const bool direct = all_.size() == 1 && all_.front().domain().info().aliases_host;
  return direct ? all_.front().stream.get() : nullptr;
}

std::size_t QueuePlaces::cores() const noexcept {
  std::size_t cores = 0;
  for (const QueuePlace& queue_place : all_) cores += queue_place.place->width();
  return cores;
}

void QueuePlaces::close(Unreported& unreported) noexcept {
  for (QueuePlace& queue_place : all_) {
    if (queue_place.stream == nullptr) continue;
    unreported.take(queue_place.stream->unreported());
    queue_place.stream.reset();
  }
}

}  // namespace weir::rt
