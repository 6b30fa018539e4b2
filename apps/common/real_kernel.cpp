#include "common/real_kernel.hpp"

namespace weir::apps {

const weir_portable_kernel& best_for_host(const HostVariants& variants) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return *variants[2];
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return *variants[1];
#endif
  return *variants[0];
}

}  // namespace weir::apps
