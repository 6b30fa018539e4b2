// What the StarPU programs share.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <starpu.h>

namespace weir_bench {

inline void check_starpu(int result) {
  if (result != 0) throw std::runtime_error("StarPU failed with " + std::to_string(result));
}

/// StarPU on all cores, from construction to destruction.
class StarpuSession {
 public:
  StarpuSession() { check_starpu(starpu_init(nullptr)); }
  ~StarpuSession() { starpu_shutdown(); }
  StarpuSession(const StarpuSession&) = delete;
  StarpuSession& operator=(const StarpuSession&) = delete;

  std::string describe() const {
    int major = 0, minor = 0, release = 0;
    starpu_get_version(&major, &minor, &release);
    const char* const scheduler = std::getenv("STARPU_SCHED");
    return "StarPU " + std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(release) + ", scheduler " + (scheduler ? scheduler : "default") + ", " +
           std::to_string(starpu_cpu_worker_get_count()) + " workers and the calling thread";
  }
};

/// Makes a codelet for the processor: it reads `reads` handles, then reads and writes one.
inline void prepare_codelet(starpu_codelet& codelet, const char* name, starpu_cpu_func_t function,
                            int reads) {
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = function;
  codelet.name = name;
  codelet.nbuffers = reads + 1;
  for (int index = 0; index < reads; ++index) codelet.modes[index] = STARPU_R;
  codelet.modes[reads] = STARPU_RW;
}

/// Lets StarPU measure the calls of a codelet, as the scheduler dmdas needs. `model` is zero.
inline void measure_codelet(starpu_codelet& codelet, starpu_perfmodel& model) {
  model.type = STARPU_HISTORY_BASED;
  model.symbol = codelet.name;
  codelet.model = &model;
}

}  // namespace weir_bench
