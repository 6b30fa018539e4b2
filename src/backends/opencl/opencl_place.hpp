// Compute units of an OpenCL device that run native kernels.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "backends/opencl/opencl_programs.hpp"
#include "base/parking.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// A thread takes jobs and enqueues them as native kernels, at most one for each unit. Parallel
/// kernels get a team of one.
class OpenClPlace final : public PlaceDriver {
 public:
  /// Throws Error, {unsupported} when the device cannot be divided so.
  OpenClPlace(const PlaceRequest& request, const OpenClDeviceInfo& device, PlaceFeed& feed);
  ~OpenClPlace() override;

  void wake() noexcept override { parking_.unpark_one(); }

 private:
  /// A job that the driver has, or room for one.
  struct Slot {
    enum State : std::uint32_t { empty, under_way, over };
    OpenClPlace* place = nullptr;
    Worker worker;
    Job job;
    Outcome outcome;
    cl_event event = nullptr;
    sys::Atomic<std::uint32_t> state{empty};
  };

  void serve() noexcept;
  bool serve(Slot& slot) noexcept;
  void start(Slot& slot) noexcept;
  void idle() noexcept;
  bool stirring() const noexcept;
  static void CL_CALLBACK run(void* argument);
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* slot);
  void end(Slot& slot, cl_int code) noexcept;

  PlaceFeed& feed_;
  OpenClSubDevice part_;  ///< empty: all of the device
  OpenClContext context_;
  OpenClQueue queue_;
  std::optional<OpenClPrograms> programs_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Parking parking_;
  sys::Atomic<bool> stopping_{false};
  sys::Atomic<std::uint32_t> callers_{0};  ///< threads of the driver that have not left end()
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
