// Half of the cores for each of two processes.
#pragma once

#include <cstdlib>
#include <vector>

#include <sched.h>

namespace weir_bench {

/// Keeps Open MPI from binding each of two processes to one core, before this becomes mpirun.
inline void leave_cores_to_halves() { setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1); }

/// Binds this process, one of two that a launcher has started, to its half of the cores: with as
/// many threads that look for news as there are cores, the system now and then puts both on one.
inline void take_half() {
  const char* rank = std::getenv("WEIR_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  cpu_set_t allowed;
  if (rank == nullptr || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  const std::size_t half = cores.size() / 2, first = std::atoi(rank) % 2 == 0 ? 0 : half;
  if (half == 0) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (std::size_t i = first; i < first + half; ++i) CPU_SET(cores[i], &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

}  // namespace weir_bench
