#include "stream/registry.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

/// Enough for an owner to end a drain whose fate is decided.
constexpr std::int64_t kMomentNs = 10'000'000;

std::vector<weir_event> events_of(const std::list<Stream::Drain>& drains) {
  std::vector<weir_event> events;
  events.reserve(drains.size());
  for (const Stream::Drain& drain : drains) events.push_back(drain.event);
  return events;
}

bool try_to_cancel(Stream& stream) noexcept {
  try {
    stream.cancel_permanently();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

// ---- Places and streams ------------------------------------------------------------------------

weir_place* Registry::create_place(Domain& domain, const weir_place_options& options) {
  if (options.cores != nullptr && options.core_count == 0) {
    fail_argument("a place of domain '{}' needs at least one core", domain.name());
  }
  const std::uint32_t number = domain.next_place_number();
  std::string name = options.name ? options.name : fmt::format("{}/p{}", domain.name(), number);
  std::vector<unsigned> cores = take_cores(domain, options);
  Owned<weir_place> place;
  try {
    place.reset(new weir_place(domain, std::move(name), cores));
  } catch (...) {
    domain.return_cores(cores);
    throw;
  }
  sys::Lock lock(mutex_);
  weir_place* const handle = place.get();
  places_.push_back(std::move(place));
  return handle;
}

/// If too few cores are free, or the request is for all free cores, waits for the places in
/// destruction.
std::vector<unsigned> Registry::take_cores(Domain& domain, const weir_place_options& options) {
  const bool listed = options.cores != nullptr;
  std::vector<unsigned> wanted;
  if (listed) wanted.assign(options.cores, options.cores + options.core_count);
  const auto take = [&] {
    return domain.take_cores(wanted, listed ? 0 : options.core_count, options.oversubscribe);
  };
  if (options.core_count == 0) reaper_.settle();
  try {
    return take();
  } catch (const Error& error) {
    if (!reaper_.busy()) throw;
    if (NoWaitScope::active()) {
      fail(error.status(), "{}; places destroyed by kernels or callbacks give theirs back later",
           error.what());
    }
  }
  reaper_.settle();
  return take();
}

std::size_t Registry::free_cores(const Domain& domain) noexcept {
  reaper_.settle();
  return domain.free_cores();
}

void Registry::partition(Domain& domain, std::size_t count, bool oversubscribe,
                         weir_place** out_places) {
  domain.require_cores();
  const std::size_t cores = oversubscribe ? domain.info().cores : free_cores(domain);
  if (count == 0) fail_argument("domain '{}' cannot be divided into 0 places", domain.name());
  if (count > cores && !oversubscribe) {
    fail_argument(
        "{} {} more than domain '{}' has free cores, {}; ask for fewer places, or set "
        "oversubscribe to share cores",
        counted(count, "place"), is_or_are(count), domain.name(), cores);
  }
  std::size_t made = 0;
  try {
    for (; made < count; ++made) {
      weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
      options.core_count = std::max<std::size_t>(1, cores / count + (made < cores % count ? 1 : 0));
      options.oversubscribe = oversubscribe;
      out_places[made] = create_place(domain, options);
    }
  } catch (...) {
    while (made-- > 0) destroy_place(out_places[made]);
    throw;
  }
}

void Registry::destroy_place(weir_place* place) noexcept {
  if (destroyed_elsewhere(place, [this](weir_place* dead) { destroy_place(dead); })) return;
  while (weir_stream* const stream = any_stream_of(*place)) destroy_stream(stream);
  Owned<weir_place> dead;
  sys::Lock lock(mutex_);
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [place](const auto& owned) { return owned.get() == place; });
  if (found == places_.end()) return;
  dead = std::move(*found);
  places_.erase(found);
  lock.unlock();
}

/// Returns a stream of a place, after pending destructions by other threads; nullptr if there is
/// none.
weir_stream* Registry::any_stream_of(const Place& place) {
  sys::Lock lock(mutex_);
  for (;;) {
    bool leaving = false;
    for (const auto& [serial, stream] : streams_) {
      if (&stream->place() != &place) continue;
      if (!stream->registration.being_destroyed) return stream.get();
      leaving = true;
    }
    if (!leaving) return nullptr;
    stream_removed_.wait(lock);
  }
}

weir_stream* Registry::create_stream(Place& place, const weir_stream_options& options) {
  if (options.priority < -1 || options.priority > 1) {
    fail_argument("priority {} of a stream of place '{}' is not -1, 0 or 1", options.priority,
                  place.name());
  }
  if (options.policy < WEIR_DEPENDENCE_POLICY_OPERANDS ||
      options.policy > WEIR_DEPENDENCE_POLICY_NONE) {
    fail_argument("dependence policy {} does not exist", static_cast<int>(options.policy));
  }
  const std::uint32_t number = place.next_stream_number();
  std::string name = options.name ? options.name : fmt::format("{}/s{}", place.name(), number);
  sys::Lock lock(mutex_);
  const std::uint64_t serial = next_serial();
  Owned<weir_stream> stream(new weir_stream(place, serial, std::move(name), options));
  weir_stream* const handle = stream.get();
  streams_.emplace(serial, std::move(stream));
  return handle;
}

void Registry::destroy_stream(weir_stream* stream) noexcept {
  if (destroyed_elsewhere(stream, [this](weir_stream* dead) { destroy_stream(dead); })) return;
  {
    sys::Lock lock(mutex_);
    if (std::exchange(stream->registration.being_destroyed, true)) return;
    while (stream->pins > 0) stream_unpinned_.wait(lock);
  }
  do {  // repeat if a callback has enqueued more work
    try {
      await_end({stream}, WEIR_FOREVER);
    } catch (...) {
      wait_until_complete(*stream);
    }
    wait_until_no_owner(*stream);
  } while (!stream->is_complete());
  Owned<weir_stream> dead;
  sys::Lock lock(mutex_);
  const auto found = streams_.find(stream->serial());
  if (found == streams_.end()) return;
  stream->add_to(finished_stats_);
  dead = std::move(found->second);
  streams_.erase(found);
  lock.unlock();
  dead->unreported().report("stream", dead->name());
  dead.reset();
  stream_removed_.notify_all();
}

void Registry::destroy_buffer(weir_buffer* buffer) noexcept {
  if (destroyed_elsewhere(buffer, [this](weir_buffer* dead) { destroy_buffer(dead); })) return;
  try {
    before_destruction_(*buffer);
    const Pinned<weir_stream> all = pin_streams();
    std::vector<weir_event> ends;
    for (weir_stream* stream : all.list()) {
      if (buffer->maybe_used_by(stream->serial())) ends.push_back(stream->mark());
    }
    wait_for_events(*this, ends, WEIR_WAIT_MODE_ALL, WEIR_FOREVER);
    for (const weir_event& end : ends) failures().remove(end.opaque[1]);
  } catch (...) {
    wait_for_users(*buffer);
  }
  buffers_.free(*buffer);
}

/// All streams.
Pinned<weir_stream> Registry::pin_streams() {
  std::vector<weir_stream*> all;
  const sys::Lock lock(mutex_);
  all.reserve(streams_.size());
  for (const auto& [serial, stream] : streams_) {
    if (!stream->registration.being_destroyed) all.push_back(stream.get());
  }
  return {mutex_, stream_unpinned_, std::move(all)};
}

void Registry::with_streams(const std::function<void(const std::vector<weir_stream*>&)>& use) {
  const Pinned<weir_stream> all = pin_streams();
  use(all.list());
}

void Registry::each_place(const std::function<void(const Place&)>& use) const {
  sys::Lock lock(mutex_);
  for (const auto& place : places_) use(*place);
}

void Registry::get_stats(weir_stats& stats) const {
  const std::size_t struct_size = stats.struct_size;
  sys::Lock lock(mutex_);
  stats = finished_stats_;
  stats.struct_size = struct_size;
  for (const auto& [serial, stream] : streams_) stream->add_to(stats);
  for (std::size_t i = 0; i < domain_count(); ++i) {
    stats.bytes_evicted += domain(i)->residency().bytes_evicted();
  }
}

// ---- End ---------------------------------------------------------------------------------------

void Registry::report_unreported_streams() noexcept {
  sys::Lock lock(mutex_);
  for (const auto& [serial, stream] : streams_) {
    stream->unreported().report("stream", stream->name());
  }
}

void Registry::clear() noexcept {
  std::exchange(streams_, {}).clear();
  places_.clear();
  buffers_.clear();
}

void Registry::shut_down(std::int64_t deadline_ns) noexcept {
  try {
    const Pinned<weir_stream> all = pin_streams();
    do {  // repeat if a callback has enqueued more work
      if (!await_end(all.list(), time_until(deadline_ns))) {
        for (weir_stream* stream : all.list()) stream->cancel_permanently();
        await_end(all.list(), WEIR_FOREVER);
      }
    } while (!wait_until_no_owners());
  } catch (...) {
    shut_down_without_memory(deadline_ns);
  }
}

void Registry::shut_down_without_memory(std::int64_t deadline_ns) noexcept {
  do {
    for (const auto& [serial, stream] : streams_) {
      bool cancelled = false;
      while (!stream->is_complete()) {
        if (!cancelled && sys::now_ns() >= deadline_ns) cancelled = try_to_cancel(*stream);
        pass_time();
      }
    }
  } while (!wait_until_no_owners());
}

/// Waits until no thread owns the stream. A place in virtual time releases it when time advances.
void Registry::wait_until_no_owner(const Stream& stream) noexcept {
  stream.mailbox().wait_until_no_owner([this] {
    if (!virtual_time() || !drive()) sys::yield();
  });
}

bool Registry::wait_until_no_owners() noexcept {
  const auto enqueued = [this]() WEIR_NOT_ANALYSED {
    std::uint64_t sum = 0;
    for (const auto& [serial, stream] : streams_) sum += stream->enqueued();
    return sum;
  };
  const std::uint64_t before = enqueued();
  const bool complete = std::all_of(streams_.begin(), streams_.end(),
                                    [](const auto& entry) { return entry.second->is_complete(); });
  if (!complete) return false;
  for (const auto& [serial, stream] : streams_) {
    while (!stream->mailbox().has_no_owner()) {
      if (enqueued() != before) return false;
      if (!virtual_time() || !drive()) sys::yield();
    }
  }
  return enqueued() == before;
}

/// Waits until everything in a stream is complete.
void Registry::wait_until_complete(const Stream& stream) noexcept {
  while (!stream.is_complete()) pass_time();
}

void Registry::wait_for_users(const Buffer& buffer) noexcept {
  sys::Lock lock(mutex_);
  for (auto at = streams_.begin(); at != streams_.end();) {
    weir_stream& stream = *at->second;
    if (!stream.registration.being_destroyed && buffer.maybe_used_by(stream.serial())) {
      ++stream.pins;
      lock.unlock();
      wait_until_complete(stream);
      lock.lock();
      --stream.pins;
      stream_unpinned_.notify_all();
    }
    at = streams_.upper_bound(stream.serial());
  }
}

// ---- Synchronisation ---------------------------------------------------------------------------

WaitResult Registry::synchronize(Stream& stream, std::int64_t timeout_ns) {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not synchronise stream '{}'", stream.name());
  }
  return drain({static_cast<weir_stream*>(&stream)}, timeout_ns);
}

