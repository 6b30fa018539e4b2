// The machine that programs on the scheduler find.
#pragma once

#include <cstdlib>

#include <sched.h>

namespace weir::schedule {

/// The machine must not matter: all run on the same eight imagined cores. One at a time, so that
/// one real core does best.
inline const bool machine_chosen = [] {
  setenv("HWLOC_SYNTHETIC", "package:1 core:8 pu:1", 1);
  setenv("WEIR_SPIN_US", "1", 1);
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(sched_getcpu(), &core);
  sched_setaffinity(0, sizeof core, &core);
  return true;
}();

}  // namespace weir::schedule
