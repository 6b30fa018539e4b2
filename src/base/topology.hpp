// The machine: the processors that this process may use, and their properties.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::rt {

/// A core that places can be made of.
struct Core {
  unsigned processor = 0;          ///< operating system number of its first hardware thread
  std::vector<unsigned> siblings;  ///< all its usable hardware threads
  unsigned numa_node = 0;
  unsigned package = 0;
};

struct Machine {
  std::string processor;  ///< model name
  std::string system;     ///< kernel and distribution
  std::vector<Core> cores;
  std::size_t own_cores = 0;  ///< how many of these, from the first, a domain gets by default
  unsigned hardware_threads = 0;
  unsigned numa_nodes = 1;
  unsigned packages = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit = 0;  ///< limit of the control groups in bytes, 0: none
  /// Operating system numbers of the NUMA nodes that are high-bandwidth memory.
  std::vector<unsigned> fast_nodes;
  std::vector<std::pair<std::string, std::uint64_t>> caches;  ///< "L2", bytes of one
  double cpu_quota = 0;  ///< limit of the control groups in cores, 0: none
  bool real = true;      ///< false when read from HWLOC_XMLFILE: threads are then not pinned
};

/// Reads the machine with hwloc. Its cores are those that the affinity mask and the control group
/// allow; a CPU quota below their number shortens the list. If ranks of one machine may use the
/// same cores, the list begins with different cores on each rank (local_rank()), because places
/// take cores from its begin. own_cores is then the rank's part of the cores, at least one; it is
/// all cores if this process is bound to some of the machine's cores, or if WEIR_RANK_CORES is
/// "all".
Machine read_machine();

}  // namespace weir::rt
