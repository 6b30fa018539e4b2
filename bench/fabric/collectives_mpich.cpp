// A collective operation by MPICH, in microseconds: the mean of many.
//
//   mpirun -n N collectives_mpich barrier|broadcast|reduce [--bytes B] [--count N]
#include "fabric/collectives_mpi.hpp"

int main(int argc, char** argv) { return weir_bench::run_collectives(argc, argv); }
