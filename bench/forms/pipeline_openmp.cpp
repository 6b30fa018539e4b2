#include "forms/openmp_kernels.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < blocks; ++i) {
    double* const part = x + i * block;
#pragma omp target teams loop map(tofrom : part[0 : block]) nowait
    for (int item = 0; item < block; ++item) root_item(part, item);
  }
}

}  // namespace weir_bench
