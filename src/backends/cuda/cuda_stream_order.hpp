// Which stream of a place a job goes to, and what it must wait for there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::rt {

inline constexpr unsigned kMaxCudaStreams = 12;

/// For each stream the highest epoch that is known to be over.
using CudaFrontier = std::array<std::uint64_t, kMaxCudaStreams>;

/// The end of a job: streams run what they have in order, and count it from 1.
struct CudaPoint {
  unsigned stream = 0;
  std::uint64_t epoch = 0;
};

/// What a place knows about its streams. Makes no calls; one thread.
class CudaStreamOrder {
 public:
  /// Recorded events that a stream keeps for others to wait for.
  static constexpr unsigned kRecords = 4;

  explicit CudaStreamOrder(unsigned count) : streams_(count) {}

  unsigned count() const noexcept { return static_cast<unsigned>(streams_.size()); }
  std::uint64_t tail(unsigned stream_index) const noexcept { return streams_[stream_index].tail; }
  std::uint64_t done(unsigned stream_index) const noexcept { return streams_[stream_index].done; }
  const CudaFrontier& frontier(unsigned stream_index) const noexcept {
    return streams_[stream_index].frontier;
  }
  bool is_complete(CudaPoint point) const noexcept {
    return point.epoch <= streams_[point.stream].done;
  }

  /// Returns the stream, of `size` streams from `first` on, for a job with these predecessors: the
  /// stream whose last job is a predecessor (the most recent one if there are several), otherwise
  /// the least loaded.
  unsigned choose(unsigned first, unsigned size,
                  std::span<const CudaPoint> predecessors) const noexcept;
  /// Returns whether what comes next in a stream is after `point` anyhow.
  bool implied(unsigned stream_index, CudaPoint point) const noexcept;

  /// Returns the index of an event of point.stream that covers the point, if one was recorded.
  std::optional<unsigned> recorded(CudaPoint point) const noexcept;
  /// Returns the index of the event to record at the end of the stream now.
  unsigned record(unsigned stream_index) noexcept;
  /// That event could not be recorded after all.
  void forget(unsigned stream_index, unsigned record) noexcept {
    streams_[stream_index].records[record] = {};
  }
  /// What comes next in `stream` is after an event of `other`.
  void wait(unsigned stream_index, unsigned other, unsigned record) noexcept;

  /// Appends a job.
  CudaPoint append(unsigned stream_index) noexcept;
  /// Everything in a stream up to this epoch is over.
  void advance(unsigned stream_index, std::uint64_t epoch) noexcept;

 private:
  struct Record {
    std::uint64_t epoch = 0;  ///< 0: none
    CudaFrontier frontier{};
  };
  struct StreamState {
    std::uint64_t tail = 0, done = 0;
    CudaFrontier frontier{};
    std::array<Record, kRecords> records{};
  };
  std::vector<StreamState> streams_;
};

}  // namespace weir::rt
