#include "hstreams/openmp.hpp"

#include <dlfcn.h>

namespace weir::hs {

int openmp_threads() {
  const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return ask != nullptr ? ask() : 0;
}

void set_openmp_threads(int count) {
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(count);
}

}  // namespace weir::hs
