/* build: -fopenmp */
/* OpenMP in sink functions: one thread for each core of the stream, or what the program has. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>
#include <omp.h>

#include "check.h"

static int threads;

HSTREAMS_EXPORT void add(uint64_t count, double* x) {
  const long n = (long)count;
  threads = omp_get_max_threads();
#pragma omp parallel for
  for (long i = 0; i < n; ++i) x[i] += 1;
}

static void run(double* x, int count) {
  uint64_t args[2];
  args[0] = (uint64_t)count;
  args[1] = (uint64_t)x;
  OK(hStreams_app_invoke(0, "add", 1, 1, args, NULL, NULL, 0));
  OK(hStreams_app_xfer_memory(0, x, x, (uint64_t)count * sizeof *x, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_thread_sync());
  for (int i = 0; i < count; ++i) CHECK(x[i] == 1);
}

int main(void) {
  static double x[10000];
  HSTR_OPTIONS options;
  OK(hStreams_app_init(240, 1)); /* a stream for each thread of the device: all of one core */
  OK(hStreams_app_create_buf(x, sizeof x));
  run(x, 10000);
  CHECK(threads == 1);
  OK(hStreams_Fini());

  omp_set_num_threads(3);
  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  options.openmp_policy = HSTR_OPENMP_ON_DEMAND;
  OK(hStreams_SetOptions(&options));
  OK(hStreams_app_init(240, 1));
  OK(hStreams_app_create_buf(x, sizeof x));
  run(x, 10000);
  CHECK(threads == 3);
  OK(hStreams_Fini());
  return 0;
}
