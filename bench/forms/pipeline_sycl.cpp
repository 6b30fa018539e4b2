#include <sycl/sycl.hpp>

#include "forms/forms.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  constexpr int kSlots = 3;  // one is uploaded, one computed, one downloaded
  const std::size_t bytes = block * sizeof(double);
  sycl::queue queue;
  sycl::event ready[kSlots];
  double* const slots = sycl::malloc_device<double>(kSlots * block, queue);
  for (int i = 0; i < blocks; ++i) {
    double* const part = x + i * block;
    double* const slot = slots + i % kSlots * block;
    sycl::event& event = ready[i % kSlots];
    event = queue.memcpy(slot, part, bytes, event);
    event = queue.parallel_for(sycl::range<1>(block), event,
                               [=](sycl::id<1> item) { root_item(slot, item); });
    event = queue.memcpy(part, slot, bytes, event);
  }
  queue.wait_and_throw();
  sycl::free(slots, queue);
}

}  // namespace weir_bench
