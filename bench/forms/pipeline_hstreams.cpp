#include "forms/hstreams_kernels.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  const std::uint64_t bytes = block * sizeof(double);
  check(hStreams_app_init(1, 1));
  for (int i = 0; i < blocks; ++i) {
    double* const part = x + i * block;
    std::uint64_t arguments[] = {std::uint64_t(block), std::uint64_t(part)};
    check(hStreams_app_create_buf(part, bytes));
    check(hStreams_app_xfer_memory(0, part, part, bytes, HSTR_SRC_TO_SINK, nullptr));
    check(hStreams_app_invoke(0, "roots_sink", 1, 1, arguments, nullptr, nullptr, 0));
    check(hStreams_app_xfer_memory(0, part, part, bytes, HSTR_SINK_TO_SRC, nullptr));
  }
  check(hStreams_app_thread_sync());
  check(hStreams_app_fini());
}

}  // namespace weir_bench
