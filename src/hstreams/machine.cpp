#include "hstreams/machine.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

constexpr std::uint64_t kCoprocessorMemory = std::uint64_t{8} << 30;

/// Returns the number of cores that this process may use: hardware threads of one core have the
/// same list of siblings.
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

/// Returns the bytes that this process may use: the machine's memory, or the limit of its control
/// group.
std::uint64_t memory_limit() {
  auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
               static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (const char* const path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::uint64_t limit = 0;
    if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

/// Returns the memory of a simulated card: that of a real coprocessor, but at most so much that all
/// simulated cards and the host together take half of the memory limit, because programs size their
/// buffers by it and also have them in their own memory.
std::uint64_t default_memory(std::size_t simulated_cards) {
  return std::min(kCoprocessorMemory, memory_limit() / (2 * (simulated_cards + 1)));
}

/// Splits a specification into domains with their settings.
std::vector<std::string> split_domains(const std::string& specification) {
  std::vector<std::string> domains;
  for (std::size_t begin = 0; begin <= specification.size();) {
    const std::size_t end = std::min(specification.find(',', begin), specification.size());
    const std::string part = specification.substr(begin, end - begin);
    const bool setting = part.substr(0, part.find(':')).find('=') != part.npos;
    if (setting && !domains.empty()) {
      domains.back() += "," + part;
    } else {
      domains.push_back(part);
    }
    begin = end + 1;
  }
  return domains;
}

bool is_simulated(const std::string& domain) { return domain.substr(0, domain.find(':')) == "sim"; }

/// Simulated cards may use every core of the machine, like the host, and have the memory that the
/// layer reports to programs, unless their specification sets it.
std::string specification(const Environment& environment, std::size_t cores) {
  std::vector<std::string> domains = split_domains(environment.domains);
  for (unsigned i = 0; i < environment.simulated_cards; ++i) {
    domains.push_back(fmt::format("sim:cores={}", cores));
  }
  const auto cards =
      static_cast<std::size_t>(std::count_if(domains.begin(), domains.end(), is_simulated));
  const std::uint64_t memory = environment.memory ? environment.memory : default_memory(cards);
  for (std::string& domain : domains) {
    const bool says_it =
        domain.find(":memory=") != domain.npos || domain.find(",memory=") != domain.npos;
    if (!is_simulated(domain) || says_it) continue;
    domain += fmt::format("{}memory={}", domain.find(':') == domain.npos ? ':' : ',', memory);
  }
  return fmt::format("{}", fmt::join(domains, ","));
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
