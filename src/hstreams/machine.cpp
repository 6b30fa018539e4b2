#include "hstreams/machine.hpp"

#include <fstream>
#include <set>
#include <string>

#include <sched.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

/// Cores that this process may use; those of one core's threads have the same list of siblings.
std::size_t core_count() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream file(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string siblings;
    cores.insert(std::getline(file, siblings) ? siblings : fmt::format("{}", cpu));
  }
  return cores.empty() ? 1 : cores.size();
}

/// Simulated cards may use every core of the machine, as the host may.
std::string specification(const Environment& environment, std::size_t cores) {
  std::string domains = environment.domains;
  for (unsigned i = 0; i < environment.simulated_cards; ++i) {
    domains += fmt::format(",sim:cores={}", cores);
  }
  return domains;
}

}  // namespace

weir::Runtime open_machine(const Environment& environment) {
  for (std::size_t cores = core_count();; cores /= 2) {
    const std::string domains = specification(environment, cores);
    try {
      return weir::Runtime(domains);
    } catch (const weir::Error& error) {
      const bool too_many = error.status() == WEIR_STATUS_INVALID_ARGUMENT && cores > 1;
      if (too_many && environment.simulated_cards > 0) continue;  // a CPU quota allows fewer
      fail(HSTR_RESULT_DEVICE_NOT_INITIALIZED, "'{}' cannot be opened: {}", domains, error.what());
    }
  }
}

}  // namespace weir::hs
