#include "common/chunk_loop.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace weir::apps {

ChunkLoop::ChunkLoop(const weir::Runtime& runtime, const AppStreams& app_streams,
                     const std::vector<std::size_t>& places, const AppStream* device,
                     ChunkOverlap overlap)
    : runtime_(runtime),
      streams_(app_streams),
      device_(device),
      overlap_(overlap),
      kernel_(runtime.kernel("chunk", [this](weir::Call& call) {
        (*code_)({call.scalar<std::size_t>(0), call.scalar<std::size_t>(1),
                  call.scalar<std::size_t>(2)});
      })) {
  const bool is_virtual = runtime.domain(0).info().virtual_time;
  for (const std::size_t place : places) {
    if (is_virtual) virtual_cores_ = std::max(virtual_cores_, app_streams.cores(place));
    if (is_virtual) continue;
    for (std::size_t core = 0; core < app_streams.cores(place); ++core) {
      hosts_.push_back(&app_streams.any(place, core));
    }
  }
}

void ChunkLoop::begin(std::chrono::nanoseconds timeout) {
  deadline_ = Deadline(timeout);
  synchronizations_ = 0;
  stages_.clear();
  for (auto& [stage, offload] : offloads_) {
    offload.launched = offload.taken = 0;
    offload.tables = false;
  }
}

void ChunkLoop::count(const char* stage, std::size_t items) {
  const auto named = [&](const Stage& known) { return known.name == stage; };
  auto found = std::find_if(stages_.begin(), stages_.end(), named);
  if (found == stages_.end()) found = stages_.insert(found, {stage});
  found->items += items;
  found->most = std::max<std::uint64_t>(found->most, items);
}

void ChunkLoop::begin_chunk(const char* stage, std::size_t items) {
  if (deadline_.remaining_ns() == std::chrono::nanoseconds(0)) {
    throw weir::Error(WEIR_STATUS_TIMEOUT, "the time was over before stage '" + std::string(stage) +
                                               "' got another chunk");
  }
  count(stage, items);
  ++synchronizations_;
}

std::vector<weir::Event> ChunkLoop::enqueue(std::size_t count) {
  std::vector<weir::Event> events;
  if (hosts_.empty() && count > 0) (*code_)({0, 0, count});
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const std::size_t first = count * i / parts(), end = count * (i + 1) / parts();
    if (first < end) events.push_back(hosts_[i]->run(kernel_, {}, {i, first, end}));
  }
  return events;
}

/// Waits: enqueued actions refer to memory that is about to be freed.
void ChunkLoop::abandon() noexcept {
  for (std::size_t i = 0; i < streams_.size(); ++i) weir_stream_cancel(streams_[i].stream.handle());
  weir_runtime_synchronize(runtime_.handle(), weir::forever.count());
}

void ChunkLoop::work(std::size_t count, double item_ns) {
  left_ns_ += item_ns * static_cast<double>(count);
  const double whole = std::floor(left_ns_);
  left_ns_ -= whole;
  runtime_.pass_time(std::chrono::nanoseconds(static_cast<std::int64_t>(whole)));
}

void ChunkLoop::run(const char* stage, std::size_t items, double item_ns,
                    const std::function<void(const ChunkPart&)>& code) {
  begin_chunk(stage, items);
  code_ = &code;
  try {
    runtime_.wait(enqueue(items), deadline_.remaining_ns());
  } catch (...) {
    abandon();
    throw;
  }
  work(items, item_ns / static_cast<double>(virtual_cores_));
}

void ChunkLoop::launch(const char* stage, const DeviceStage& code,
                       std::span<const std::byte> items) {
  begin_chunk(stage, items.size() / code.item_bytes);
  Offload& offload = offloads_[stage];
  assert(offload.launched - offload.taken < offload.freights.size());
  const auto freight = [&](std::size_t chunk) -> Freight& {
    return offload.freights[chunk % offload.freights.size()];
  };
  try {
    if (overlap_ != ChunkOverlap::copies && offload.launched > offload.taken) {
      fetch(code, freight(offload.launched - 1));
    }
    start(stage, code, offload, freight(offload.launched), items);
  } catch (...) {
    abandon();
    throw;
  }
  ++offload.launched;
}

/// Enqueues the copies and the kernel of a chunk, unless it is empty.
void ChunkLoop::start(const char* stage, const DeviceStage& code, Offload& offload,
                      Freight& freight, std::span<const std::byte> items) {
  freight.count = items.size() / code.item_bytes;
  freight.made_bytes = 0;
  freight.fetched = freight.count == 0;
  if (freight.count == 0) return;
  const std::size_t made = freight.count * code.most() * code.made_bytes;
  reserve(stage, freight, items.size(), made);
  std::memcpy(freight.items.data(), items.data(), items.size());
  *freight.number.data<std::uint32_t>() = 0;
  std::vector<weir::Operand> operands = {weir::read(freight.items.range(0, items.size())),
                                         weir::write(freight.made.range(0, made))};
  if (code.counts()) operands.push_back(weir::readwrite(freight.number.all()));
  for (const weir::Operand& table : code.options.tables) {
    if (!offload.tables) device_->stream.upload({table.buffer, table.region});
    operands.push_back(table);
  }
  offload.tables = true;
  std::vector<weir::Scalar> scalars = {static_cast<std::int64_t>(freight.count)};
  scalars.insert(scalars.end(), code.options.scalars.begin(), code.options.scalars.end());
  device_->stream.upload(freight.items.range(0, items.size()));
  if (code.counts()) device_->stream.upload(freight.number.all());
  device_->stream.compute(code.kernel, operands, scalars, stage);
  freight.ready =
      device_->stream.download(code.counts() ? freight.number.all() : freight.made.range(0, made));
}

std::span<const std::byte> ChunkLoop::results(const char* stage, const DeviceStage& code) {
  Offload& offload = offloads_[stage];
  assert(offload.taken < offload.launched);
  Freight& freight = offload.freights[offload.taken++ % offload.freights.size()];
  try {
    fetch(code, freight);
  } catch (...) {
    abandon();
    throw;
  }
  return {freight.made.data(), freight.made_bytes};
}

void ChunkLoop::fetch(const DeviceStage& code, Freight& freight) {
  if (freight.fetched) return;
  freight.ready.wait(deadline_.remaining_ns());
  freight.made_bytes = freight.count * code.most() * code.made_bytes;
  if (code.counts()) {
    freight.made_bytes = *freight.number.data<std::uint32_t>() * code.made_bytes;
    if (freight.made_bytes > 0) {
      const auto put = freight.made.range(0, freight.made_bytes);
      device_->stream.download(put).wait(deadline_.remaining_ns());
    }
  }
  freight.fetched = true;
}

void ChunkLoop::reserve(const char* stage, Freight& freight, std::size_t items,
                        std::size_t made) const {
  if (freight.items.bytes() < items) freight.items = runtime_.buffer(items, stage);
  if (freight.made.bytes() < made) freight.made = runtime_.buffer(made, stage);
  if (freight.number.bytes() == 0) freight.number = runtime_.buffer(sizeof(std::uint32_t), stage);
}

}  // namespace weir::apps
