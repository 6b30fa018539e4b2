/* Doubles a vector with a kernel of its own: what a user's first program looks like. */
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

static weir_status scale(const weir_call* call) {
  double* values = call->operands[0].address;
  const size_t count = call->operands[0].extent[0] / sizeof *values;
  for (size_t i = 0; i < count; ++i) values[i] *= 2;
  return WEIR_STATUS_OK;
}

static void check(weir_status status) {
  if (status == WEIR_STATUS_OK) return;
  fprintf(stderr, "%s: %s\n", weir_status_name(status), weir_last_error());
  exit(1);
}

int main(void) {
  weir_runtime* runtime;
  check(weir_runtime_create(NULL, &runtime));
  const weir_implementation code = {"host", scale, NULL};
  weir_kernel_options kernel = WEIR_KERNEL_OPTIONS_INIT;
  kernel.name = "scale";
  kernel.implementations = &code;
  kernel.implementation_count = 1;
  check(weir_kernel_register(runtime, &kernel, NULL));

  weir_place* place;
  weir_stream* stream;
  weir_buffer* buffer;
  double vector[1000];
  for (int i = 0; i < 1000; ++i) vector[i] = i;
  check(weir_place_create(weir_runtime_get_domain(runtime, 0), NULL, &place));
  check(weir_stream_create(place, NULL, &stream));
  check(weir_buffer_wrap(runtime, vector, sizeof vector, NULL, &buffer));

  const weir_operand operand = {buffer, weir_region_range(0, sizeof vector),
                                WEIR_ACCESS_READ_WRITE};
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "scale";
  compute.operands = &operand;
  compute.operand_count = 1;
  check(weir_stream_compute(stream, &compute, NULL));
  check(weir_stream_synchronize(stream, WEIR_FOREVER));
  printf("vector[999] = %g\n", vector[999]);
  weir_runtime_destroy(runtime);
  return 0;
}
