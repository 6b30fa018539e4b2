// Chooses the CUDA stream of a job, and which events the stream must wait for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::rt {

inline constexpr unsigned kMaxCudaStreams = 12;

/// For each stream the highest epoch known to be complete.
using CudaFrontier = std::array<std::uint64_t, kMaxCudaStreams>;

/// The end of a job: a stream runs its jobs in order and numbers them from 1 (epoch).
struct CudaPoint {
  unsigned stream = 0;
  std::uint64_t epoch = 0;
};

/// The order of jobs in the streams of a place. Makes no driver calls; one thread.
class CudaStreamOrder {
 public:
  /// Recorded events that a stream keeps so that other streams can wait for them.
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
  /// Returns whether later jobs of a stream follow `point` without a wait.
  bool implied(unsigned stream_index, CudaPoint point) const noexcept;

  /// Returns the index of an event of point.stream that covers the point, if one was recorded.
  std::optional<unsigned> recorded(CudaPoint point) const noexcept;
  /// Returns the index of the event to record at the end of the stream now.
  unsigned record(unsigned stream_index) noexcept;
  /// Withdraws a record(): the event could not be recorded.
  void forget(unsigned stream_index, unsigned record) noexcept {
    streams_[stream_index].records[record] = {};
  }
  /// Notes that later jobs of `stream_index` follow an event of `other`.
  void wait(unsigned stream_index, unsigned other, unsigned record) noexcept;

  /// Appends a job.
  CudaPoint append(unsigned stream_index) noexcept;
  /// Notes that all jobs of a stream up to this epoch are complete.
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
