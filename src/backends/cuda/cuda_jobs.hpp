// The in-flight jobs of a place: taken from the feed and not returned.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/cuda_copies.hpp"
#include "backends/cuda/cuda_stream_order.hpp"

namespace weir::rt {

/// A chunk of a copy; the driver calls the host function that packs it.
struct CudaHostPiece {
  CudaStagedPiece piece;
  CudaContext* context = nullptr;
};

/// An in-flight job, or a free slot.
struct CudaJob {
  Worker worker;
  Job job;
  Outcome outcome;  ///< as known when the job is enqueued
  std::vector<std::uint64_t> waits;
  CudaBlock block;                            ///< of a copy
  std::vector<CudaHostPiece> pieces;          ///< its chunks with the driver, round robin
  std::optional<CudaPieces> remaining;        ///< chunks that are not enqueued
  std::size_t next_piece = 0;                 ///< in `pieces`, of the next chunk
  std::array<CudaPoint, 2> older{}, newer{};  ///< ends of the last two groups of chunks
  bool staging = false;                       ///< more chunks will be enqueued
  bool held = false;                          ///< taken, and waits for a copy that is staging
  CudaJob* next_packed = nullptr;             ///< next job whose chunk the same host function packs
  CUresult packed = CUDA_SUCCESS;             ///< result of the driver for a gathered copy
  bool gathered = false;                      ///< the copy is not enqueued yet
  CudaPoint point;
  std::uint64_t serial = 0;  ///< order in which jobs were appended to streams
  CudaFrontier frontier{};   ///< epochs complete when it is complete
  unsigned consumers = 0;    ///< jobs taken and not enqueued that depend on it
  std::int64_t enqueued_ns = 0;
  CudaEvent start_event, end_event;   ///< of timed jobs
  bool has_times = false;             ///< the events are recorded
  CudaJob* next = nullptr;            ///< in its stream FIFO, or in the free list
  CudaJob* next_in_bucket = nullptr;  ///< in the hash bucket
};

/// A bounded number of in-flight jobs, found by submission id.
class CudaJobs {
 public:
  explicit CudaJobs(std::size_t room);

  std::size_t in_use() const noexcept { return in_use_; }
  bool full() const noexcept { return free_ == nullptr; }
  /// Takes a free slot.
  CudaJob* take() noexcept;
  /// Enters a slot whose job has its submission id.
  void insert(CudaJob& entry) noexcept;
  /// Returns nullptr for jobs that are complete.
  CudaJob* find(std::uint64_t number) const noexcept;
  /// Returns a slot that was entered.
  void release(CudaJob& entry) noexcept;
  /// Returns a slot that was not entered.
  void release_unused(CudaJob& entry) noexcept;

 private:
  static constexpr std::size_t kBuckets = 512;

  CudaJob*& bucket(std::uint64_t number) noexcept { return buckets_[number % kBuckets]; }

  std::vector<std::unique_ptr<CudaJob>> all_;
  std::array<CudaJob*, kBuckets> buckets_{};
  CudaJob* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace weir::rt
