// The one place that names the backends, and how `--domains` is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "net/port.hpp"

namespace weir::rt {

/// Returns a new backend of every kind. `port` is the program's in its fabric, null: it is in none.
std::vector<std::unique_ptr<Backend>> make_backends(Port* port = nullptr);

/// Memory of a device that its driver knows by a handle only, and a place in it.
struct DriverBuffer {
  void* buffer = nullptr;
  std::uint64_t offset = 0;  ///< bytes
};

/// Returns where an operand of a kernel is on such a device; no buffer: it is an address there. Any
/// thread.
DriverBuffer find_driver_buffer(const void* operand) noexcept;

/// Reads "host,sim:cores=2,gbps=6": domains separated by commas; a part that is a setting belongs
/// to the domain before it. Throws Error naming what cannot be read.
std::vector<DomainSpec> parse_domains(std::string_view text);

/// Opens the domains of a specification. Cores of the machine go first to those that ask for a
/// number, the others share what is left. Throws Error.
std::vector<std::unique_ptr<Device>> open_devices(std::string_view specification,
                                                  const Machine& machine,
                                                  std::vector<std::unique_ptr<Backend>>& backends);

}  // namespace weir::rt
