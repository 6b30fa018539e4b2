#include "base/topology.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <string_view>

#include <fmt/format.h>
#include <hwloc.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/config.hpp"
#include "base/control_group.hpp"
#include "base/error.hpp"
#include "base/local_rank.hpp"
#include "base/log.hpp"
#include "base/sys.hpp"

namespace weir::rt {

namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

Topology make() noexcept {
  hwloc_topology_t made = nullptr;
  return Topology(hwloc_topology_init(&made) == 0 ? made : nullptr);
}

/// Without /sys hwloc writes two lines for each topology. While this lives it does not, unless the
/// user has set its variable, and weir writes one line in all.
class MissingSysfs {
 public:
  MissingSysfs() {
    if (access("/sys/devices/system/cpu", F_OK) == 0 || sys::environment(kVariable) != nullptr) {
      return;
    }
    static sys::Atomic<bool> reported{false};
    if (!reported.exchange(true)) {
      log::warning("/sys is not mounted: caches, packages and NUMA nodes may be unknown");
    }
    hides_ = ::setenv(kVariable, "2", 1) == 0;
  }
  MissingSysfs(const MissingSysfs&) = delete;
  MissingSysfs& operator=(const MissingSysfs&) = delete;
  ~MissingSysfs() {
    if (hides_) ::unsetenv(kVariable);
  }

 private:
  static constexpr const char* kVariable = "HWLOC_HIDE_ERRORS";
  bool hides_ = false;
};

Topology load() {
  const MissingSysfs missing_sysfs;
  // hwloc opens its plug-ins for the first topology and closes them after the last, which takes
  // longer than everything else: a topology that is never loaded keeps them open.
  [[maybe_unused]] static const Topology kept = make();
  Topology topology = make();
  if (topology == nullptr) fail(WEIR_STATUS_UNAVAILABLE, "hwloc cannot be initialised");
  if (hwloc_topology_load(topology.get()) != 0) {
    fail(WEIR_STATUS_UNAVAILABLE, "hwloc cannot read the machine; check HWLOC_XMLFILE");
  }
  return topology;
}

/// The processors that this process may use. `bound`: these are fewer than the control group
/// allows.
Bitmap allowed_processors(hwloc_topology_t topology, bool real, bool& bound) {
  Bitmap allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  Bitmap mask(hwloc_bitmap_alloc());
  if (allowed == nullptr || mask == nullptr) throw std::bad_alloc();
  bound = false;
  if (real && hwloc_get_cpubind(topology, mask.get(), HWLOC_CPUBIND_THREAD) == 0) {
    bound = hwloc_bitmap_isincluded(allowed.get(), mask.get()) == 0;
    hwloc_bitmap_and(allowed.get(), allowed.get(), mask.get());
  }
  return allowed;
}

unsigned ancestor_index(hwloc_topology_t topology, hwloc_obj_t object, hwloc_obj_type_t type) {
  const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(topology, type, object);
  return found ? found->logical_index : 0;
}

std::vector<Core> read_cores(hwloc_topology_t topology, hwloc_const_bitmap_t allowed) {
  std::vector<Core> cores;
  const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  const hwloc_obj_type_t type = count > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t object = hwloc_get_next_obj_by_type(topology, type, nullptr); object;
       object = hwloc_get_next_obj_by_type(topology, type, object)) {
    Core core;
    for (int pu = hwloc_bitmap_first(object->cpuset); pu >= 0;
         pu = hwloc_bitmap_next(object->cpuset, pu)) {
      if (hwloc_bitmap_isset(allowed, static_cast<unsigned>(pu))) {
        core.siblings.push_back(static_cast<unsigned>(pu));
      }
    }
    if (core.siblings.empty()) continue;
    core.processor = core.siblings.front();
    core.package = ancestor_index(topology, object, HWLOC_OBJ_PACKAGE);
    const int node = hwloc_bitmap_first(object->nodeset);
    core.numa_node = node < 0 ? 0 : static_cast<unsigned>(node);
    cores.push_back(std::move(core));
  }
  return cores;
}

