// Copies by an OpenCL queue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_library.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Turns copies between a buffer and host memory into commands, one for each plane, and tells their
/// sinks when all are complete.
class OpenClCopies {
 public:
  enum class Direction { write, read };

  OpenClCopies(const std::string& owner, OpenClQueue queue);
  OpenClCopies(const OpenClCopies&) = delete;
  OpenClCopies& operator=(const OpenClCopies&) = delete;
  ~OpenClCopies();

  /// Writes or reads a buffer, which is the job's target or source. Returns at once; failures go to
  /// the sink. Any thread.
  void start(const CopyJob& job, cl_mem buffer, Direction direction) noexcept;

 private:
  /// A copy that is under way.
  struct Flight;

  Flight* take();
  void give(Flight& flight) noexcept;
  void settle(Flight& flight, std::uint32_t commands) noexcept;
  cl_int enqueue_plane(const CopyJob& job, cl_mem buffer, Direction direction, std::size_t plane,
                       cl_event* event) const noexcept;
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* flight);

  const std::string owner_;
  const OpenClQueue queue_;
  std::int64_t clock_offset_ns_ = 0;  ///< of the host's clock against the device's
  sys::Mutex mutex_;
  std::vector<std::unique_ptr<Flight>> flights_;
  Flight* free_ = nullptr;
};

}  // namespace weir::rt
