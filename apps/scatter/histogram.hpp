// One rank's part of a histogram that is distributed over ranks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <weir/conveyor.hpp>

#include "scatter/keys.hpp"

namespace weir::apps {

/// How the updates travel.
struct Travel {
  std::size_t producers = 1;    ///< threads of a rank that put
  std::size_t block_bytes = 0;  ///< 0: the conveyor's own
  bool coalesce = true;         ///< otherwise each update is a message
  std::int64_t age_us = 1000;   ///< after which a block is sent; -1: never
};

/// The figures of a rank, or of all together, for one run.
struct ScatterCounts {
  std::int64_t items = 0, item_bytes = 0, wire_bytes = 0, blocks = 0, joined = 0, combined = 0;
  std::int64_t most_in_flight = 0;
};

/// The result of a rank.
struct HistogramPart {
  std::size_t first_bin = 0;
  std::vector<std::int64_t> table;
  ScatterCounts counts;

  /// Returns how many bins differ from a count of all keys one by one.
  std::size_t wrong_bins(const Keys& keys) const;
  std::int64_t sum() const;
};

/// Bins are dealt out in equal parts, and so are the keys.
class Histogram {
 public:
  Histogram(weir_fabric* fabric, const Keys& keys, const Travel& travel);

  /// Adds this rank's keys to the table. Every rank calls it. Throws weir::Error.
  void run(const std::atomic<bool>& cancelled, std::chrono::nanoseconds timeout);

  const HistogramPart& part() const noexcept { return part_; }

 private:
  void produce(std::size_t first, std::size_t end, const std::atomic<bool>& cancelled) const;

  const Keys& keys_;
  const Travel travel_;
  const unsigned rank_, ranks_;
  const std::size_t bins_each_;
  HistogramPart part_;
  weir::Conveyor conveyor_;
  weir_conveyor_info before_ = WEIR_CONVEYOR_INFO_INIT;
};

}  // namespace weir::apps
