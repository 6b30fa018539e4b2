// The jobs that a place has taken and not handed back.
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

/// A piece of a copy whose packing the driver calls.
struct CudaHostPiece {
  CudaStagedPiece piece;
  CudaContext* context = nullptr;
};

/// One job, or room for one.
struct CudaJob {
  Worker worker;
  Job job;
  Outcome outcome;  ///< as far as it is known when the job is enqueued
  std::vector<std::uint64_t> waits;
  CudaBlock block;                            ///< a copy
  std::vector<CudaHostPiece> pieces;          ///< of it that the driver has, in turn
  std::optional<CudaPieces> remaining;        ///< those that it does not have
  std::size_t next_piece = 0;                 ///< of the next one
  std::array<CudaPoint, 2> older{}, newer{};  ///< ends of the last two groups of pieces
  bool staging = false;                       ///< more pieces are to come
  bool held = false;                          ///< taken, but behind such a copy
  CudaJob* next_packed = nullptr;             ///< whose pieces the same call packs
  CUresult packed = CUDA_SUCCESS;  ///< what the driver said to a copy that others came with
  bool gathered = false;           ///< the driver does not have the copy yet
  CudaPoint point;
  std::uint64_t serial = 0;  ///< in the order in which jobs came to their streams
  CudaFrontier frontier{};   ///< what is over when it is
  unsigned consumers = 0;    ///< jobs taken, but not enqueued, that wait for it
  std::int64_t enqueued_ns = 0;
  CudaEvent start_event, end_event;   ///< of timed jobs
  bool has_times = false;             ///< they are recorded
  CudaJob* next = nullptr;            ///< in its stream, or among the free
  CudaJob* next_in_bucket = nullptr;  ///< in its bucket
};

/// A bounded number of flights, found by the numbers of their jobs.
class CudaJobs {
 public:
  explicit CudaJobs(std::size_t room);

  std::size_t in_use() const noexcept { return in_use_; }
  bool full() const noexcept { return free_ == nullptr; }
  /// Takes a free one.
  CudaJob* take() noexcept;
  /// Its job has its number now.
  void insert(CudaJob& entry) noexcept;
  /// Returns nullptr for numbers of jobs that are over.
  CudaJob* find(std::uint64_t number) const noexcept;
  /// Gives one back that was entered.
  void release(CudaJob& entry) noexcept;
  /// Gives one back that was not.
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
