// The order of arguments before version 1.1, and headers of COI: what programs of 2014 are made of.
#include <intel-coi/common/COIMacros_common.h>
#include <intel-coi/sink/COIPipeline_sink.h>

#include <common/COIMacros_common.h>
#include <hStreams_app_api.h>
#include <sink/COIPipeline_sink.h>

#include "check.h"

COINATIVELIBEXPORT void half(uint64_t count, float* x) {
  for (uint64_t i = 0; i < count; ++i) x[i] /= 2;
}

int main() {
  const HSTR_LOG_STR stream = 0;
  float x[4] = {2, 4, 6, 8}, y[4] = {0, 0, 0, 0}, c[1] = {1};
  uint64_t args[2] = {4, reinterpret_cast<uint64_t>(x)};
  mkl_mic_disable();
  OK(hStreams_app_init(1, 2));
  OK(hStreams_app_create_buf(x, sizeof x));
  OK(hStreams_app_create_buf(y, sizeof y));
  OK(hStreams_app_create_buf(c, sizeof c));
  OK(hStreams_app_xfer_memory(x, x, sizeof x, stream, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_invoke(stream, "half", 1, 1, args, NULL, NULL, 0));
  OK(hStreams_app_memcpy(x, y, sizeof x, stream, NULL));
  OK(hStreams_app_memset(c, 0, sizeof c, stream, NULL));
  OK(hStreams_app_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, 1, 1, 4, 1.0f, x, 4, y, 4, 0.0f, c,
                        1, stream, NULL));
  OK(hStreams_app_xfer_memory(y, y, sizeof y, stream, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_xfer_memory(c, c, sizeof c, 0, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_thread_sync());
  CHECK(y[0] == 1 && y[3] == 4 && c[0] == 30);
  OK(hStreams_app_fini());

  MKL_INT n = 3;
  double* const z = static_cast<double*>(mkl_malloc(3 * sizeof(double), 64));
  for (int i = 0; i < n; ++i) z[i] = i;
  CHECK(reinterpret_cast<uint64_t>(z) % 64 == 0 && cblas_ddot(n, z, 1, z, 1) == 5);
  mkl_free(z);
  return 0;
}
