/* Handles of destroyed objects, of something else, and of another runtime. */
#include "fixture.h"

static fixture f;

static void destroyed_buffer(void) {
  double* data = NULL;
  weir_buffer* const buffer = make_buffer(f.runtime, "gone", &data);
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  weir_buffer_destroy(buffer);
  const uint64_t before = enqueued(&f);
  CHECK_REFUSED(weir_buffer_get_info(buffer, &info), "buffer 'gone'");
  CHECK_REFUSED(enqueue(f.stream, "add", buffer, 1, NULL), "buffer 'gone'");
  CHECK_REFUSED(weir_stream_upload(f.stream, buffer, weir_region_range(0, 8), NULL),
                "buffer 'gone' has been destroyed");
  CHECK(enqueued(&f) == before);
  weir_buffer_destroy(buffer);
  CHECK_CONTAINS(weir_last_error(), "buffer 'gone' has been destroyed");
}

static void destroyed_stream(void) {
  weir_stream* const stream = make_stream(f.places[0], "gone");
  const weir_sync sync = WEIR_SYNC_INIT;
  weir_stream_destroy(stream);
  CHECK_REFUSED(enqueue(stream, "add", f.x, 1, NULL), "stream 'gone'");
  CHECK_REFUSED(weir_stream_sync(stream, &sync, NULL), "stream 'gone'");
  CHECK_REFUSED(weir_stream_synchronize(stream, SOON), "stream 'gone'");
  CHECK_REFUSED(weir_stream_cancel(stream), "stream 'gone' has been destroyed");
  weir_stream_destroy(stream);
  CHECK_CONTAINS(weir_last_error(), "stream 'gone' has been destroyed");
}

static void destroyed_place(void) {
  const uint32_t core = 0;
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  weir_place* place = NULL;
  weir_stream* none = NULL;
  options.name = "gone";
  options.cores = &core;
  options.core_count = 1;
  options.oversubscribe = true;
  CHECK_OK(weir_place_create(f.domain, &options, &place));
  weir_stream* const stream = make_stream(place, "with it");
  weir_place_destroy(place);
  CHECK_REFUSED(weir_place_get_info(place, &info), "place 'gone'");
  CHECK_REFUSED(weir_stream_create(place, NULL, &none), "place 'gone' has been destroyed");
  CHECK_REFUSED(weir_stream_synchronize(stream, SOON), "stream 'with it' has been destroyed");
  weir_place_destroy(place);
  weir_stream_destroy(stream);
}

static void destroyed_runtime(void) {
  fixture old;
  weir_buffer* buffer = NULL;
  weir_stream* stream = NULL;
  weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
  set_up(&old);
  tear_down(&old);
  CHECK_REFUSED(weir_runtime_synchronize(old.runtime, SOON), "runtime");
  CHECK_CONTAINS(weir_last_error(), "has been destroyed");
  CHECK_REFUSED(weir_buffer_create(old.runtime, 8, NULL, &buffer), "runtime");
  CHECK_REFUSED(weir_stream_synchronize(old.stream, SOON), "stream 'left' has been destroyed");
  CHECK_REFUSED(enqueue(old.stream, "add", old.x, 1, NULL), "stream 'left'");
  CHECK_REFUSED(weir_stream_create(old.places[0], NULL, &stream), "has been destroyed");
  CHECK_REFUSED(weir_domain_get_info(old.domain, &info), "domain 'host' has been destroyed");
  CHECK_REFUSED(weir_buffer_adopt(old.domain, &info, NULL, 8, NULL, &buffer),
                "domain 'host' has been destroyed");
  CHECK_REFUSED(enqueue(f.stream, "add", old.x, 1, NULL), "buffer 'vector' has been destroyed");
  weir_buffer_destroy(old.x);
  weir_stream_destroy(old.stream);
  weir_place_destroy(old.places[0]);
  weir_runtime_destroy(old.runtime);
  CHECK_CONTAINS(weir_last_error(), "has been destroyed");
}

