// The host as a device: its memory is the program's, its places are teams of pinned threads.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/host_memory.hpp"

namespace weir::rt {

class HostDevice final : public Device {
 public:
  HostDevice(std::string name, const Machine& machine, std::vector<unsigned> processors);

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override { return allocate_host_memory(bytes, info_.name); }
  Memory adopt(void* address, std::size_t bytes) override { return {address, bytes, true}; }
  void release(Memory& memory) noexcept override { release_host_memory(memory); }
  bool reaches(const Device* peer) const noexcept override {
    return peer == nullptr || peer == this;
  }
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;

 private:
  DeviceInfo info_;
  std::vector<unsigned> processors_;
  bool pin_;
};

}  // namespace weir::rt