WaitResult Registry::drain_all(std::int64_t timeout_ns) {
  const Pinned<weir_stream> all = pin_streams();
  return drain(all.list(), timeout_ns);
}

WaitResult Registry::drain(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns) {
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  Drains drains;
  try {
    for (weir_stream* stream : streams) add_drains_of(*stream, drains);
    for (;;) {
      const std::vector<weir_event> events = events_of(drains);
      WaitResult result = wait_for_events(*this, events, WEIR_WAIT_MODE_ALL, time_until(deadline));
      if (result.timed_out() && !abandon(drains)) {  // all drains are about to complete
        result = wait_for_events(*this, events, WEIR_WAIT_MODE_ALL, kMomentNs);
      }
      if (result.timed_out()) {
        return_abandoned(drains);
        return result;
      }
      if (!forget_abandoned(drains)) continue;
      for (const Stream::Drain& drain : drains) {
        failures().remove(drain.event.opaque[1]);
        drain.stream->unreported().forget_up_to(drain.event.opaque[1]);
      }
      return result;
    }
  } catch (...) {
    abandon(drains);
    return_abandoned(drains);
    throw;
  }
}

/// Adds the drains of a stream that the next synchronise must report: those that have taken a
/// failure that was not reported, and one for everything enqueued, unless the last abandoned drain
/// covers that.
void Registry::add_drains_of(weir_stream& stream, Drains& drains) {
  Drains own;
  {
    sys::Lock lock(mutex_);
    own.splice(own.end(), stream.registration.abandoned_drains);
  }
  own.remove_if([&](const Stream::Drain& drain) {
    if (!drain.abandoned || stream.is_last(drain.event)) return false;
    failures().remove(drain.event.opaque[1]);
    return true;
  });
  const bool asked = std::any_of(own.begin(), own.end(),
                                 [](const Stream::Drain& drain) { return drain.abandoned; });
  drains.splice(drains.end(), own);
  if (asked || stream.completed_without_failure()) return;
  Drains added(1);  // nothing may throw once the drain is enqueued
  added.front() = {stream.drain(), &stream, false};
  drains.splice(drains.end(), added);
}

