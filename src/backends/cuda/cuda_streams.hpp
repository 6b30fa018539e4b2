// The streams of a place.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/cuda_bell.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/cuda_jobs.hpp"
#include "backends/cuda/cuda_stream_order.hpp"

namespace weir::rt {

/// A whole device, or a green context of some of its multiprocessors.
class CudaPartition {
 public:
  /// `part` is empty for the whole device. Throws Error, {unsupported} naming the place when the
  /// device or the driver does not support the division.
  CudaPartition(const std::string& place, const CudaContext& whole,
                std::vector<CUdevResource> part);

  CUcontext context() const noexcept { return context_; }
  /// Multiprocessors.
  unsigned processors() const noexcept { return processors_; }
  CudaStream make_stream() const;

 private:
  CudaGreenContext green_;
  CUcontext context_ = nullptr;
  unsigned processors_;
};

/// The CUDA streams of a place: some for kernels, two for copies to the device and two for copies
/// to the host. Used by one thread, with the context of the place current.
class CudaStreams {
 public:
  /// Streams for copies in one direction: one copies while the chunk of the other is packed.
  static constexpr unsigned kCopyStreams = 2;

  /// With the partition's context current. Throws Error.
  CudaStreams(CudaContext& context, const CudaMemory& memory, const CudaPartition& partition,
              unsigned compute_streams, CudaBell& bell);

  CudaStreamOrder& order_state() noexcept { return order_; }
  const CudaStreamOrder& order_state() const noexcept { return order_; }
  CUstream stream(unsigned stream_index) const noexcept {
    return streams_[stream_index].stream.get();
  }
  /// Chooses a stream for a job.
  unsigned choose(const Job& job, std::span<const CudaPoint> predecessors) const noexcept;

  /// Makes later commands of a stream wait for these points, and for the clearing of new memory.
  CUresult order(unsigned stream_index, std::span<const CudaPoint> points) noexcept;
  /// Records an event at the end of a stream for later jobs, unless one is recorded there.
  void keep_tail(unsigned stream_index) noexcept;

  /// Staged copies of up to kSmallCopy bytes are gathered, up to kGathered of them.
  static constexpr std::size_t kSmallCopy = 128 << 10;
  static constexpr std::size_t kGathered = kCudaChunk / kSmallCopy;

  /// Chunks of a staged copy are enqueued in groups of this size, two groups at a time: the driver
  /// blocks a thread that enqueues thousands of commands.
  static constexpr std::size_t kStagingGroup = 16;

  /// Enqueues a copy, staged if its host memory is pageable. A small copy may only be gathered
  /// until send(); if entry.staging is set afterwards, continue_copy() must follow. Throws
  /// std::bad_alloc.
  CUresult enqueue_copy(CudaJob& entry, unsigned stream_index);
  /// Enqueues further chunks of a staged copy, as far as the device has completed earlier ones.
  /// Until the copy is enqueued completely nothing else may enter the streams of its direction.
  CUresult continue_copy(CudaJob& entry, unsigned stream_index) noexcept;
  /// Enqueues the copies that were gathered in a stream: one host function packs them all. Returns
  /// them, with the result in `packed`; valid until the next call.
  std::span<CudaJob* const> send(unsigned stream_index) noexcept;
  bool has_gathered(unsigned stream_index) const noexcept {
    return streams_[stream_index].gathered > 0;
  }
  /// Drops gathered copies: the context is lost.
  void forget_gathered() noexcept;

  /// Enqueues a mark: the device writes the last epoch of the stream when its jobs are complete.
  CUresult mark(unsigned stream_index) noexcept;
  /// Number of jobs in a stream after the last mark.
  std::uint64_t unmarked(unsigned stream_index) const noexcept {
    return order_.tail(stream_index) - streams_[stream_index].marked;
  }
  /// Whether the device has written the last mark of a stream.
  bool reached_mark(unsigned stream_index) const noexcept {
    return seen(stream_index) >= streams_[stream_index].marked;
  }
  /// The last epoch that the device has written for a stream.
  std::uint64_t seen(unsigned stream_index) const noexcept;

  /// Notifies the bell once, when the current jobs of a stream are complete.
  void notify_after(unsigned stream_index) noexcept;
  /// Queries the driver for errors of a stream. Costs a driver call.
  CUresult query(unsigned stream_index) const noexcept;
  /// Waits until the driver no longer uses this object.
  void drain() noexcept;

 private:
  struct StreamState {
    CudaStream stream;
    std::array<CudaEvent, CudaStreamOrder::kRecords> records;
    CudaEvent begun, ended;                   ///< for a copy in two streams
    std::byte* chunk = nullptr;               ///< page-locked staging buffer
    std::array<CudaJob*, kGathered> small{};  ///< gathered copies
    std::size_t gathered = 0;                 ///< how many
    std::uint64_t marked = 0, notify_point = 0;
    std::uint64_t allocations = 0;  ///< that later commands of the stream may use
  };
  bool copies(unsigned stream_index) const noexcept { return stream_index >= compute_count_; }
  unsigned partner(unsigned stream_index) const noexcept {
    return compute_count_ + ((stream_index - compute_count_) ^ 1u);
  }
  CUresult await_memory(unsigned stream_index) noexcept;
  CUresult wait(unsigned stream_index, CudaPoint point) noexcept;
  void gather(CudaJob& entry, unsigned stream_index) noexcept;
  CUresult stage(CudaHostPiece& piece, CUstream stream) noexcept;
  CUresult stage_more(CudaJob& entry, unsigned stream_index) noexcept;
  static void CUDA_CB pack(void* piece);
  static void CUDA_CB pack_all(void* entry);
  static void CUDA_CB ring(void* queues);

  CudaContext& context_;
  const CudaMemory& memory_;
  const unsigned compute_count_;
  CudaStreamOrder order_;
  CudaPinned chunks_;
  CudaPinned counters_;         ///< one for each stream, in its own cache line
  CUdeviceptr counters_there_;  ///< their device address
  std::vector<StreamState> streams_;
  CudaBell& bell_;
};

}  // namespace weir::rt
