// Comes before hwloc in the programs that it is linked into.
#include "one_machine.hpp"

extern "C" {

int hwloc_topology_init(hwloc_topology** topology) {
  return weir::one_machine::initialise(topology);
}

int hwloc_topology_load(hwloc_topology* topology) { return weir::one_machine::load(topology); }
}