/// Abandons the drains whose fate is open, so that they keep the failures of their streams. Returns
/// whether any drain is abandoned.
bool Registry::abandon(Drains& drains) noexcept {
  bool any = false;
  for (Stream::Drain& drain : drains) {
    drain.abandoned =
        drain.abandoned ||
        action_of(drain.event).decide_fate(drain.event.opaque[1], DrainFate::abandoned);
    any = any || drain.abandoned;
  }
  return any;
}

/// Stores drains for the next synchronise of their streams.
void Registry::return_abandoned(Drains& drains) noexcept {
  sys::Lock lock(mutex_);
  while (!drains.empty()) {
    auto& abandoned_drains =
        static_cast<weir_stream*>(drains.front().stream)->registration.abandoned_drains;
    abandoned_drains.splice(abandoned_drains.end(), drains, drains.begin());
  }
}

/// Called when all drains are complete. Makes streams forget the failures that abandoned drains
/// have kept. A stream with newer actions needs another drain: the function enqueues it and returns
/// false.
bool Registry::forget_abandoned(Drains& drains) {
  bool complete = true;
  for (Stream::Drain& drain : drains) {
    if (!drain.abandoned) continue;
    if (failures().find(drain.event.opaque[1]).status != WEIR_STATUS_OK &&
        !drain.stream->forget_failure_of(drain.event)) {
      const std::uint64_t abandoned_id = drain.event.opaque[1];
      drain.event = drain.stream->drain();
      failures().remove(abandoned_id);
      complete = false;
    }
    drain.abandoned = false;  // now like a drain that has taken the failure, if there was one
  }
  return complete;
}

bool Registry::await_end(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns) {
  std::vector<weir_event> ends;
  ends.reserve(streams.size());
  for (weir_stream* stream : streams) {
    if (!stream->is_complete()) ends.push_back(stream->drain(DrainFate::abandoned));
  }
  const WaitResult result = wait_for_events(*this, ends, WEIR_WAIT_MODE_ALL, timeout_ns);
  for (const weir_event& end : ends) failures().remove(end.opaque[1]);
  return !result.timed_out();
}

}  // namespace weir::rt
