// The streams of a place.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/cuda_bell.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/cuda_flights.hpp"
#include "backends/cuda/cuda_lanes.hpp"

namespace weir::rt {

/// All of a device, or a green context of some of its multiprocessors.
class CudaPartition {
 public:
  /// `part` is empty for all. Throws Error, {unsupported} naming the place when the device or the
  /// driver cannot be divided.
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

/// What a place does with its streams, called lanes here: some for kernels, two for copies to the
/// device and two for those to the host. Used by one thread, in whose context it is.
class CudaQueues {
 public:
  /// Lanes for copies in one direction: what one copies the other packs meanwhile.
  static constexpr unsigned kCopyLanes = 2;

  /// With the partition's context current. Throws Error.
  CudaQueues(CudaContext& context, const CudaMemory& memory, const CudaPartition& partition,
             unsigned compute_lanes, CudaBell& bell);

  CudaLanes& lanes() noexcept { return lanes_; }
  const CudaLanes& lanes() const noexcept { return lanes_; }
  CUstream stream(unsigned lane) const noexcept { return rails_[lane].stream.get(); }
  /// Chooses a lane for a job.
  unsigned choose(const Job& job, std::span<const CudaPoint> predecessors) const noexcept;

  /// Makes what comes next in a lane wait for these points, and for the clearing of new memory.
  CUresult order(unsigned lane, std::span<const CudaPoint> points) noexcept;
  /// Records an event at the end of a lane, for jobs to come, unless there is one.
  void keep_tail(unsigned lane) noexcept;

  /// Copies of so many bytes through page-locked memory come together.
  static constexpr std::size_t kSmallCopy = 128 << 10;
  static constexpr std::size_t kGathered = kCudaChunk / kSmallCopy;

  /// Pieces of a copy come in groups of so many, of which the driver has two at a time: it blocks
  /// those who give it thousands of commands.
  static constexpr std::size_t kHauled = 16;

  /// Enqueues a copy, through page-locked memory if need be; a small one may only be gathered, and
  /// one that is hauling afterwards has to go on. Throws std::bad_alloc.
  CUresult enqueue_copy(CudaFlight& flight, unsigned lane);
  /// Enqueues more of a copy that is hauling, as far as the device is through with what there is.
  /// Until it hauls no more nothing else may come into the lanes for its direction.
  CUresult go_on(CudaFlight& flight, unsigned lane) noexcept;
  /// Gives the driver the copies that were gathered in a lane: one call of the host packs them all.
  /// Returns them, with what came of each, until the next call.
  std::span<CudaFlight* const> send(unsigned lane) noexcept;
  bool has_gathered(unsigned lane) const noexcept { return rails_[lane].gathered > 0; }
  /// Forgets them: the context is lost.
  void forget_gathered() noexcept;

  /// Lets the device write how far a lane has come, after what is in it.
  CUresult mark(unsigned lane) noexcept;
  /// Jobs in a lane that no mark follows.
  std::uint64_t unmarked(unsigned lane) const noexcept {
    return lanes_.tail(lane) - rails_[lane].marked;
  }
  /// Whether the device has come to the last mark of a lane.
  bool answered(unsigned lane) const noexcept { return seen(lane) >= rails_[lane].marked; }
  /// How far the device says that a lane has come.
  std::uint64_t seen(unsigned lane) const noexcept;

  /// Rings the bell when a lane is through with what is in it, once.
  void ring_after(unsigned lane) noexcept;
  /// Asks the driver whether a lane is still sound. Costs a call.
  CUresult query(unsigned lane) const noexcept;
  /// Waits until the driver needs nothing of this any more.
  void drain() noexcept;

 private:
  struct Rail {
    CudaStream stream;
    std::array<CudaEvent, CudaLanes::kRecords> records;
    CudaEvent begun, ended;                      ///< of a copy that two lanes share
    std::byte* chunk = nullptr;                  ///< page-locked memory of a lane for copies
    std::array<CudaFlight*, kGathered> small{};  ///< copies that the driver does not have yet
    std::size_t gathered = 0;                    ///< how many
    std::uint64_t marked = 0, belled = 0;
    std::uint64_t allocations = 0;  ///< that are clear for what comes next
  };
  bool copies(unsigned lane) const noexcept { return lane >= compute_; }
  unsigned partner(unsigned lane) const noexcept { return compute_ + ((lane - compute_) ^ 1u); }
  CUresult await_memory(unsigned lane) noexcept;
  CUresult wait(unsigned lane, CudaPoint point) noexcept;
  void gather(CudaFlight& flight, unsigned lane) noexcept;
  CUresult stage(CudaHostPiece& piece, CUstream stream) noexcept;
  CUresult haul(CudaFlight& flight, unsigned lane) noexcept;
  static void CUDA_CB pack(void* piece);
  static void CUDA_CB pack_all(void* flight);
  static void CUDA_CB ring(void* queues);

  CudaContext& context_;
  const CudaMemory& memory_;
  const unsigned compute_;
  CudaLanes lanes_;
  CudaPinned chunks_;
  CudaPinned counters_;         ///< one for each lane, in a cache line of its own
  CUdeviceptr counters_there_;  ///< as the device sees them
  std::vector<Rail> rails_;
  CudaBell& bell_;
};

}  // namespace weir::rt
