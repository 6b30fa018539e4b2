// The residency of one device: instances in its memory, and eviction.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "base/threads.hpp"
#include "core/action.hpp"
#include "core/buffer.hpp"

namespace weir::rt {

/// The instances in the memory of one device, within its capacity.
///
/// acquire() grants all instances that the operands of an action need, or none. If memory is short
/// it evicts the least recently used instances that no started action uses; their contents return
/// on their next use. Waiting actions are served in FIFO order, and only the first of them evicts.
/// No call blocks.
class Residency final : private CopySink {
 public:
  /// `retry` is called, with no lock held, for a waiting action that should call acquire() again.
  Residency(Device& device, std::uint16_t memory, std::function<void(Action&)> retry);

  enum class Grant { ready, waiting, refused };

  /// Requests the instances of the action's operands in this memory. On `refused`, `why` has the
  /// reason.
  Grant acquire(Action& action, Outcome& why) noexcept;
  /// Removes the request of a waiting action that will not retry.
  void cancel_request(const Action& action) noexcept;
  /// Makes memory of the program the instance of a new buffer. It stays until free_instance() and
  /// does not count towards the capacity. Throws Error if the device cannot use the memory, or it
  /// overlaps memory adopted earlier.
  void adopt(Buffer& buffer, void* address);
  /// Releases what acquire() granted.
  void release(Action& action) noexcept;
  /// Frees the instance of a buffer that no action uses. Returns false, and does nothing, while the
  /// instance is being evicted or restored.
  [[nodiscard]] bool free_instance(Buffer& buffer) noexcept;

  /// Whether the action waits for memory.
  bool is_waiting(const Action& action) const noexcept;

  std::uint16_t memory() const noexcept { return memory_; }
  std::uint64_t capacity() const noexcept { return capacity_; }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_evicted() const noexcept {
    return bytes_moved_.load(std::memory_order_relaxed);
  }

 private:
  using Buffers = std::vector<Buffer*>;

  Instance& instance_of(const Buffer& buffer) const noexcept {
    return *buffer.find_instance(memory_);
  }
  const Buffers& needs_of(Action& action) WEIR_REQUIRES(mutex_);
  Grant try_acquire(Action& action, const Buffers& needs, Outcome& why) WEIR_REQUIRES(mutex_);
  bool make_room(const Buffers& needs, std::uint64_t missing) WEIR_REQUIRES(mutex_);
  void allocate(const Buffers& needs) WEIR_REQUIRES(mutex_);
  Memory allocation_for(const Buffer& buffer) const WEIR_REQUIRES(mutex_);
  void evict(Buffer& buffer) WEIR_REQUIRES(mutex_);
  void restore(Buffer& buffer) noexcept WEIR_REQUIRES(mutex_);
  void drop(Buffer& buffer) noexcept WEIR_REQUIRES(mutex_);
  void grant(Action& action) noexcept WEIR_REQUIRES(mutex_);
  Grant wait(Action& action) WEIR_REQUIRES(mutex_);
  Outcome too_large(std::uint64_t wanted) const WEIR_REQUIRES(mutex_);
  std::string largest() const WEIR_REQUIRES(mutex_);
  Action* front_to_notify() noexcept WEIR_REQUIRES(mutex_);
  CopyEnd device_end(const Buffer& buffer) const noexcept;
  CopyEnd host_end(const Buffer& buffer) const noexcept;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;

  Device& device_;
  const std::uint16_t memory_;
  const std::uint64_t capacity_;
  const std::function<void(Action&)> retry_;

  mutable sys::Mutex mutex_;
  Buffers present_ WEIR_GUARDED_BY(mutex_);  // instances that occupy this memory
  Buffers adopted_ WEIR_GUARDED_BY(mutex_);  // instances in memory of the program
  Buffers needs_ WEIR_GUARDED_BY(mutex_);    // instances of the requesting action, reused
  std::deque<Action*> waiting_ WEIR_GUARDED_BY(mutex_);
  /// Why a copy failed. Given to the first waiting action, which would otherwise retry forever.
  Outcome copy_failure_ WEIR_GUARDED_BY(mutex_);
  /// The first waiting action was notified and has not retried.
  bool front_notified_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<CopyJob> copies_ WEIR_GUARDED_BY(mutex_);  // to start after unlocking
  std::uint64_t uses_ WEIR_GUARDED_BY(mutex_) = 0;
  /// Bytes that will be free when copies in flight complete.
  std::uint64_t evicting_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
  sys::Atomic<std::uint64_t> used_{0};
  sys::Atomic<std::uint64_t> bytes_moved_{0};
};

}  // namespace weir::rt
