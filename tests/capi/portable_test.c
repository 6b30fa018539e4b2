/* Portable kernels without C++: described by hand, with code of C for the host. */
#include "fixture.h"

static fixture f;

/* Doubles x from item 0 of each group on, and adds. */
static void run(const uint32_t groups[3], uint64_t begin, uint64_t end, void* const* arguments) {
  double* x = *(double**)arguments[0];
  const double added = *(const double*)arguments[1];
  const int32_t count = *(const int32_t*)arguments[2];
  for (uint64_t group = begin; group < end && groups[0] > 0; ++group) {
    for (uint64_t i = 4 * group; i < 4 * group + 4; ++i) {
      if ((int64_t)i < count) x[i] = 2 * x[i] + added;
    }
  }
}

static void grid(const weir_call* call, uint32_t out_groups[3]) {
  out_groups[0] = (uint32_t)(call->scalars[1].value.i64 + 3) / 4;
}

static const weir_portable_kernel kTwice = {"twice", {4, 1, 1}, "pdi", run, NULL};

static weir_status register_twice(const char* name, weir_kernel** out_kernel) {
  weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
  options.name = name;
  options.kernel = &kTwice;
  options.grid = grid;
  return weir_kernel_register_portable(f.runtime, &options, out_kernel);
}

static weir_status call(weir_kernel* kernel, const weir_scalar* scalars, size_t count) {
  weir_compute compute = WEIR_COMPUTE_INIT;
  weir_operand operand;
  operand.buffer = f.x;
  operand.region = weir_region_range(0, FIXTURE_BYTES);
  operand.access = WEIR_ACCESS_READ_WRITE;
  compute.kernel = kernel;
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.scalars = scalars;
  compute.scalar_count = count;
  return weir_stream_compute(f.stream, &compute, NULL);
}

static void runs_on_the_host(void) {
  weir_kernel* kernel = NULL;
  const weir_scalar scalars[] = {weir_scalar_i64(1), weir_scalar_i64(FIXTURE_DOUBLES - 1)};
  CHECK_OK(register_twice(NULL, &kernel));
  for (int i = 0; i < FIXTURE_DOUBLES; ++i) f.x_data[i] = i;
  CHECK_OK(call(kernel, scalars, 2));
  CHECK_OK(weir_stream_synchronize(f.stream, WEIR_FOREVER));
  for (int i = 0; i < FIXTURE_DOUBLES - 1; ++i) CHECK(f.x_data[i] == 2 * i + 1);
  CHECK(f.x_data[FIXTURE_DOUBLES - 1] == FIXTURE_DOUBLES - 1);
}

static void checks_its_scalars(void) {
  weir_kernel* kernel = NULL;
  const weir_scalar too_large[] = {weir_scalar_f64(1), weir_scalar_i64((int64_t)1 << 40)};
  const weir_scalar fraction[] = {weir_scalar_f64(1), weir_scalar_f32(1)};
  CHECK_OK(register_twice("checked", &kernel));
  const uint64_t before = enqueued(&f);
  CHECK_REFUSED(call(kernel, too_large, 2), "kernel 'checked': parameter 2");
  CHECK_REFUSED(call(kernel, fraction, 2), "kernel 'checked': parameter 2");
  CHECK_REFUSED(call(kernel, too_large, 1), "1 scalar");
  CHECK(enqueued(&f) == before);
}

static void wrong_registrations(void) {
  weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
  const weir_portable_kernel no_code = {"text", {4, 1, 1}, "p", NULL, NULL};
  CHECK_OK(register_twice("once", NULL));
  CHECK_FAILS(register_twice("once", NULL), WEIR_STATUS_INVALID_ARGUMENT, "kernel 'once'");
  CHECK_FAILS(register_twice("mem.set", NULL), WEIR_STATUS_INVALID_ARGUMENT, "kernel 'mem.set'");
  CHECK_REFUSED(register_twice("", NULL), "name");
  CHECK_REFUSED(weir_kernel_register_portable(f.runtime, &options, NULL), "no kernel");
  options.kernel = &no_code;
  options.grid = grid;
  CHECK_REFUSED(weir_kernel_register_portable(f.runtime, &options, NULL), "a source");
  options.kernel = &kTwice;
  options.name = "mine";
  options.shape = (weir_kernel_shape)9;
  CHECK_REFUSED(weir_kernel_register_portable(f.runtime, &options, NULL), "kernel 'mine'");
}

static void text_only(void) {
  weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
  const weir_portable_kernel no_code = {"text", {4, 1, 1}, "pdi", NULL, NULL};
  const weir_scalar scalars[] = {weir_scalar_f64(1), weir_scalar_i64(1)};
  weir_kernel* kernel = NULL;
  options.kernel = &no_code;
  options.source = "WEIR_KERNEL(text, 4, 1, 1, WEIR_GLOBAL double* x, double a, int n) {}";
  options.grid = grid;
  CHECK_OK(weir_kernel_register_portable(f.runtime, &options, &kernel));
  CHECK_FAILS(call(kernel, scalars, 2), WEIR_STATUS_UNSUPPORTED, "it has: source");
}

int main(void) {
  set_up(&f);
  RUN(runs_on_the_host);
  RUN(checks_its_scalars);
  RUN(wrong_registrations);
  RUN(text_only);
  tear_down(&f);
  return check_failures != 0;
}
