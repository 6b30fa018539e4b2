/* Kernels: unknown ones, wrong registrations, wrong calls. */
#include "fixture.h"

static fixture f;

static void unknown_kernel(void) {
  weir_kernel* kernel = NULL;
  CHECK_FAILS(weir_kernel_find(f.runtime, "blas.dgem", &kernel), WEIR_STATUS_NOT_FOUND,
              "'blas.dgem'");
  CHECK_CONTAINS(weir_last_error(), "did you mean 'blas.dgemm'");
  CHECK_FAILS(weir_kernel_find(f.runtime, "", &kernel), WEIR_STATUS_NOT_FOUND, "''");
  CHECK(kernel == NULL);
  const uint64_t before = enqueued(&f);
  CHECK_FAILS(enqueue(f.stream, "lapack.dportf", f.x, 0, NULL), WEIR_STATUS_NOT_FOUND,
              "'lapack.dportf'");
  CHECK_CONTAINS(weir_last_error(), "did you mean 'lapack.dpotrf'");
  CHECK(enqueued(&f) == before);
}

static void no_kernel(void) {
  weir_compute compute = WEIR_COMPUTE_INIT;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "kernel");
}

static weir_status register_with(const char* name, const weir_implementation* codes, size_t count,
                                 weir_kernel_shape shape) {
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = codes;
  options.implementation_count = count;
  options.shape = shape;
  return weir_kernel_register(f.runtime, &options, NULL);
}

static void wrong_registrations(void) {
  const weir_kernel_shape serial = WEIR_KERNEL_SHAPE_SERIAL;
  const weir_implementation good = {"host", add_kernel, NULL};
  const weir_implementation no_backend = {NULL, add_kernel, NULL};
  const weir_implementation no_function = {"host", NULL, NULL};
  const weir_implementation twice[] = {good, good};
  CHECK_FAILS(register_with("add", &good, 1, serial), WEIR_STATUS_INVALID_ARGUMENT, "kernel 'add'");
  CHECK_FAILS(register_with("mem.set", &good, 1, serial), WEIR_STATUS_INVALID_ARGUMENT,
              "kernel 'mem.set'");
  CHECK_REFUSED(register_with(NULL, &good, 1, serial), "name");
  CHECK_REFUSED(register_with("", &good, 1, serial), "name");
  CHECK_REFUSED(register_with("mine", NULL, 1, serial), "kernel 'mine'");
  CHECK_REFUSED(register_with("mine", &good, 0, serial), "kernel 'mine'");
  CHECK_REFUSED(register_with("mine", &no_backend, 1, serial), "kernel 'mine'");
  CHECK_REFUSED(register_with("mine", &no_function, 1, serial), "kernel 'mine'");
  CHECK_REFUSED(register_with("mine", &good, 1, (weir_kernel_shape)9), "kernel 'mine'");
  CHECK_REFUSED(register_with("double", twice, 2, serial), "kernel 'double'");
  CHECK_OK(register_with("mine", &good, 1, serial));
}

static void no_implementation_for_the_domain(void) {
  const weir_implementation code = {"sim", add_kernel, NULL};
  CHECK_OK(register_with("sim only", &code, 1, WEIR_KERNEL_SHAPE_SERIAL));
  const uint64_t before = enqueued(&f);
  CHECK_FAILS(enqueue(f.stream, "sim only", f.x, 0, NULL), WEIR_STATUS_UNSUPPORTED,
              "kernel 'sim only'");
  CHECK_CONTAINS(weir_last_error(), "domain 'host'");
  CHECK(enqueued(&f) == before);
}

static void too_many_operands(void) {
  static weir_operand operands[2000];
  weir_compute compute = WEIR_COMPUTE_INIT;
  for (size_t i = 0; i < 2000; ++i) {
    operands[i].buffer = f.x;
    operands[i].region = weir_region_range(0, 8);
    operands[i].access = WEIR_ACCESS_READ;
  }
  compute.kernel_name = "add";
  compute.operands = operands;
  compute.operand_count = 2000;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "2000 operands");
}

/* Built-in kernels say what is wrong with their arguments. */
static void wrong_arguments_of_a_built_in_kernel(void) {
  CHECK_OK(enqueue(f.stream, "mem.copy", f.x, 0, NULL));
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_INVALID_ARGUMENT, "mem.copy");
  CHECK_CONTAINS(weir_last_error(), "stream 'left'");
}

static size_t released;
static void release(void* payload) { *(size_t*)payload += 1; }

static void payloads_are_released_once(void) {
  weir_runtime* runtime = NULL;
  const weir_implementation codes[] = {{"host", add_kernel, &released},
                                       {"sim", add_kernel, &released}};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "owner";
  options.implementations = codes;
  options.implementation_count = 2;
  options.release = release;
  require(weir_runtime_create(NULL, &runtime));
  CHECK_OK(weir_kernel_register(runtime, &options, NULL));
  CHECK_FAILS(weir_kernel_register(runtime, &options, NULL), WEIR_STATUS_INVALID_ARGUMENT,
              "kernel 'owner'");
  CHECK(released == 0);
  weir_runtime_destroy(runtime);
  CHECK(released == 1);
}

static void count_indices(size_t begin, size_t end, size_t member, void* payload) {
  (void)member;
  *(size_t*)payload += end - begin;
}
static void count_member(weir_team* team, size_t member, void* payload) {
  (void)member;
  *(size_t*)payload += 1;
  weir_team_barrier(team);
}

static void a_team_of_nobody(void) {
  size_t count = 0;
  CHECK(weir_team_size(NULL) == 1);
  weir_team_for(NULL, 10, 0, count_indices, &count);
  CHECK(count == 10);
  weir_team_for(NULL, 0, 1, count_indices, &count);
  CHECK(count == 10);
  weir_team_run(NULL, count_member, &count);
  CHECK(count == 11);
}

int main(void) {
  set_up(&f);
  RUN(unknown_kernel);
  RUN(no_kernel);
  RUN(wrong_registrations);
  RUN(no_implementation_for_the_domain);
  RUN(too_many_operands);
  RUN(wrong_arguments_of_a_built_in_kernel);
  RUN(payloads_are_released_once);
  RUN(a_team_of_nobody);
  tear_down(&f);
  return check_failures != 0;
}
