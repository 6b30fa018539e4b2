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

/// Which end of a copy is a buffer: the target is written, or the source is read.
enum class OpenClDirection { write, read };

/// Enqueues the copy of one plane between a buffer and host memory. Allocates nothing; the event is
/// the caller's to release.
cl_int enqueue_opencl_plane(cl_command_queue queue, const CopyEnd& source, const CopyEnd& target,
                            cl_mem buffer, OpenClDirection direction, std::size_t plane,
                            std::span<const cl_event> waits, cl_event* event) noexcept;

/// Turns copies between a buffer and host memory into commands, one for each plane, and tells their
/// sinks when all are complete.
class OpenClCopies {
 public:
  OpenClCopies(const std::string& owner, OpenClQueue queue);
  OpenClCopies(const OpenClCopies&) = delete;
  OpenClCopies& operator=(const OpenClCopies&) = delete;
  ~OpenClCopies();

  /// Fills a buffer with zeros, and waits. Throws Error.
  void clear(cl_mem buffer, std::size_t bytes) const;
  /// Writes or reads a buffer, which is the job's target or source. Returns at once; failures go to
  /// the sink. Any thread.
  void start(const CopyJob& job, cl_mem buffer, OpenClDirection direction) noexcept;

 private:
  /// A copy that is under way.
  struct Flight;

  Flight* take();
  void give(Flight& flight) noexcept;
  void settle(Flight& flight, std::uint32_t commands) noexcept;
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* flight);

  const std::string owner_;
  const OpenClQueue queue_;
  std::int64_t clock_offset_ns_ = 0;  ///< of the host's clock against the device's
  sys::Mutex mutex_;
  std::vector<std::unique_ptr<Flight>> flights_;
  Flight* free_ = nullptr;
};

}  // namespace weir::rt
