#include "forms/weir_kernels.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  weir::Runtime runtime;
  weir::Place place = runtime.domain(0).place();
  weir::Stream stream = place.stream();
  weir::Buffer vector = runtime.wrap(x, blocks * block * sizeof(double));
  weir::Kernel roots = runtime.kernel("roots", roots_kernel);
  for (int i = 0; i < blocks; ++i) {
    const weir::Region part = vector.elements<double>(i * block, block);
    stream.upload(part);
    stream.compute(roots, {weir::readwrite(part)});
    stream.download(part);
  }
  stream.synchronize();
}

}  // namespace weir_bench
