// The main function of programs that run as two processes under mpirun.
#pragma once

#include <cstdio>
#include <exception>

#define OMPI_SKIP_MPICXX 1  // the C interface is enough
#include <mpi.h>

#include "common/mpirun.hpp"

namespace weir_bench {

/// Checks the arguments, becomes two processes and lets both work. Both may throw.
template <class Check, class Work>
int mpi_main(int count, char** values, const Check& check, const Work& work) {
  try {
    const Arguments arguments(count, values);
    check(arguments);
    if (!under_mpirun()) become_mpirun(arguments, count, values);
    MPI_Init(&count, &values);
    work(arguments);
    MPI_Finalize();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

template <class Work>
int mpi_main(int count, char** values, const Work& work) {
  return mpi_main(
      count, values, [](const Arguments&) {}, work);
}

}  // namespace weir_bench
