#include "forms/starpu_kernels.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  static starpu_codelet codelet = {.cpu_funcs = {roots_task}, .nbuffers = 1, .modes = {STARPU_RW}};
  std::vector<starpu_data_handle_t> parts(blocks);
  check_starpu(starpu_init(nullptr));
  for (int i = 0; i < blocks; ++i) {
    starpu_vector_data_register(&parts[i], STARPU_MAIN_RAM, std::uintptr_t(x + i * block), block,
                                sizeof(double));
    check_starpu(starpu_task_insert(&codelet, STARPU_RW, parts[i], 0));
  }
  for (starpu_data_handle_t part : parts) starpu_data_unregister(part);
  starpu_shutdown();
}

}  // namespace weir_bench
