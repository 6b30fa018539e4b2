// The link of a simulated device in real time.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "backend/copy_queue.hpp"
#include "backends/sim/sim_faults.hpp"
#include "backends/sim/sim_model.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Delays transfers by their modelled time, one at a time in each direction (in both together with
/// half duplex), on threads that sleep.
class SimLink {
 public:
  /// `faults` may be null.
  SimLink(const std::string& name, const SimModel& model, const SimFaults* faults);
  ~SimLink();

  void submit(SimDirection direction, const CopyJob& job) noexcept;

 private:
  struct Request {
    SimDirection direction;
    CopyJob job;
    std::int64_t submitted_ns;
  };
  /// One direction of the link, or both at half duplex.
  struct Channel {
    CopyQueue<Request> queue;
    std::int64_t free_at_ns = 0;
    std::optional<sys::Thread> thread;
  };

  void stop() noexcept;
  void serve(Channel& channel) noexcept;
  void transfer(Channel& channel, const Request& request) noexcept;

  const SimModel model_;
  const SimFaults* const faults_;
  std::array<Channel, 2> channels_;
};

}  // namespace weir::rt
