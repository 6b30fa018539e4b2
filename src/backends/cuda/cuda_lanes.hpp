// Which stream of a place a job goes to, and what it must wait for there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::rt {

inline constexpr unsigned kMostCudaLanes = 12;

/// For each lane the highest epoch that is known to be over.
using CudaFrontier = std::array<std::uint64_t, kMostCudaLanes>;

/// The end of a job: lanes run what they have in order, and count it from 1.
struct CudaPoint {
  unsigned lane = 0;
  std::uint64_t epoch = 0;
};

/// What a place knows about its lanes. Makes no calls; one thread.
class CudaLanes {
 public:
  /// Recorded events that a lane keeps for others to wait for.
  static constexpr unsigned kRecords = 4;

  explicit CudaLanes(unsigned count) : lanes_(count) {}

  unsigned count() const noexcept { return static_cast<unsigned>(lanes_.size()); }
  std::uint64_t tail(unsigned lane) const noexcept { return lanes_[lane].tail; }
  std::uint64_t done(unsigned lane) const noexcept { return lanes_[lane].done; }
  const CudaFrontier& frontier(unsigned lane) const noexcept { return lanes_[lane].frontier; }
  bool over(CudaPoint point) const noexcept { return point.epoch <= lanes_[point.lane].done; }

  /// Returns the lane, of `size` from `first` on, for a job with these predecessors: one that ends
  /// with one of them, the one that was handed out last, or else the one that has least to do.
  unsigned choose(unsigned first, unsigned size,
                  std::span<const CudaPoint> predecessors) const noexcept;
  /// Returns whether what comes next in a lane is after `point` anyhow.
  bool implied(unsigned lane, CudaPoint point) const noexcept;

  /// Returns the index of an event of point.lane that covers the point, if one was recorded.
  std::optional<unsigned> recorded(CudaPoint point) const noexcept;
  /// Returns the index of the event to record at the end of the lane now.
  unsigned record(unsigned lane) noexcept;
  /// That event could not be recorded after all.
  void forget(unsigned lane, unsigned record) noexcept { lanes_[lane].records[record] = {}; }
  /// What comes next in `lane` is after an event of `other`.
  void wait(unsigned lane, unsigned other, unsigned record) noexcept;

  /// Appends a job.
  CudaPoint append(unsigned lane) noexcept;
  /// Everything in a lane up to this epoch is over.
  void advance(unsigned lane, std::uint64_t epoch) noexcept;

 private:
  struct Record {
    std::uint64_t epoch = 0;  ///< 0: none
    CudaFrontier frontier{};
  };
  struct Lane {
    std::uint64_t tail = 0, done = 0;
    CudaFrontier frontier{};
    std::array<Record, kRecords> records{};
  };
  std::vector<Lane> lanes_;
};

}  // namespace weir::rt
