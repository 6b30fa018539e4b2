#include "share/share_part.hpp"

#include <algorithm>

#include "stream/registry.hpp"

namespace weir::rt {

LocalPart::LocalPart(Share& of, ShareState& common, std::uint32_t at, weir_place& of_place,
                     OnChunkEnd on_chunk_end)
    : share(of),
      state(common),
      index(at),
      place(of_place),
      status(common.statuses[at]),
      peers(common.statuses.size()) {
  for (ShareChunk& chunk : chunks) {
    chunk.part = this;
    chunk.deliver = on_chunk_end;
  }
  const std::string name = fmt::format("{}/{}", state.name, place.name());
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  options.name = name.c_str();
  stream = state.registry.create_stream(place, options);
}

LocalPart::~LocalPart() { state.registry.destroy_stream(stream); }

std::uint64_t LocalPart::next_size() noexcept {
  return state.source.next_size(index, trial.items(), peers, state.registry.now_ns());
}

ShareChunk& LocalPart::begin_chunk(const ItemRange& range) noexcept {
  state.pending.add();
  ShareChunk& chunk = chunks[chunks[0].range.count == 0 ? 0 : 1];
  assert(in_flight < chunks.size() && chunk.range.count == 0);
  chunk.range = range;
  chunk.number = status.visits.fetch_add(1) + 1;
  chunk.way = trial.next();
  if (in_flight++ == 0) {
    busy_since_ns = state.registry.now_ns();
    meter.begin(busy_since_ns);
  }
  publish();
  return chunk;
}

void LocalPart::measure(const ShareChunk& chunk, std::int64_t now_ns) noexcept {
  const double work = state.source.work_of(chunk.range);
  done += chunk.range.count;
  work_done += work;
  if (trial.is_running()) {
    const auto taken = std::max<std::int64_t>(1, now_ns - meter.since_ns());
    trial.end(chunk.way, work / static_cast<double>(taken));
  } else {
    meter.end(now_ns, chunk.range.count, work);
  }
}

void LocalPart::end_chunk(ShareChunk& chunk, bool complete, std::int64_t now_ns) noexcept {
  if (complete) measure(chunk, now_ns);
  chunk.range = {0, 0};
  if (--in_flight == 0) busy_ns += now_ns - busy_since_ns;
  publish();
}

/// Publishes the load and speed of the place for the other places.
void LocalPart::publish() noexcept {
  const ShareChunk* begun = nullptr;
  double pending = 0;
  for (const ShareChunk& chunk : chunks) {
    if (chunk.range.count == 0) continue;
    pending += state.source.work_of(chunk.range);
    if (begun == nullptr || chunk.number < begun->number) begun = &chunk;
  }
  status.current.store(begun != nullptr ? state.source.work_of(begun->range) : 0);
  status.pending.store(pending);
  status.since_ns.store(meter.since_ns());
  status.speed.store(meter.speed() > 0 ? meter.speed() : trial.speed());
  status.grain.store(meter.grain());
  if (changes != nullptr) changed = changes->fetch_add(1) + 1;
}

PartReport LocalPart::report(std::int64_t now_ns) noexcept {
  const SpinGuard guard(lock);
  return {.speed = status.speed.load(),
          .pending = status.pending.load(),
          .current = status.current.load(),
          .age_ns = now_ns - status.since_ns.load(),
          .grain = status.grain.load(),
          .visits = status.visits.load(),
          .calls = fetches,
          .trial = trial.items(),
          .done = done,
          .work_done = work_done,
          .busy_ns = busy_ns + (in_flight > 0 ? now_ns - busy_since_ns : 0),
          .way = static_cast<std::uint32_t>(trial.best()),
          .lost = status.lost.load()};
}

}  // namespace weir::rt
