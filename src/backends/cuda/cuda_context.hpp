// The primary context of a device, and whether it still works.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "backends/cuda/cuda_library.hpp"
#include "backends/cuda/cuda_packers.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Shared by all users of a device. A context that breaks stays broken: enqueued work never
/// completes, and the driver makes no callbacks.
class CudaContext {
 public:
  /// Throws Error, {device_error} naming the remedy when the context of this process is broken.
  CudaContext(std::string domain, CUdevice device);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  CUcontext get() const noexcept { return context_; }
  CUdevice device() const noexcept { return device_; }
  const std::string& domain() const noexcept { return domain_; }

  bool lost() const noexcept { return lost_.load(std::memory_order_seq_cst); }
  /// Records the result of a call while `during` was in flight. Returns whether it breaks the
  /// context.
  bool note_result(CUresult code, const char* during) noexcept;
  /// The outcome of all jobs once the context is lost.
  Outcome lost_outcome() const noexcept;
  /// The outcome of a failed call that does not break the context, "WHAT: CUDA_ERROR_...".
  Outcome failed_call(const char* what, CUresult code) const noexcept;

  /// Host functions that the driver calls run between enter() and leave(). After lost() has become
  /// true they must return at once; enter() returns whether they may continue.
  bool enter() noexcept;
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_seq_cst); }
  /// Starts the packers with a number of helper threads, before the first pack(). Throws Error.
  void start_packers(unsigned helpers) { packers_.emplace(helpers, domain_ + "-pack"); }
  CudaPackers& packers() noexcept { return *packers_; }

  /// Waits until no host function is between enter() and leave(). Only once the context is lost.
  void wait_for_callbacks() const noexcept;

 private:
  const std::string domain_;
  const CUdevice device_;
  CUcontext context_ = nullptr;
  mutable sys::Mutex mutex_;
  std::string cause_ WEIR_GUARDED_BY(mutex_);  ///< why it is lost
  sys::Atomic<bool> lost_{false};
  sys::Atomic<std::uint32_t> inside_{0};
  std::optional<CudaPackers> packers_;
};

/// Page-locks host memory for all devices. Returns false when it is already locked, cannot be
/// locked, or is so small that it shares pages with other memory that may be locked and unlocked.
/// Any thread.
bool lock_cuda_host(const CudaContext& context, void* address, std::size_t bytes) noexcept;
void unlock_cuda_host(const CudaContext& context, void* address) noexcept;

/// Allocates zero-filled memory of a device.
class CudaMemory {
 public:
  /// Throws Error.
  explicit CudaMemory(CudaContext& context);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory();

  /// Throws Error{out_of_memory} naming the requested and the free bytes. Does not wait until the
  /// device has cleared the memory: see order_after_clear(). Any thread.
  Memory allocate(std::size_t bytes);
  /// The number of allocations so far. Commands that use memory allocated before this was read must
  /// follow order_after_clear(). Any thread.
  std::uint64_t allocations() const noexcept {
    return allocations_.load(std::memory_order_acquire);
  }
  /// Makes later commands of a stream of any device wait until all allocated memory is clear. Any
  /// thread.
  CUresult order_after_clear(CUstream stream) const noexcept;
  /// Waits until all allocated memory is clear. Returns allocations() as read before the wait, 0 on
  /// failure.
  std::uint64_t wait_until_cleared() const noexcept;
  /// Adopts an allocation of the program, or a part of one. Throws Error when it is not memory of
  /// this device.
  Memory adopt(void* address, std::size_t bytes);
  void release(Memory& memory) noexcept;
  /// Enables access of another device to the memory, unless it is enabled. Any thread.
  void enable_peer_access(CUdevice peer) noexcept;

 private:
  CudaContext& context_;
  CudaPool pool_;
  CudaStream stream_;
  CudaEvent clear_;  ///< recorded behind each allocation
  sys::Atomic<std::uint64_t> allocations_{0};
  sys::Atomic<std::uint64_t> open_{0};  ///< a bit for each device below 64 with access
};

/// Returns how much of a device's memory is free. Throws Error.
std::size_t free_cuda_memory(const CudaContext& context);

}  // namespace weir::rt