static void kernel_of_a_destroyed_runtime(void) {
  fixture old;
  weir_kernel* kernel = NULL;
  weir_compute compute = WEIR_COMPUTE_INIT;
  set_up(&old);
  require(weir_kernel_find(old.runtime, "add", &kernel));
  tear_down(&old);
  compute.kernel = kernel;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "kernel 'add' has been destroyed");
}

/* A dead object's memory is not given to a new one at once. */
static void many_dead_buffers(void) {
  weir_buffer* dead[100];
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  double* data = NULL;
  for (size_t i = 0; i < 100; ++i) {
    dead[i] = make_buffer(f.runtime, "gone", &data);
    weir_buffer_destroy(dead[i]);
  }
  for (size_t i = 0; i < 100; ++i) CHECK_REFUSED(weir_buffer_get_info(dead[i], &info), "'gone'");
}

static void handle_of_something_else(void) {
  static double something[64];
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  CHECK_REFUSED(weir_buffer_get_info((weir_buffer*)something, &info), "not a buffer");
  CHECK_REFUSED(weir_stream_synchronize((weir_stream*)something, SOON), "not a stream");
  CHECK_REFUSED(weir_runtime_synchronize((weir_runtime*)something, SOON), "not a runtime");
  weir_place_destroy((weir_place*)something);
  CHECK_CONTAINS(weir_last_error(), "not a place");
}

static void objects_of_another_runtime(void) {
  fixture foreign;
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  set_up(&foreign);
  const uint64_t before = enqueued(&f);
  CHECK_REFUSED(enqueue(f.stream, "add", foreign.x, 1, NULL), "buffer 'vector'");
  CHECK_CONTAINS(weir_last_error(), "another runtime");
  CHECK_CONTAINS(weir_last_error(), "stream 'left'");
  transfer.source.buffer = transfer.target.buffer = f.x;
  transfer.source.region = transfer.target.region = weir_region_range(0, 8);
  transfer.target.domain = foreign.domain;
  CHECK_REFUSED(weir_stream_transfer(f.stream, &transfer, NULL), "domain 'host'");
  CHECK_CONTAINS(weir_last_error(), "another runtime");
  CHECK(enqueued(&f) == before);
  tear_down(&foreign);
}

/* The first events of two runtimes would be the same except for the runtime. */
static void events_of_another_runtime(void) {
  fixture foreign;
  weir_event event = WEIR_EVENT_INIT;
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  set_up(&foreign);
  CHECK_OK(enqueue(foreign.stream, "add", foreign.x, 1, &event));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_REFUSED(wait_for(&f, event), "not an event of this runtime");
  CHECK_REFUSED(weir_event_get_info(f.runtime, &event, &info), "not an event of this runtime");
  CHECK_REFUSED(weir_stream_wait_event(f.stream, &event), "not an event of this runtime");
  CHECK_OK(wait_for(&foreign, event));
  tear_down(&foreign);
  CHECK_REFUSED(wait_for(&f, event), "not an event of this runtime");
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void kernel_of_another_runtime(void) {
  fixture foreign;
  weir_kernel* kernel = NULL;
  weir_compute compute = WEIR_COMPUTE_INIT;
  set_up(&foreign);
  require(weir_kernel_find(foreign.runtime, "fail", &kernel));
  compute.kernel = kernel;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "kernel 'fail'");
  CHECK_CONTAINS(weir_last_error(), "another runtime");
  weir_stream_synchronize(f.stream, SOON);
  tear_down(&foreign);
}

int main(void) {
  set_up(&f);
  RUN(destroyed_buffer);
  RUN(destroyed_stream);
  RUN(destroyed_place);
  RUN(destroyed_runtime);
  RUN(kernel_of_a_destroyed_runtime);
  RUN(many_dead_buffers);
  RUN(handle_of_something_else);
  RUN(objects_of_another_runtime);
  RUN(events_of_another_runtime);
  RUN(kernel_of_another_runtime);
  tear_down(&f);
  return check_failures != 0;
}
