#include "machine_checks.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "common/counted.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLittleMemory = std::uint64_t{512} << 20;

std::string first_word_of(const char* path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

std::uint64_t processors_in_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 0;
  return static_cast<std::uint64_t>(CPU_COUNT(&mask));
}

Finding check_affinity() {
  const auto online = static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::uint64_t allowed = processors_in_mask();
  if (allowed == 0 || allowed >= online) {
    return {Level::ok, "affinity",
            fmt::format("{}, all allowed", apps::counted(online, "hardware thread"))};
  }
  return {Level::warning, "affinity",
          fmt::format("{} of {} hardware threads are allowed", allowed, online),
          "start weir without taskset, numactl or a container's cpuset to use the others"};
}

Finding check_quota(const Json& machine) {
  if (!machine.contains("cpu_quota")) {
    return {Level::ok, "quota", "the control group sets no limit on processor time"};
  }
  const double quota = machine.at("cpu_quota").get<double>();
  return {Level::warning, "quota",
          fmt::format("the control group grants {:g} cores of processor time, weir uses {}", quota,
                      machine.at("cores").get<std::uint64_t>()),
          "raise the limit (docker run --cpus, cpu.max) to use more"};
}

Finding check_cores(const Json& machine) {
  const auto cores = machine.at("cores").get<std::uint64_t>();
  const auto threads = machine.value("hardware_threads", cores);
  std::string found =
      fmt::format("{} usable, {}", cores, apps::counted(threads, "hardware thread"));
  if (threads > cores) found += "; weir uses one of each core, all with --domains host:smt=on";
  return {Level::ok, "cores", std::move(found)};
}

Finding check_topology(const Json& machine) {
  if (machine.contains("from")) {
    return {Level::warning, "topology",
            "read from HWLOC_XMLFILE instead of this machine: threads are not pinned",
            "unset HWLOC_XMLFILE"};
  }
  if (!machine.contains("caches")) {
    return {Level::warning, "topology", "hwloc finds no caches", "mount /sys in the container"};
  }
  return {Level::ok, "topology",
          fmt::format("{}, {}, {}", machine.value("processor", "unknown processor"),
                      apps::counted(machine.value("packages", 1U), "package"),
                      apps::counted(machine.value("numa_nodes", 1U), "NUMA node"))};
}

std::optional<std::uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "MemAvailable:") return value * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

Finding check_memory(const Json& machine) {
  const auto total = machine.value("memory_bytes", std::uint64_t{0});
  const auto granted = machine.value("memory_limit_bytes", total);
  const std::uint64_t usable = std::min(available_memory().value_or(total), granted);
  const std::string found =
      fmt::format("{} usable of {}", format_bytes(usable), format_bytes(total));
  if (usable >= kLittleMemory) return {Level::ok, "memory", found};
  return {Level::warning, "memory", found, "end other programs, or raise the container's limit"};
}

Finding check_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Level::ok, "locked memory", "no limit"};
  return {Level::ok, "locked memory",
          fmt::format("at most {} of pinned buffers (ulimit -l)", format_bytes(limit.rlim_cur))};
}

Finding check_governor() {
  const std::string governor =
      first_word_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.empty()) return {Level::ok, "frequency", "not controlled by this system"};
  if (governor == "performance") return {Level::ok, "frequency", "governor performance"};
  return {Level::warning, "frequency", fmt::format("governor {}: measurements may vary", governor),
          "cpupower frequency-set -g performance"};
}

void check_environment(const Json& description, Findings& findings) {
  const Json unknown = description.value("unknown_environment", Json::array());
  for (const Json& variable : unknown) {
    const auto text = variable.get<std::string>();
    findings.push_back({Level::warning, "environment", "weir does not know " + text,
                        "unset " + text.substr(0, text.find(' '))});
  }
  if (unknown.empty()) findings.push_back({Level::ok, "environment", "no unknown WEIR_* variable"});
}

bool in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::stringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access(folder.append("/").append(program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// MPI is optional: without it, ranks are processes of one machine.
Finding check_mpi(const Json& mpi) {
  const auto name = mpi.at("name").get<std::string>(),
             packages = mpi.at("packages").get<std::string>();
  const bool built = !mpi.at("library").get<std::string>().empty();
  const bool starts = in_path(mpi.at("launcher").get<std::string>());
  if (built && starts) return {Level::ok, "mpi", fmt::format("ranks that {} starts work", name)};
  if (built) {
    return {Level::ok, "mpi", fmt::format("weir was built with {}, whose mpirun is not here", name),
            "apt install " + packages};
  }
  const std::string fix = fmt::format("apt install {}, and build weir again", packages);
  if (!starts) return {Level::ok, "mpi", fmt::format("{} is not installed", name), fix};
  return {Level::warning, "mpi", fmt::format("{} is here, but weir was built without it", name),
          fix};
}

}  // namespace

Findings check_machine(const Json& description) {
  const Json& machine = description.at("machine");
  Findings findings{check_cores(machine),    check_affinity(),      check_quota(machine),
                    check_topology(machine), check_memory(machine), check_locked_memory(),
                    check_governor()};
  for (const Json& mpi : description.at("mpi")) findings.push_back(check_mpi(mpi));
  check_environment(description, findings);
  return findings;
}

}  // namespace weir::cli
