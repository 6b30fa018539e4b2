#include "backends/null/null_device.hpp"

#include "base/threads.hpp"

namespace weir::rt {

NullDevice::NullDevice(std::string name) {
  info_.name = std::move(name);
  info_.backend = "null";
  info_.description = "no device: refuses all work";
}

Memory NullDevice::allocate(std::size_t) {
  fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' has no memory", info_.name);
}

void NullDevice::release(Memory& memory) noexcept { memory = {}; }

bool NullDevice::reaches(const Device*) const noexcept { return false; }

void NullDevice::copy(const CopyJob& job) noexcept {
  const std::int64_t now = now_ns();
  job.sink->copied(job.token,
                   failed_outcome(WEIR_STATUS_UNSUPPORTED, "the null domain copies nothing"), now,
                   now);
}

std::unique_ptr<PlaceDriver> NullDevice::open_place(const PlaceRequest&, PlaceFeed&) {
  fail(WEIR_STATUS_UNSUPPORTED, "domain '{}' has no cores to make a place of", info_.name);
}

std::int64_t NullDevice::now_ns() const noexcept { return sys::now_ns(); }

bool NullDevice::drive() noexcept { return false; }

}  // namespace weir::rt
