#include "backends/cuda/cuda_lanes.hpp"

#include <algorithm>

namespace weir::rt {

namespace {

void merge(CudaFrontier& into, const CudaFrontier& from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

unsigned CudaLanes::choose(unsigned first, unsigned size,
                           std::span<const CudaPoint> predecessors) const noexcept {
  for (std::size_t i = predecessors.size(); i-- > 0;) {
    const CudaPoint& point = predecessors[i];
    const bool ours = point.lane >= first && point.lane < first + size;
    if (ours && point.epoch == lanes_[point.lane].tail && !over(point)) return point.lane;
  }
  const auto load = [this](unsigned lane) { return lanes_[lane].tail - lanes_[lane].done; };
  unsigned best = first;
  for (unsigned lane = first + 1; lane < first + size; ++lane) {
    if (load(lane) < load(best)) best = lane;
  }
  return best;
}

bool CudaLanes::implied(unsigned lane, CudaPoint point) const noexcept {
  return over(point) || lanes_[lane].frontier[point.lane] >= point.epoch;
}

std::optional<unsigned> CudaLanes::recorded(CudaPoint point) const noexcept {
  std::optional<unsigned> best;
  const auto& records = lanes_[point.lane].records;
  for (unsigned i = 0; i < kRecords; ++i) {
    if (records[i].epoch < point.epoch) continue;
    if (!best || records[i].epoch < records[*best].epoch) best = i;
  }
  return best;
}

unsigned CudaLanes::record(unsigned lane) noexcept {
  Lane& mine = lanes_[lane];
  const auto oldest =
      std::min_element(mine.records.begin(), mine.records.end(),
                       [](const Record& a, const Record& b) { return a.epoch < b.epoch; });
  *oldest = {.epoch = mine.tail, .frontier = mine.frontier};
  return static_cast<unsigned>(oldest - mine.records.begin());
}

void CudaLanes::wait(unsigned lane, unsigned other, unsigned record) noexcept {
  merge(lanes_[lane].frontier, lanes_[other].records[record].frontier);
}

CudaPoint CudaLanes::append(unsigned lane) noexcept {
  Lane& mine = lanes_[lane];
  mine.frontier[lane] = ++mine.tail;
  return {lane, mine.tail};
}

void CudaLanes::advance(unsigned lane, std::uint64_t epoch) noexcept {
  lanes_[lane].done = std::max(lanes_[lane].done, epoch);
}

}  // namespace weir::rt
