// Collective operations by MPI, which starts the ranks: mpirun -n 2 collectives_openmpi reduce.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C interface is enough
#include <mpi.h>

#include "fabric/collectives.hpp"

namespace weir_bench {
namespace {

class Group {
 public:
  unsigned rank() const { return rank_; }
  unsigned size() const { return size_; }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void broadcast(std::vector<double>& numbers) {
    MPI_Bcast(numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
  void reduce(std::vector<double>& numbers) {
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE,
                  MPI_SUM, MPI_COMM_WORLD);
  }

 private:
  static unsigned ask(int (*question)(MPI_Comm, int*)) {
    int answer = 0;
    question(MPI_COMM_WORLD, &answer);
    return static_cast<unsigned>(answer);
  }
  const unsigned rank_ = ask(MPI_Comm_rank), size_ = ask(MPI_Comm_size);
};

}  // namespace
}  // namespace weir_bench

namespace weir_bench {

inline int run_collectives(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 0;
  try {
    Group group;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    const std::string name(version, static_cast<std::size_t>(length));
    measure_collectives(Arguments(argc, argv), group, name.substr(0, name.find_first_of(",\t\n")));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = 1;
  }
  MPI_Finalize();
  return status;
}

}  // namespace weir_bench
