// The list of all backends, and the parser of `--domains`.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Returns a new backend of each kind. `port` is this rank's port in its fabric; null: no fabric.
std::vector<std::unique_ptr<Backend>> make_backends(Port* port = nullptr);

/// Device memory that the driver knows only by a handle, and an offset in it.
struct DriverBuffer {
  void* buffer = nullptr;
  std::uint64_t offset = 0;  ///< bytes
};

/// Returns where an operand of a kernel is on such a device. Without a buffer the operand is an
/// address there. Any thread.
DriverBuffer find_driver_buffer(const void* operand) noexcept;

/// Parses "host,sim:cores=2,gbps=6": domains separated by commas. A part that is a setting belongs
/// to the domain before it. Throws Error naming the invalid part.
std::vector<DomainSpec> parse_domains(std::string_view text);

/// Opens the domains of a specification. Domains that request a number of cores get theirs first;
/// the others share the remaining cores. Throws Error.
std::vector<std::unique_ptr<Device>> open_devices(std::string_view specification,
                                                  const Machine& machine,
                                                  std::vector<std::unique_ptr<Backend>>& backends);

}  // namespace weir::rt
