// The machine: which processors this process may use, and what they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::rt {

/// A core that places can be made of.
struct Core {
  unsigned processor = 0;          ///< operating system number of its first hardware thread
  std::vector<unsigned> siblings;  ///< all its hardware threads that may be used
  unsigned numa_node = 0;
  unsigned package = 0;
};

struct Machine {
  std::string processor;  ///< model name
  std::string system;     ///< kernel and distribution
  std::vector<Core> cores;
  std::size_t own_cores = 0;  ///< of these, from the first: what a domain gets that asks for none
  unsigned hardware_threads = 0;
  unsigned numa_nodes = 1;
  unsigned packages = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit = 0;  ///< bytes that the control groups grant of that, 0: all
  /// Operating system numbers of the NUMA nodes that are high-bandwidth memory.
  std::vector<unsigned> fast_nodes;
  std::vector<std::pair<std::string, std::uint64_t>> caches;  ///< "L2", bytes of one
  double cpu_quota = 0;  ///< cores the control groups grant, 0: no limit
  bool real = true;      ///< false when read from HWLOC_XMLFILE: threads are then not pinned
};

/// Reads the machine with hwloc. Cores are those the affinity mask and the control group allow; a
/// CPU quota below their number shortens the list. Where ranks of one machine may use the same
/// cores the list begins with other ones on each (local_rank()), as places take them from its
/// begin. Unless something has bound this process to some of the machine's cores, or
/// WEIR_RANK_CORES is "all", the own ones are the rank's part of them then, at least one; else all.
Machine read_machine();

}  // namespace weir::rt
