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

COINATIVELIBEXPORT void scale(uint64_t count, uint64_t factor, float* x) {
  doubleToUint64_t by;
  by.Set_uint64_t(factor);
  for (uint64_t i = 0; i < count; ++i) x[i] *= static_cast<float>(by.Get());
}

// Words 2 to 18 are not used: the result comes after all of them.
COINATIVELIBEXPORT void first(uint64_t sign, float* x, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              void* result, uint16_t bytes) {
  charToUint64_t converter;
  converter.Set_uint64_t(sign);
  const float found = converter.Get() == '-' ? -x[0] : x[0];
  memcpy(result, &found, bytes);
}

// Both orders of hStreams_app_invoke(), with and without events and results.
static void invoke_in_both_orders(HSTR_LOG_STR stream, float* x) {
  doubleToUint64_t factor;
  charToUint64_t sign;
  HSTR_EVENT event, events[2];
  float result = 0;
  factor.Set(0.5);
  sign.Set('-');
  uint64_t args[3] = {2, factor.Get_uint64_t(), reinterpret_cast<uint64_t>(x)};
  uint64_t signs[2] = {sign.Get_uint64_t(), reinterpret_cast<uint64_t>(x)};
  OK(hStreams_app_invoke(stream, "scale", 2, 1, args, NULL, 0, &event));      // old
  OK(hStreams_app_invoke(stream, "scale", 2, 1, args, &events[0], NULL, 0));  // new
  OK(hStreams_app_invoke(stream, "scale", 2, 1, args, NULL, NULL, 0));        // the same in both
  OK(hStreams_app_invoke(stream, "first", 1, 1, signs, &result, sizeof result, &events[1]));
  OK(hStreams_app_event_wait(2, events));
  CHECK(result == -0.25f);
  result = 0;
  OK(hStreams_app_invoke(stream, "first", 1, 1, signs, &result, sizeof result, NULL));
  OK(hStreams_app_stream_sync(stream));
  CHECK(result == -0.25f);
  result = 0;
  OK(hStreams_app_invoke(stream, "first", 1, 1, signs, &event, &result, sizeof result));
  OK(hStreams_app_event_wait(1, &event));
  CHECK(result == -0.25f);
  EXPECT(hStreams_app_invoke(stream, "first", 1, 1, signs, &result, 65536 + 4, &event),
         OUT_OF_RANGE);
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
  x[0] = 2;
  OK(hStreams_app_xfer_memory(x, x, sizeof x, stream, HSTR_SRC_TO_SINK, NULL));
  invoke_in_both_orders(stream, x);
  OK(hStreams_app_fini());

  MKL_INT n = 3;
  double* const z = static_cast<double*>(mkl_malloc(3 * sizeof(double), 64));
  for (int i = 0; i < n; ++i) z[i] = i;
  CHECK(reinterpret_cast<uint64_t>(z) % 64 == 0 && cblas_ddot(n, z, 1, z, 1) == 5);
  mkl_free(z);
  return 0;
}
