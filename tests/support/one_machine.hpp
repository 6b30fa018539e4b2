// The machine, read once in a process: for programs that make thousands of runtimes. Each of them
// would have hwloc look through /sys again, which takes longer than all the rest of a runtime.
#pragma once

#include <atomic>
#include <mutex>

#include <dlfcn.h>

struct hwloc_topology;

namespace weir::one_machine {

inline std::atomic<hwloc_topology*> first = nullptr;  ///< a copy of what was loaded first
inline thread_local bool copied = false;              ///< what this thread initialised last

/// A function of the library, behind that of the program with its name.
template <class Function>
Function* of_hwloc(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

inline int copy(hwloc_topology** topology, hwloc_topology* from) {
  using Duplicate = int(hwloc_topology**, hwloc_topology*);
  static Duplicate* const duplicate = of_hwloc<Duplicate>("hwloc_topology_dup");
  return duplicate(topology, from);
}

/// hwloc_topology_init(): once one was loaded, of a copy of it.
inline int initialise(hwloc_topology** topology) {
  using Initialise = int(hwloc_topology**);
  static Initialise* const anew = of_hwloc<Initialise>("hwloc_topology_init");
  hwloc_topology* const known = first.load();
  copied = known != nullptr;
  return copied ? copy(topology, known) : anew(topology);
}

/// hwloc_topology_load() of what the calling thread initialised last.
inline int load(hwloc_topology* topology) {
  using Load = int(hwloc_topology*);
  static Load* const from_system = of_hwloc<Load>("hwloc_topology_load");
  if (copied) return 0;
  const int result = from_system(topology);
  if (result != 0) return result;
  static std::once_flag kept;
  std::call_once(kept, [&] {
    hwloc_topology* made = nullptr;
    if (copy(&made, topology) == 0) first.store(made);
  });
  return 0;
}

}  // namespace weir::one_machine
