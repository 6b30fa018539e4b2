#include "backends/cuda/cuda_stream_order.hpp"

#include <algorithm>

namespace weir::rt {

namespace {

void merge(CudaFrontier& into, const CudaFrontier& from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

unsigned CudaStreamOrder::choose(unsigned first, unsigned size,
                                 std::span<const CudaPoint> predecessors) const noexcept {
  for (std::size_t i = predecessors.size(); i-- > 0;) {
    const CudaPoint& point = predecessors[i];
    const bool ours = point.stream >= first && point.stream < first + size;
    if (ours && point.epoch == streams_[point.stream].tail && !is_complete(point))
      return point.stream;
  }
  const auto load = [this](unsigned stream_index) {
    return streams_[stream_index].tail - streams_[stream_index].done;
  };
  unsigned best = first;
  for (unsigned stream_index = first + 1; stream_index < first + size; ++stream_index) {
    if (load(stream_index) < load(best)) best = stream_index;
  }
  return best;
}

bool CudaStreamOrder::implied(unsigned stream_index, CudaPoint point) const noexcept {
  return is_complete(point) || streams_[stream_index].frontier[point.stream] >= point.epoch;
}

std::optional<unsigned> CudaStreamOrder::recorded(CudaPoint point) const noexcept {
  std::optional<unsigned> best;
  const auto& records = streams_[point.stream].records;
  for (unsigned i = 0; i < kRecords; ++i) {
    if (records[i].epoch < point.epoch) continue;
    if (!best || records[i].epoch < records[*best].epoch) best = i;
  }
  return best;
}

unsigned CudaStreamOrder::record(unsigned stream_index) noexcept {
  StreamState& mine = streams_[stream_index];
  const auto oldest =
      std::min_element(mine.records.begin(), mine.records.end(),
                       [](const Record& a, const Record& b) { return a.epoch < b.epoch; });
  *oldest = {.epoch = mine.tail, .frontier = mine.frontier};
  return static_cast<unsigned>(oldest - mine.records.begin());
}

void CudaStreamOrder::wait(unsigned stream_index, unsigned other, unsigned record) noexcept {
  merge(streams_[stream_index].frontier, streams_[other].records[record].frontier);
}

CudaPoint CudaStreamOrder::append(unsigned stream_index) noexcept {
  StreamState& mine = streams_[stream_index];
  mine.frontier[stream_index] = ++mine.tail;
  return {stream_index, mine.tail};
}

void CudaStreamOrder::advance(unsigned stream_index, std::uint64_t epoch) noexcept {
  streams_[stream_index].done = std::max(streams_[stream_index].done, epoch);
}

}  // namespace weir::rt
