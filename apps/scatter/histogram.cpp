#include "scatter/histogram.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

namespace weir::apps {

namespace {

constexpr std::size_t kAtOnce = 256;

weir::ConveyorOptions options_of(const Travel& travel, std::vector<std::int64_t>& table) {
  weir::ConveyorOptions options;
  options.name = "histogram";
  options.memory = std::as_writable_bytes(std::span(table));
  options.block_bytes = travel.block_bytes;
  options.block_items = travel.coalesce ? 0 : 1;
  options.age = std::chrono::microseconds(travel.age_us);
  if (travel.age_us == 0) options.age = std::chrono::nanoseconds(1);  // 0 is the usual age
  return options;
}

/// Returns the first key of one of several parts.
std::size_t part_of(std::size_t total, std::size_t index, std::size_t count) {
  return total / count * index + std::min(index, total % count);
}

/// Collects updates of one rank's bins.
struct Outbox {
  std::vector<std::uint64_t> offsets;
  void flush(const weir::Producer& producer, unsigned rank, std::span<const std::int64_t> ones) {
    producer.add(rank, offsets, ones.first(offsets.size()));
    offsets.clear();
  }
};

}  // namespace

Histogram::Histogram(weir_fabric* fabric, const Keys& keys, const Travel& travel)
    : keys_(keys),
      travel_(travel),
      rank_(weir_fabric_rank(fabric)),
      ranks_(weir_fabric_ranks(fabric)),
      bins_each_((keys.bins() + ranks_ - 1) / ranks_),
      part_{rank_ * bins_each_, std::vector<std::int64_t>(bins_each_), {}},
      conveyor_(fabric, options_of(travel, part_.table)) {}

void Histogram::run(const std::atomic<bool>& cancelled, std::chrono::nanoseconds timeout) {
  std::fill(part_.table.begin(), part_.table.end(), 0);
  conveyor_.finish(timeout);  // no rank adds before all have cleared
  const std::size_t workers = ranks_ * travel_.producers;
  std::vector<std::exception_ptr> failures(travel_.producers);
  std::vector<std::jthread> threads;  // they end when not all can be started, too
  for (std::size_t index = 0; index < travel_.producers; ++index) {
    threads.emplace_back([&, index] {
      try {
        const std::size_t worker = rank_ * travel_.producers + index;
        produce(part_of(keys_.parts(), worker, workers),
                part_of(keys_.parts(), worker + 1, workers), cancelled);
      } catch (...) {
        failures[index] = std::current_exception();
      }
    });
  }
  for (std::jthread& thread : threads) thread.join();
  conveyor_.finish(timeout);
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  const auto since = [](std::uint64_t now, std::uint64_t before) {
    return static_cast<std::int64_t>(now - before);
  };
  const weir_conveyor_info info = conveyor_.info();
  part_.counts = {since(info.items, before_.items),
                  since(info.item_bytes, before_.item_bytes),
                  since(info.wire_bytes, before_.wire_bytes),
                  since(info.blocks, before_.blocks),
                  since(info.joined, before_.joined),
                  since(info.combined, before_.combined),
                  static_cast<std::int64_t>(info.most_in_flight)};
  before_ = info;
}

void Histogram::produce(std::size_t first, std::size_t end,
                        const std::atomic<bool>& cancelled) const {
  const weir::Producer producer = conveyor_.producer();
  const std::vector<std::int64_t> ones(kAtOnce, 1);
  std::vector<Outbox> boxes(ranks_);
  for (Outbox& box : boxes) box.offsets.reserve(kAtOnce);
  keys_.visit(first, end, [&](std::span<const std::uint64_t> bins) {
    if (cancelled.load(std::memory_order_relaxed)) return;
    for (const std::uint64_t bin : bins) {
      const auto rank = static_cast<unsigned>(bin / bins_each_);
      Outbox& box = boxes[rank];
      box.offsets.push_back(bin % bins_each_ * sizeof(std::int64_t));
      if (box.offsets.size() == kAtOnce) box.flush(producer, rank, ones);
    }
  });
  for (unsigned rank = 0; rank < ranks_; ++rank) boxes[rank].flush(producer, rank, ones);
  producer.flush();
}

std::size_t HistogramPart::wrong_bins(const Keys& keys) const {
  std::vector<std::int64_t> wanted(table.size());
  keys.visit(0, keys.parts(), [&](std::span<const std::uint64_t> bins) {
    for (const std::uint64_t bin : bins) {
      if (bin - first_bin < wanted.size()) ++wanted[bin - first_bin];
    }
  });
  std::size_t wrong = 0;
  for (std::size_t bin = 0; bin < table.size(); ++bin) wrong += wanted[bin] != table[bin] ? 1 : 0;
  return wrong;
}

std::int64_t HistogramPart::sum() const {
  return std::accumulate(table.begin(), table.end(), std::int64_t{0});
}

}  // namespace weir::apps
