#include "hstreams/physical_domain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

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

bool alike(const PhysicalDomain& a, const PhysicalDomain& b) {
  return a.isa == b.isa && a.mhz == b.mhz && a.bytes == b.bytes && a.max == b.max;
}

}  // namespace weir::hs
