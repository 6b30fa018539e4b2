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
#include "backends/cuda/cuda_flights.hpp"
#include "backends/cuda/cuda_kernels.hpp"
#include "backends/cuda/cuda_queues.hpp"

namespace weir::rt {

/// A thread takes jobs before those that they wait for are over, and enqueues them in a lane each;
/// the device orders them. worker.index of a job is its lane, from when it is enqueued.
class CudaPlace final : public PlaceDriver {
 public:
  /// Throws Error, {unsupported} when the device cannot be divided so.
  CudaPlace(const std::string& name, CudaContext& context, const CudaMemory& memory,
            CudaKernels& kernels, std::vector<CUdevResource> part, unsigned lanes, PlaceFeed& feed);
  ~CudaPlace() override;

  void wake() noexcept override { bell_.ring(); }

 private:
  /// Jobs of a lane that are not over, in its order.
  struct Train {
    CudaFlight *first = nullptr, *last = nullptr;
  };
  /// An event that was over at a known time of the host.
  struct Reference {
    CudaEvent event;
    std::int64_t ns = 0;
  };

  void release_queues() noexcept;
  void serve() noexcept;

  // Taking and enqueueing.
  bool take_jobs() noexcept;
  bool take_one(CudaFlight& flight) noexcept;
  void take_held() noexcept;
  void start_jobs() noexcept;
  void start(CudaFlight& flight, bool last) noexcept;
  bool waits_for_haul(const CudaFlight& flight) const noexcept;
  bool go_on() noexcept;
  void append(CudaFlight& flight, unsigned lane) noexcept;
  bool gather(CudaFlight& flight) noexcept;
  void keep_tail(unsigned lane, bool last) noexcept;
  void send(unsigned lane) noexcept;
  void mark(unsigned lane) noexcept;
  void enqueue(CudaFlight& flight, unsigned lane) noexcept;
  Outcome enqueue_work(CudaFlight& flight, unsigned lane) noexcept;
  Outcome enqueue_copy(CudaFlight& flight, unsigned lane) noexcept;
  const CudaKernels::Code& code_of(const KernelSource& source) noexcept;
  Outcome launch(const Job& job, unsigned lane) noexcept;
  Outcome call(Job& job, unsigned lane) noexcept;
  Outcome judge(CUresult code, const char* what) noexcept;
  const char* oldest_name(const char* otherwise) const noexcept;

  // Times.
  bool stamp(CudaEvent& event, unsigned lane) noexcept;
  std::optional<unsigned> empty_lane(unsigned but) const noexcept;
  void refer(unsigned lane) noexcept;
  std::int64_t time_of(const CudaEvent& event) const noexcept;
  void set_times(CudaFlight& flight) const noexcept;

  // Handing back.
  bool collect() noexcept;
  bool read_marks() noexcept;
  CudaFlight* oldest(bool over_only) const noexcept;
  void finish(CudaFlight& flight, Outcome outcome) noexcept;
  bool fail_all() noexcept;

  // Waiting.
  void idle() noexcept;
  bool stirring() const noexcept;
  void watch() noexcept;

  CudaContext& context_;
  CudaKernels& kernels_;
  PlaceFeed& feed_;
  const std::int64_t spin_ns_;
  CudaPartition partition_;
  std::optional<CudaQueues> queues_;
  std::optional<Reference> reference_;
  CudaFlights flights_;
  std::vector<Train> trains_;
  std::vector<CudaFlight*> taken_;      ///< and not enqueued
  std::vector<CudaFlight*> held_;       ///< likewise, until a copy has been enqueued to its end
  std::array<CudaFlight*, 2> hauls_{};  ///< such a copy to the device, and one from there
  std::uint64_t appended_ = 0;          ///< jobs
  std::vector<CudaPoint> points_;       ///< of the predecessors of the job at hand
  /// Code that launches have found: it stays, and others may be compiling.
  std::array<std::pair<const KernelSource*, const CudaKernels::Code*>, 16> found_{};
  FailedJobs failed_;
  bool dry_ = false;  ///< the feed had no more when it was asked last
  std::int64_t nap_ns_ = 0;
  CudaBell bell_;
  sys::Atomic<bool> stopping_{false};
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
