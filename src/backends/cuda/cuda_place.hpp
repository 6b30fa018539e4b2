// Multiprocessors of a CUDA device that run kernels and copies in the order of their dependences.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/failed_jobs.hpp"
#include "backends/cuda/cuda_bell.hpp"
#include "backends/cuda/cuda_jobs.hpp"
#include "backends/cuda/cuda_kernels.hpp"
#include "backends/cuda/cuda_streams.hpp"

namespace weir::rt {

/// A thread takes jobs before their predecessors complete and enqueues each in a CUDA stream; the
/// device orders them. From then on worker.index of a job is the index of its stream.
///
/// Example: kernels 1 and 2, and kernel 3, which waits for both, on an idle place.
///
///     job  stream  epoch  commands in the stream
///     1    0       1      launch
///     2    1       1      launch
///     3    1       2      wait for an event recorded behind 1 in stream 0, launch, write 2
///
/// 3 takes the stream of 2, its latest predecessor, and needs no wait for it. Its frontier is epoch
/// 1 of stream 0 and epoch 2 of stream 1. Once the thread reads the 2 that the device wrote, it
/// knows all three to be complete, without a mark in stream 0, and returns 1, 2 and 3 to the feed.
class CudaPlace final : public PlaceDriver {
 public:
  /// Throws Error, {unsupported} when the device cannot be divided in this way.
  CudaPlace(const std::string& name, CudaContext& context, const CudaMemory& memory,
            CudaKernels& kernels, std::vector<CUdevResource> part, unsigned stream_count,
            PlaceFeed& feed);
  ~CudaPlace() override;

  void wake() noexcept override { bell_.notify(); }

 private:
  /// The in-flight jobs of a stream, in its order.
  struct StreamFifo {
    CudaJob *first = nullptr, *last = nullptr;
  };
  /// An event that completed at a known host time.
  struct ClockReference {
    CudaEvent event;
    std::int64_t ns = 0;
  };

  void release_streams() noexcept;
  void serve() noexcept;

  // Taking and enqueueing.
  bool take_jobs() noexcept;
  bool take_one(CudaJob& entry) noexcept;
  void take_held() noexcept;
  void start_jobs() noexcept;
  void start(CudaJob& entry, bool last) noexcept;
  bool waits_for_staged_copy(const CudaJob& entry) const noexcept;
  bool continue_copies() noexcept;
  void append(CudaJob& entry, unsigned stream_index) noexcept;
  bool gather(CudaJob& entry) noexcept;
  void keep_tail(unsigned stream_index, bool last) noexcept;
  void send(unsigned stream_index) noexcept;
  void mark(unsigned stream_index) noexcept;
  void enqueue(CudaJob& entry, unsigned stream_index) noexcept;
  Outcome enqueue_work(CudaJob& entry, unsigned stream_index) noexcept;
  Outcome enqueue_copy(CudaJob& entry, unsigned stream_index) noexcept;
  const CudaKernels::Code& code_of(const KernelSource& source) noexcept;
  Outcome launch(const Job& job, unsigned stream_index) noexcept;
  Outcome call(Job& job, unsigned stream_index) noexcept;
  Outcome to_outcome(CUresult code, const char* what) noexcept;
  const char* oldest_name(const char* otherwise) const noexcept;

  // Times.
  bool stamp(CudaEvent& event, unsigned stream_index) noexcept;
  std::optional<unsigned> empty_stream(unsigned but) const noexcept;
  void calibrate_clock(unsigned stream_index) noexcept;
  std::int64_t time_of(const CudaEvent& event) const noexcept;
  void set_times(CudaJob& entry) const noexcept;

  // Returning jobs.
  bool collect() noexcept;
  bool read_marks() noexcept;
  CudaJob* oldest(bool over_only) const noexcept;
  void remove(const CudaJob& entry) noexcept;
  void finish(CudaJob& entry, Outcome outcome) noexcept;
  bool fail_all() noexcept;

  // Waiting.
  void idle() noexcept;
  bool has_work() const noexcept;
  void watch() noexcept;

  CudaContext& context_;
  CudaKernels& kernels_;
  PlaceFeed& feed_;
  const std::int64_t spin_ns_;
  CudaPartition partition_;
  std::optional<CudaStreams> streams_;
  std::optional<ClockReference> reference_;
  CudaJobs jobs_;
  std::vector<StreamFifo> fifos_;
  std::vector<CudaJob*> taken_;  ///< taken and not enqueued
  std::vector<CudaJob*> held_;   ///< likewise, until a staged copy is enqueued completely
  std::array<CudaJob*, 2> staged_copies_{};  ///< the one to the device, and the one to the host
  std::uint64_t appended_ = 0;               ///< jobs
  std::vector<CudaPoint> points_;            ///< of the predecessors of the current job
  /// Code found by launches: it stays valid, and finding it here takes no lock while others
  /// compile.
  std::array<std::pair<const KernelSource*, const CudaKernels::Code*>, 16> found_{};
  FailedJobs failed_;
  bool feed_empty_ = false;  ///< the last feed_.next() returned false
  std::int64_t park_ns_ = 0;
  CudaBell bell_;
  sys::Atomic<bool> stopping_{false};
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
