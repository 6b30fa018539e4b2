#include "backends/null/null_device.hpp"

namespace weir::rt {

NullDevice::NullDevice(std::string name) {
  info_.name = std::move(name);
  info_.backend = "null";
  info_.description = "no device: refuses all work";
}

Memory NullDevice::allocate(std::size_t) {
  fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' has no memory", info_.name);
}

void NullDevice::copy(const CopyJob& job) noexcept {
  job.fail(failed_outcome(WEIR_STATUS_UNSUPPORTED, "the null domain copies nothing"));
}

std::unique_ptr<PlaceDriver> NullDevice::open_place(const PlaceRequest&, PlaceFeed&) {
  fail(WEIR_STATUS_UNSUPPORTED, "domain '{}' has no cores to make a place of", info_.name);
}

}  // namespace weir::rt
