// A device that is there and can do nothing.
#pragma once

#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

class NullDevice final : public Device {
 public:
  explicit NullDevice(std::string name);

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override;
  void release(Memory& memory) noexcept override { memory = {}; }
  bool reaches(const Device*) const noexcept override { return false; }
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;

 private:
  DeviceInfo info_;
};

}  // namespace weir::rt
