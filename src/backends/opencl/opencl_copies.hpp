// Copies by an OpenCL queue.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_library.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// The buffers at the ends of a copy; null: host memory. At least one end is a buffer.
struct OpenClEnds {
  cl_mem source = nullptr, target = nullptr;
};

/// Returns the number of commands of a copy: one for each plane; within one buffer one for each
/// row, because drivers report overlaps of planes that do not overlap.
std::uint64_t count_opencl_parts(const Region& region, const OpenClEnds& ends) noexcept;
/// Enqueues the command with that index, unordered with the others. Allocates nothing; the caller
/// releases the event.
cl_int enqueue_opencl_part(cl_command_queue queue, const CopyEnd& source, const CopyEnd& target,
                           const OpenClEnds& ends, std::uint64_t part,
                           std::span<const cl_event> waits, cl_event* event) noexcept;

/// Turns copies into commands, and notifies the sink of a copy when all its commands are complete.
class OpenClCopies {
 public:
  OpenClCopies(const std::string& owner, OpenClQueue queue);
  OpenClCopies(const OpenClCopies&) = delete;
  OpenClCopies& operator=(const OpenClCopies&) = delete;
  ~OpenClCopies();

  /// Enqueues filling a buffer with zeros, ordered before later copies of start(). Does not wait;
  /// order_after_clear() orders other queues. Throws Error. Any thread.
  void clear(cl_mem buffer, std::size_t bytes);
  /// The number of clear() calls. Commands that use a buffer cleared before this was read must
  /// follow order_after_clear(). Any thread.
  std::uint64_t clears() const noexcept { return clears_.load(std::memory_order_acquire); }
  /// Makes later commands of a queue wait until all buffers are clear. Fails when clearing one has
  /// failed. Any thread.
  cl_int order_after_clear(cl_command_queue queue) const noexcept;
  /// Waits until buffers are clear. Any thread.
  void wait_until_cleared() const noexcept;
  /// Starts a copy and returns at once; the sink gets failures. Any thread.
  void start(const CopyJob& job, const OpenClEnds& ends) noexcept;

 private:
  /// A copy in flight.
  struct CopyInFlight;

  CopyInFlight* take();
  void give(CopyInFlight& in_flight) noexcept;
  void count_complete(CopyInFlight& in_flight, std::uint64_t commands) noexcept;
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* in_flight);

  const std::string owner_;
  const OpenClQueue queue_;
  sys::Atomic<std::int64_t> last_end_ns_{0};  ///< of a copy
  sys::Mutex mutex_;
  std::vector<std::unique_ptr<CopyInFlight>> copies_ WEIR_GUARDED_BY(mutex_);
  CopyInFlight* free_ WEIR_GUARDED_BY(mutex_) = nullptr;
  mutable sys::Mutex clearing_;
  /// The event of the last clear(), which waits for the earlier ones.
  OpenClEvent clear_ WEIR_GUARDED_BY(clearing_);
  sys::Atomic<std::uint64_t> clears_{0};
};

}  // namespace weir::rt
