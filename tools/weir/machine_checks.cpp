#include "machine_checks.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
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
    const auto variable = machine.at("from").get<std::string>();
    return {Level::warning, "topology",
            fmt::format("read from {} instead of this machine: threads are not pinned", variable),
            "unset " + variable};
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
  const auto limit = machine.value("memory_limit_bytes", total);
  const std::uint64_t usable = std::min(available_memory().value_or(total), limit);
  const std::string found =
      fmt::format("{} usable of {}", format_bytes(usable), format_bytes(total));
  if (usable >= kLittleMemory) return {Level::ok, "memory", found};
  return {Level::warning, "memory", found, "end other programs, or raise the container's limit"};
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

}  // namespace

Findings check_machine(const Json& description) {
  const Json& machine = description.at("machine");
  Findings findings{check_cores(machine),    check_affinity(),      check_quota(machine),
                    check_topology(machine), check_memory(machine), check_governor()};
  check_environment(description, findings);
  return findings;
}

}  // namespace weir::cli
