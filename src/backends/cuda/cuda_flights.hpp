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
#include "backends/cuda/cuda_lanes.hpp"

namespace weir::rt {

/// A piece of a copy whose packing the driver calls.
struct CudaHostPiece {
  CudaStagedPiece piece;
  CudaContext* context = nullptr;
};

/// One job, or room for one.
struct CudaFlight {
  Worker worker;
  Job job;
  Outcome outcome;  ///< as far as it is known when the job is enqueued
  std::vector<std::uint64_t> waits;
  CudaBlock block;                            ///< a copy
  std::vector<CudaHostPiece> pieces;          ///< of it that the driver has, in turn
  std::optional<CudaPieces> left;             ///< those that it does not have
  std::size_t turn = 0;                       ///< of the next one
  std::array<CudaPoint, 2> older{}, newer{};  ///< ends of the last two groups of pieces
  bool hauling = false;                       ///< more pieces are to come
  bool held = false;                          ///< taken, but behind such a copy
  CudaFlight* next_packed = nullptr;          ///< whose pieces the same call packs
  CUresult packed = CUDA_SUCCESS;  ///< what the driver said to a copy that others came with
  bool gathered = false;           ///< the driver does not have the copy yet
  CudaPoint point;
  std::uint64_t serial = 0;  ///< in the order in which jobs came to their lanes
  CudaFrontier frontier{};   ///< what is over when it is
  unsigned consumers = 0;    ///< jobs taken, but not enqueued, that wait for it
  std::int64_t enqueued_ns = 0;
  CudaEvent began, ended;                ///< of timed jobs
  bool stamped = false;                  ///< they are recorded
  CudaFlight* next = nullptr;            ///< in its lane, or among the free
  CudaFlight* next_of_number = nullptr;  ///< in its bucket
};

/// A bounded number of flights, found by the numbers of their jobs.
class CudaFlights {
 public:
  explicit CudaFlights(std::size_t room);

  std::size_t in_use() const noexcept { return in_use_; }
  bool full() const noexcept { return free_ == nullptr; }
  /// Takes a free one.
  CudaFlight* take() noexcept;
  /// Its job has its number now.
  void enter(CudaFlight& flight) noexcept;
  /// Returns nullptr for numbers of jobs that are over.
  CudaFlight* find(std::uint64_t number) const noexcept;
  /// Gives one back that was entered.
  void give(CudaFlight& flight) noexcept;
  /// Gives one back that was not.
  void give_unused(CudaFlight& flight) noexcept;

 private:
  static constexpr std::size_t kBuckets = 512;

  CudaFlight*& bucket(std::uint64_t number) noexcept { return buckets_[number % kBuckets]; }

  std::vector<std::unique_ptr<CudaFlight>> all_;
  std::array<CudaFlight*, kBuckets> buckets_{};
  CudaFlight* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace weir::rt
