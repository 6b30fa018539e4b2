// The link of a simulated card in real time.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "backends/sim/sim_faults.hpp"
#include "backends/sim/sim_model.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Makes transfers take the time the model says, one after the other in each direction (in both
/// together at half duplex), on threads that sleep that time away.
class SimLink {
 public:
  /// `faults` may be null.
  SimLink(const std::string& name, const SimModel& model, const SimFaults* faults);
  ~SimLink();

  void submit(SimDirection direction, const CopyJob& job) noexcept;

 private:
  struct Request {
    CopyJob job;
    std::int64_t submitted_ns;
  };
  /// One direction of the link, or both at half duplex.
  struct Lane {
    sys::Mutex mutex;
    sys::Condition changed;
    std::deque<Request> queue WEIR_GUARDED_BY(mutex);
    bool stopping WEIR_GUARDED_BY(mutex) = false;
    std::int64_t free_at_ns = 0;
    std::optional<sys::Thread> thread;
  };

  void stop() noexcept;
  void serve(Lane& lane) noexcept;
  void transfer(Lane& lane, const Request& request) noexcept;

  const SimModel model_;
  const SimFaults* const faults_;
  std::array<Lane, 2> lanes_;
};

}  // namespace weir::rt
