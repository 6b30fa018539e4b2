/* A runtime with two places, a stream on each, two buffers and a few kernels. */
#pragma once

#include "check.h"

#include <semaphore.h>
#include <stdlib.h>

enum { FIXTURE_DOUBLES = 64, FIXTURE_BYTES = FIXTURE_DOUBLES * 8 };

/** Kernels: "add" adds scalar 0 to operand 0, "fail" fails with a message, "gate" waits. */
typedef struct fixture {
  weir_runtime* runtime;
  weir_domain* domain;
  weir_place* places[2]; /**< one thread each, also on a machine of one core */
  weir_stream* stream;   /**< "left", on places[0] */
  weir_stream* other;    /**< "right", on places[1] */
  weir_buffer* x;        /**< "vector" */
  weir_buffer* y;        /**< "result" */
  double* x_data;
  double* y_data;
  sem_t entered; /**< posted by each "gate" that starts */
  sem_t opened;  /**< lets one "gate" end for each post */
} fixture;

static inline void require(weir_status status) {
  if (status == WEIR_STATUS_OK) return;
  printf("set-up: %s: %s\n", weir_status_name(status), weir_last_error());
  exit(2);
}

static inline weir_status add_kernel(const weir_call* call) {
  double* values = call->operands[0].address;
  const size_t count = call->operands[0].extent[0] / sizeof *values;
  for (size_t i = 0; i < count; ++i) values[i] += call->scalars[0].value.f64;
  return WEIR_STATUS_OK;
}

static inline weir_status fail_kernel(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "tile %d is broken", 7);
}

static inline weir_status gate_kernel(const weir_call* call) {
  fixture* f = call->payload;
  sem_post(&f->entered);
  sem_wait(&f->opened);
  return WEIR_STATUS_OK;
}

static inline weir_kernel* register_kernel(weir_runtime* runtime, const char* name,
                                           weir_host_function function, void* payload) {
  const weir_implementation code = {"host", function, payload};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  weir_kernel* kernel = NULL;
  options.name = name;
  options.implementations = &code;
  options.implementation_count = 1;
  require(weir_kernel_register(runtime, &options, &kernel));
  return kernel;
}

static inline weir_stream* make_stream(weir_place* place, const char* name) {
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  weir_stream* stream = NULL;
  options.name = name;
  require(weir_stream_create(place, &options, &stream));
  return stream;
}

static inline weir_buffer* make_buffer(weir_runtime* runtime, const char* name, double** out_data) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  weir_buffer* buffer = NULL;
  options.name = name;
  require(weir_buffer_create(runtime, FIXTURE_BYTES, &options, &buffer));
  require(weir_buffer_get_info(buffer, &info));
  *out_data = info.address;
  return buffer;
}

static inline void set_up_with_deadline(fixture* f, int64_t shutdown_timeout_ns) {
  memset(f, 0, sizeof *f);
  sem_init(&f->entered, 0, 0);
  sem_init(&f->opened, 0, 0);
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host";
  options.shutdown_timeout_ns = shutdown_timeout_ns;
  require(weir_runtime_create(&options, &f->runtime));
  f->domain = weir_runtime_get_domain(f->runtime, 0);
  const uint32_t core = 0;
  weir_place_options place = WEIR_PLACE_OPTIONS_INIT;
  place.cores = &core;
  place.core_count = 1;
  place.oversubscribe = true;
  require(weir_place_create(f->domain, &place, &f->places[0]));
  require(weir_place_create(f->domain, &place, &f->places[1]));
  f->stream = make_stream(f->places[0], "left");
  f->other = make_stream(f->places[1], "right");
  f->x = make_buffer(f->runtime, "vector", &f->x_data);
  f->y = make_buffer(f->runtime, "result", &f->y_data);
  register_kernel(f->runtime, "add", add_kernel, NULL);
  register_kernel(f->runtime, "fail", fail_kernel, NULL);
  register_kernel(f->runtime, "gate", gate_kernel, f);
}

static inline void set_up(fixture* f) { set_up_with_deadline(f, WEIR_FOREVER); }

static inline void tear_down(fixture* f) {
  weir_runtime_destroy(f->runtime);
  sem_destroy(&f->entered);
  sem_destroy(&f->opened);
}

/** Enqueues a kernel that reads and writes a whole buffer; adds `value` if it is "add". */
static inline weir_status enqueue(weir_stream* stream, const char* kernel, weir_buffer* buffer,
                                  double value, weir_event* out_event) {
  const weir_operand operand = {buffer, weir_region_range(0, FIXTURE_BYTES),
                                WEIR_ACCESS_READ_WRITE};
  const weir_scalar scalar = weir_scalar_f64(value);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = kernel;
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.scalars = &scalar;
  compute.scalar_count = 1;
  return weir_stream_compute(stream, &compute, out_event);
}

/** Enqueues a "gate" on a buffer and waits until it runs. open_gate() lets it end. */
static inline weir_event close_gate(fixture* f, weir_stream* stream, weir_buffer* buffer) {
  weir_event event = WEIR_EVENT_INIT;
  require(enqueue(stream, "gate", buffer, 0, &event));
  sem_wait(&f->entered);
  return event;
}

static inline void open_gate(fixture* f) { sem_post(&f->opened); }

static inline weir_status wait_for(fixture* f, weir_event event) {
  return weir_event_wait(f->runtime, &event, 1, WEIR_WAIT_MODE_ALL, SOON, NULL);
}

static inline uint64_t enqueued(const fixture* f) {
  weir_stats stats = WEIR_STATS_INIT;
  require(weir_runtime_get_stats(f->runtime, &stats));
  return stats.actions_enqueued;
}
