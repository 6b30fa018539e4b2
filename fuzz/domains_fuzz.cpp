// Domain specifications: "host,sim:cores=2,gbps=6", opened on a machine of four cores.
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runtime/backends.hpp"
#include "target.hpp"

namespace {

weir::rt::Machine small_machine() {
  weir::rt::Machine machine;
  for (unsigned i = 0; i < 4; ++i) {
    machine.cores.push_back({.processor = 2 * i, .siblings = {2 * i, 2 * i + 1}});
  }
  machine.processor = "small machine";
  machine.own_cores = machine.cores.size();
  machine.hardware_threads = 8;
  machine.memory_bytes = std::uint64_t{1} << 30;
  machine.real = false;
  return machine;
}

void open(std::string_view specification) {
  static const weir::rt::Machine machine = small_machine();
  auto backends = weir::rt::make_backends();
  const auto devices = weir::rt::open_devices(specification, machine, backends);
  weir::fuzz::require(!devices.empty(), "a specification that is accepted has domains");
  for (const auto& device : devices) {
    const weir::rt::DeviceInfo& info = device->info();
    weir::fuzz::require(!info.name.empty() && !info.description.empty(), "a domain is described");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // It comes as a C string.
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string_view specification = text.c_str();
  try {
    open(specification);
  } catch (const weir::rt::Error& error) {
    const weir_status status = error.status();
    weir::fuzz::require(status == WEIR_STATUS_INVALID_ARGUMENT || status == WEIR_STATUS_NOT_FOUND ||
                            status == WEIR_STATUS_UNAVAILABLE,  // of threads, for many devices
                        "a bad specification is the caller's mistake");
    weir::fuzz::require(*error.what() != '\0', "a refusal has a message");
    ++weir::fuzz::refused;
  }
  for (const std::string_view word : weir::rt::split(specification, ',')) {
    const auto bytes = weir::rt::parse_size(word);
    weir::fuzz::require(!bytes || *bytes <= std::uint64_t{1} << 62, "a size is within its limit");
  }
  return 0;
}
