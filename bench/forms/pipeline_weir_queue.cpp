#include "forms/weir_kernels.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  weir::Runtime runtime;
  weir::Buffer vector = runtime.wrap(x, blocks * block * sizeof(double));
  weir::Kernel roots = runtime.kernel("roots", roots_kernel);
  weir::Queue queue = runtime.queue();
  for (int i = 0; i < blocks; ++i) {
    queue.submit(roots, {weir::readwrite(vector.elements<double>(i * block, block))});
  }
  queue.synchronize();
}

}  // namespace weir_bench