/// Rotates the cores so that ranks that may use the same cores begin with different ones. Returns
/// the number of cores of this rank. A launcher that binds processes has already divided the cores;
/// ranks that weir starts inherit the affinity of the process that started weir.
std::size_t begin_at_own(std::vector<Core>& cores, bool bound) {
  const LocalRank local = local_rank();
  const std::size_t first = cores.size() * local.rank / local.ranks;
  const std::size_t end = cores.size() * (local.rank + 1) / local.ranks;
  std::rotate(cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(first), cores.end());
  const bool divides = config::divides_cores() && (!bound || local.started_by_weir);
  return divides ? std::max<std::size_t>(1, end - first) : cores.size();
}

std::string read_system() {
  utsname name{};
  uname(&name);
  std::string distribution;
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PRETTY_NAME=\"")) distribution = line.substr(13, line.size() - 14);
  }
  return fmt::format("{} {}{}{}", name.sysname, name.release, distribution.empty() ? "" : ", ",
                     distribution);
}

std::vector<std::pair<std::string, std::uint64_t>> read_caches(hwloc_topology_t topology) {
  std::vector<std::pair<std::string, std::uint64_t>> caches;
  const std::pair<const char*, hwloc_obj_type_t> kinds[] = {
      {"L1d", HWLOC_OBJ_L1CACHE}, {"L2", HWLOC_OBJ_L2CACHE}, {"L3", HWLOC_OBJ_L3CACHE}};
  for (const auto& [name, type] : kinds) {
    const hwloc_obj_t cache = hwloc_get_next_obj_by_type(topology, type, nullptr);
    if (cache != nullptr) caches.emplace_back(name, cache->attr->cache.size);
  }
  return caches;
}

bool is_fast(hwloc_obj_t node) {
  const char* const tier = hwloc_obj_get_info_by_name(node, "MemoryTier");
  const std::string_view kind = node->subtype ? node->subtype : tier ? tier : "";
  return kind == "HBM" || kind == "MCDRAM";
}

std::vector<unsigned> read_fast_nodes(hwloc_topology_t topology) {
  std::vector<unsigned> nodes;
  for (hwloc_obj_t node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, nullptr); node;
       node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) {
    if (is_fast(node)) nodes.push_back(node->os_index);
  }
  return nodes;
}

}  // namespace

Machine read_machine() {
  const Topology topology = load();
  Machine machine;
  machine.real = hwloc_topology_is_thissystem(topology.get()) != 0;
  bool bound = false;
  const Bitmap allowed = allowed_processors(topology.get(), machine.real, bound);
  machine.cores = read_cores(topology.get(), allowed.get());
  if (machine.cores.empty()) fail(WEIR_STATUS_UNAVAILABLE, "this process may use no processor");
  for (const Core& core : machine.cores) {
    machine.hardware_threads += static_cast<unsigned>(core.siblings.size());
    machine.numa_nodes = std::max(machine.numa_nodes, core.numa_node + 1);
    machine.packages = std::max(machine.packages, core.package + 1);
  }
  const GroupLimits limits = machine.real ? read_group_limits() : GroupLimits();
  machine.cpu_quota = limits.cores;
  if (machine.cpu_quota > 0) {
    const auto quota_cores =
        static_cast<std::size_t>(std::max(1LL, std::llround(std::ceil(machine.cpu_quota))));
    if (quota_cores < machine.cores.size()) machine.cores.resize(quota_cores);
  }
  machine.own_cores = begin_at_own(machine.cores, bound);
  const hwloc_obj_t root = hwloc_get_root_obj(topology.get());
  const hwloc_obj_t package =
      hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, nullptr);
  const char* model = hwloc_obj_get_info_by_name(package ? package : root, "CPUModel");
  machine.processor = model ? model : "unknown processor";
  machine.system = read_system();
  machine.memory_bytes = machine.real ? sys::memory_bytes() : root->total_memory;
  machine.memory_limit = limits.memory_bytes < machine.memory_bytes ? limits.memory_bytes : 0;
  machine.fast_nodes = read_fast_nodes(topology.get());
  machine.caches = read_caches(topology.get());
  return machine;
}

}  // namespace weir::rt
