#include "hstreams/physical_domain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <hstreams/hStreams_common.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

constexpr std::size_t kHostThreads = 8;    // programs reserve some of them
constexpr std::size_t kSystemThreads = 4;  // of a device: the first and the last three

std::size_t threads_of(bool host, std::size_t cores, const Environment& environment) {
  if (!host) return environment.threads;
  const std::size_t wanted =
      environment.host_cpus ? environment.host_cpus : std::max(cores, kHostThreads);
  return std::min(wanted, CpuMask().size());
}

/// Parses the clock in the name of a processor, "... @ 2.30GHz".
std::uint32_t mhz_in(const char* description) {
  const char* const at = std::strstr(description, "@ ");
  return at != nullptr
             ? static_cast<std::uint32_t>(std::lround(std::strtod(at + 2, nullptr) * 1000))
             : 0;
}

}  // namespace

PhysicalDomain::PhysicalDomain(HSTR_PHYS_DOM number, const weir::Domain& given,
                               const Environment& environment)
    : id(number), domain(given.handle()), isa(is_host() ? HSTR_ISA_x86_64 : HSTR_ISA_KNC) {
  const weir_domain_info info = given.info();
  cores = info.cores;
  threads = threads_of(is_host(), cores, environment);
  mhz = mhz_in(info.description);
  bytes = info.memory_bytes;
  max = mask_range(0, threads);
  if (!is_host() && threads > kSystemThreads) {
    avoid = mask_range(threads - kSystemThreads + 1, kSystemThreads - 1).set(0);
  }
}

std::vector<std::uint32_t> PhysicalDomain::cores_of(const CpuMask& mask) const {
  std::vector<std::uint32_t> found;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    const auto core =
        static_cast<std::uint32_t>(threads > cores ? thread * cores / threads : thread);
    if (mask[thread] && (found.empty() || found.back() != core)) found.push_back(core);
  }
  return found;
}

PhysicalDomains::PhysicalDomains(const weir::Runtime& runtime, const Environment& environment,
                                 std::uint32_t limit) {
  for (std::size_t i = 0; i < runtime.domain_count(); ++i) {
    const weir::Domain domain = runtime.domain(i);
    if (std::strcmp(domain.info().backend, "host") == 0 && !host_) {
      host_.emplace(HSTR_SRC_PHYS_DOMAIN, domain, environment);
    } else if (devices_.size() < limit) {
      devices_.emplace_back(static_cast<HSTR_PHYS_DOM>(devices_.size()), domain, environment);
    }
  }
  if (devices_.empty()) {
    fail(HSTR_RESULT_DEVICE_NOT_INITIALIZED,
         "there is no device in '{}', or phys_domains_limit is {}: WEIR_SIM_CARDS=1 simulates one",
         environment.domains, limit);
  }
}

const PhysicalDomain& PhysicalDomains::at(HSTR_PHYS_DOM id) const {
  if (id == HSTR_SRC_PHYS_DOMAIN) return *host_;
  if (id < 0 || static_cast<std::size_t>(id) >= devices_.size()) {
    fail(HSTR_RESULT_DOMAIN_OUT_OF_RANGE, "there is no physical domain {}: devices are 0 to {}", id,
         devices_.size() - 1);
  }
  return devices_[static_cast<std::size_t>(id)];
}

bool PhysicalDomains::homogeneous() const {
  return std::all_of(devices_.begin(), devices_.end(), [this](const PhysicalDomain& device) {
    const PhysicalDomain& first = devices_.front();
    return device.isa == first.isa && device.mhz == first.mhz && device.bytes == first.bytes &&
           device.max == first.max;
  });
}

}  // namespace weir::hs
