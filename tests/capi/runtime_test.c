/* What a runtime says about itself, and resources that are not available. */
#include "fixture.h"

#include <pthread.h>

static fixture f;

static void description_is_cut_to_its_room(void) {
  char text[16];
  size_t size = 0;
  memset(text, 'x', sizeof text);
  CHECK_OK(weir_runtime_describe(f.runtime, NULL, 0, &size));
  CHECK(size > sizeof text);
  CHECK_OK(weir_runtime_describe(f.runtime, text, 8, NULL));
  CHECK(strlen(text) == 7 && text[0] == '{' && text[8] == 'x');
  char* const whole = malloc(size);
  CHECK_OK(weir_runtime_describe(f.runtime, whole, size, NULL));
  CHECK(strlen(whole) == size - 1 && whole[size - 2] == '}');
  free(whole);
}

static void* read_last_error(void* payload) {
  *(bool*)payload = *weir_last_error() == '\0';
  return NULL;
}

static void messages_belong_to_their_thread(void) {
  bool silent = false;
  pthread_t thread;
  CHECK_REFUSED(weir_stream_cancel(NULL), "stream");
  pthread_create(&thread, NULL, read_last_error, &silent);
  pthread_join(thread, NULL);
  CHECK(silent);
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
  CHECK_CONTAINS(weir_last_error(), "stream");
}

static void unwritable_traces(void) {
  CHECK_OK(weir_trace_start(f.runtime, 0));
  CHECK_FAILS(weir_trace_write(f.runtime, "/nowhere/at/all.json"), WEIR_STATUS_UNAVAILABLE,
              "/nowhere/at/all.json");
  CHECK_OK(weir_trace_stop(f.runtime));
}

/* The first choice of a process counts, so this comes before any other runtime. */
static void unknown_blas(void) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* runtime = NULL;
  weir_kernel* kernel = NULL;
  options.blas = "/nowhere/libblas.so";
  const weir_status made = weir_runtime_create(&options, &runtime);
  const weir_status found =
      made != WEIR_STATUS_OK ? made : weir_kernel_find(runtime, "blas.dgemm", &kernel);
  CHECK_FAILS(found, WEIR_STATUS_UNAVAILABLE, "/nowhere/libblas.so");
  weir_runtime_destroy(runtime);
}

/* A domain that is too small for one operand: the action fails, the runtime goes on. */
static void too_little_memory_in_a_domain(void) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* card = NULL;
  weir_place* place = NULL;
  weir_buffer* large = NULL;
  weir_buffer* small = NULL;
  options.domains = "sim:cores=1,memory=64KiB";
  require(weir_runtime_create(&options, &card));
  require(weir_place_create(weir_runtime_get_domain(card, 0), NULL, &place));
  weir_stream* const stream = make_stream(place, "device");
  require(weir_buffer_create(card, 1 << 20, NULL, &large));
  require(weir_buffer_create(card, 1024, NULL, &small));
  CHECK_OK(weir_stream_upload(stream, large, weir_region_range(0, 1 << 20), NULL));
  CHECK_OK(weir_stream_upload(stream, small, weir_region_range(0, 1024), NULL));
  CHECK_FAILS(weir_stream_synchronize(stream, SOON), WEIR_STATUS_OUT_OF_MEMORY,
              "1 MiB of domain 'sim:0'");
  CHECK_CONTAINS(weir_last_error(), "has 64 KiB");
  CHECK_OK(weir_stream_upload(stream, small, weir_region_range(0, 1024), NULL));
  CHECK_OK(weir_stream_synchronize(stream, SOON));
  weir_runtime_destroy(card);
}

/* A stream moves data to and from its own domain only. */
static void transfers_of_another_domain(void) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  weir_runtime* both = NULL;
  weir_place* place = NULL;
  weir_buffer* buffer = NULL;
  options.domains = "host:cores=1,sim:cores=1";
  require(weir_runtime_create(&options, &both));
  require(weir_place_create(weir_runtime_get_domain(both, 0), NULL, &place));
  weir_stream* const stream = make_stream(place, "left");
  require(weir_buffer_create(both, 64, NULL, &buffer));
  transfer.source.buffer = transfer.target.buffer = buffer;
  transfer.source.region = transfer.target.region = weir_region_range(0, 64);
  transfer.target.domain = weir_runtime_get_domain(both, 1);
  CHECK_REFUSED(weir_stream_transfer(stream, &transfer, NULL), "stream 'left'");
  CHECK_CONTAINS(weir_last_error(), "domain 'host'");
  weir_runtime_destroy(both);
}

static weir_status late_kernel(const weir_call* call) {
  return weir_runtime_pass_time(call->payload, 1);
}

static void time_passes_in_virtual_time(void) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_compute compute = WEIR_COMPUTE_INIT;
  weir_runtime* virtual_one = NULL;
  weir_place* place = NULL;
  CHECK_OK(weir_runtime_pass_time(f.runtime, INT64_MAX)); /* in real time without effect */
  options.domains = "sim:clock=virtual,cores=1";
  require(weir_runtime_create(&options, &virtual_one));
  const int64_t begin = weir_runtime_now(virtual_one);
  CHECK_OK(weir_runtime_pass_time(virtual_one, 1234567));
  CHECK_OK(weir_runtime_pass_time(virtual_one, 0));
  CHECK(weir_runtime_now(virtual_one) == begin + 1234567);
  CHECK_REFUSED(weir_runtime_pass_time(virtual_one, -1), "-1 ns");
  CHECK_REFUSED(weir_runtime_pass_time(NULL, 1), "runtime");
  require(weir_place_create(weir_runtime_get_domain(virtual_one, 0), NULL, &place));
  weir_stream* const stream = make_stream(place, "left");
  compute.kernel = register_kernel(virtual_one, "late", late_kernel, virtual_one);
  CHECK_OK(weir_stream_compute(stream, &compute, NULL));
  CHECK_FAILS(weir_stream_synchronize(stream, SOON), WEIR_STATUS_BUSY, "'late'");
  weir_runtime_destroy(virtual_one);
}

int main(void) {
  RUN(unknown_blas);
  set_up(&f);
  RUN(description_is_cut_to_its_room);
  RUN(messages_belong_to_their_thread);
  RUN(unwritable_traces);
  RUN(too_little_memory_in_a_domain);
  RUN(transfers_of_another_domain);
  RUN(time_passes_in_virtual_time);
  tear_down(&f);
  return check_failures != 0;
}
