/* A kernel of the program's own, in C99: scales numbers on the domain named by the argument. */
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

static weir_status scale(const weir_call* call) {
  double* x = call->operands[0].address;
  const size_t count = call->operands[0].extent[0] / sizeof *x;
  for (size_t i = 0; i < count; ++i) x[i] *= call->scalars[0].value.f64;
  return WEIR_STATUS_OK;
}

static void check(weir_status status) {
  if (status == WEIR_STATUS_OK) return;
  fprintf(stderr, "user_kernel: %s\n", weir_last_error());
  exit(EXIT_FAILURE);
}

int main(int argc, char** argv) {
  double x[] = {1, 2, 3};
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = argc > 1 ? argv[1] : "host";
  weir_runtime* runtime;
  weir_buffer* buffer;
  weir_place* place;
  weir_stream* stream;
  check(weir_runtime_create(&options, &runtime));
  check(weir_buffer_wrap(runtime, x, sizeof x, NULL, &buffer));
  check(weir_place_create(weir_runtime_get_domain(runtime, 0), NULL, &place));
  check(weir_stream_create(place, NULL, &stream));

  const weir_implementation code = {"host", scale, NULL};
  weir_kernel_options kernel = WEIR_KERNEL_OPTIONS_INIT;
  kernel.name = "scale";
  kernel.implementations = &code;
  kernel.implementation_count = 1;
  check(weir_kernel_register(runtime, &kernel, NULL));

  const weir_operand operand = {buffer, weir_region_range(0, sizeof x), WEIR_ACCESS_READ_WRITE};
  const weir_scalar factor = weir_scalar_f64(10);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "scale";
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.scalars = &factor;
  compute.scalar_count = 1;
  check(weir_stream_upload(stream, buffer, operand.region, NULL));
  check(weir_stream_compute(stream, &compute, NULL));
  check(weir_stream_download(stream, buffer, operand.region, NULL));
  check(weir_stream_synchronize(stream, WEIR_FOREVER));

  printf("%g %g %g\n", x[0], x[1], x[2]);
  weir_runtime_destroy(runtime);
  return EXIT_SUCCESS;
}
