#include "forms/forms.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  for (int i = 0; i < blocks; ++i) {
    roots(x + i * block, block);
  }
}

}  // namespace weir_bench
