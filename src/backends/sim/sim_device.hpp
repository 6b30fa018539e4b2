// A simulated device: real results, modelled time.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "backends/sim/sim_clock.hpp"
#include "backends/sim/sim_faults.hpp"
#include "backends/sim/sim_link.hpp"
#include "backends/sim/sim_model.hpp"
#include "backends/sim/timed_memory.hpp"
#include "backends/sim/virtual_memory.hpp"

namespace weir::rt {

class SimDevice final : public Device {
 public:
  /// `clock` is used in virtual time only. `processors` of the host simulate the cores of the
  /// device.
  SimDevice(std::string name, const SimModel& model, std::vector<unsigned> processors, bool pin,
            std::shared_ptr<SimClock> clock);

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override;
  Memory adopt(void* address, std::size_t bytes) override { return {address, bytes, true}; }
  void release(Memory& memory) noexcept override;
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;
  std::int64_t now_ns() const noexcept override;
  bool drive() noexcept override;
  bool wake_at(std::int64_t at_ns) noexcept override;

 private:
  Outcome start_copy(const CopyJob& job) noexcept;
  void copy_virtually(SimDirection direction, const CopyJob& job) noexcept;
  std::unique_ptr<PlaceDriver> open_cores(const PlaceRequest& request, PlaceFeed& feed);
  std::unique_ptr<PlaceDriver> open_sound_place(const PlaceRequest& request, PlaceFeed& feed);
  Outcome pass_time(const Job& job, std::size_t cores) noexcept;

  DeviceInfo info_;
  const SimModel model_;
  const std::vector<unsigned> processors_;
  const bool pin_;
  const std::shared_ptr<SimClock> clock_;
  std::int64_t channel_free_at_ns_[2] = {0, 0};  // virtual time: guarded by mutex_
  std::uint64_t pooled_bytes_ = 0;               // likewise: released, and kept
  sys::Mutex mutex_;
  const std::unique_ptr<SimFaults> faults_;        // null: no faults
  std::unique_ptr<SimLink> link_;                  // real time
  std::unique_ptr<VirtualMemory> virtual_memory_;  // null: no limit, or real time
  std::unique_ptr<TimedMemory> timed_memory_;      // null: no limit, or virtual time
};

}  // namespace weir::rt
