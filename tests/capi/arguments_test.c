/* NULL where something is needed, and structs of a wrong size. */
#include "fixture.h"

static fixture f;

static void null_out_parameters(void) {
  CHECK_REFUSED(weir_runtime_create(NULL, NULL), "out_runtime");
  CHECK_REFUSED(weir_runtime_find_domain(f.runtime, "host", NULL), "out_domain");
  CHECK_REFUSED(weir_runtime_get_stats(f.runtime, NULL), "out_stats");
  CHECK_REFUSED(weir_domain_get_info(f.domain, NULL), "out_info");
  CHECK_REFUSED(weir_place_create(f.domain, NULL, NULL), "out_place");
  CHECK_REFUSED(weir_domain_partition(f.domain, 1, true, NULL), "out_places");
  CHECK_REFUSED(weir_place_get_info(f.places[0], NULL), "out_info");
  CHECK_REFUSED(weir_buffer_create(f.runtime, 8, NULL, NULL), "out_buffer");
  CHECK_REFUSED(weir_buffer_wrap(f.runtime, &f, 8, NULL, NULL), "out_buffer");
  CHECK_REFUSED(weir_buffer_get_info(f.x, NULL), "out_info");
  CHECK_REFUSED(weir_buffer_find(f.runtime, f.x_data, NULL, NULL), "out_buffer");
  CHECK_REFUSED(weir_stream_create(f.places[0], NULL, NULL), "out_stream");
  CHECK_REFUSED(weir_kernel_find(f.runtime, "add", NULL), "out_kernel");
  const weir_event event = WEIR_EVENT_INIT;
  CHECK_REFUSED(weir_event_get_info(f.runtime, &event, NULL), "out_info");
  CHECK_REFUSED(weir_trace_summarize(f.runtime, NULL), "out_summary");
  CHECK_REFUSED(weir_runtime_describe(f.runtime, NULL, 10, NULL), "out_json");
}

static void null_runtime(void) {
  weir_domain* domain = NULL;
  weir_buffer* buffer = NULL;
  weir_kernel* kernel = NULL;
  weir_stats stats = WEIR_STATS_INIT;
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  weir_trace_summary summary = WEIR_TRACE_SUMMARY_INIT;
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  const weir_event event = WEIR_EVENT_INIT;
  char json[8];
  CHECK_REFUSED(weir_runtime_synchronize(NULL, SOON), "runtime");
  CHECK_REFUSED(weir_runtime_find_domain(NULL, "host", &domain), "runtime");
  CHECK_REFUSED(weir_runtime_get_stats(NULL, &stats), "runtime");
  CHECK_REFUSED(weir_runtime_describe(NULL, json, sizeof json, NULL), "runtime");
  CHECK_REFUSED(weir_buffer_create(NULL, 8, NULL, &buffer), "runtime");
  CHECK_REFUSED(weir_buffer_wrap(NULL, &f, 8, NULL, &buffer), "runtime");
  CHECK_REFUSED(weir_buffer_find(NULL, &f, &buffer, NULL), "runtime");
  CHECK_REFUSED(weir_kernel_register(NULL, &options, NULL), "runtime");
  CHECK_REFUSED(weir_kernel_register_portable(NULL, NULL, NULL), "runtime");
  CHECK_REFUSED(weir_kernel_find(NULL, "add", &kernel), "runtime");
  CHECK_REFUSED(weir_event_wait(NULL, &event, 1, WEIR_WAIT_MODE_ALL, 0, NULL), "runtime");
  CHECK_REFUSED(weir_event_get_info(NULL, &event, &info), "runtime");
  CHECK_REFUSED(weir_event_on_complete(NULL, &event, NULL, NULL), "runtime");
  CHECK_REFUSED(weir_trace_start(NULL, 0), "runtime");
  CHECK_REFUSED(weir_trace_stop(NULL), "runtime");
  CHECK_REFUSED(weir_trace_write(NULL, "trace.json"), "runtime");
  CHECK_REFUSED(weir_trace_summarize(NULL, &summary), "runtime");
  CHECK(weir_runtime_domain_count(NULL) == 0);
  CHECK(weir_runtime_get_domain(NULL, 0) == NULL);
  CHECK(weir_runtime_get_domain(f.runtime, 1) == NULL);
}

static void null_objects(void) {
  weir_place* place = NULL;
  weir_stream* stream = NULL;
  weir_buffer_info buffer = WEIR_BUFFER_INFO_INIT;
  weir_domain_info domain = WEIR_DOMAIN_INFO_INIT;
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  const weir_region region = weir_region_range(0, 8);
  const weir_compute compute = WEIR_COMPUTE_INIT;
  const weir_transfer transfer = WEIR_TRANSFER_INIT;
  const weir_sync sync = WEIR_SYNC_INIT;
  const weir_event event = WEIR_EVENT_INIT;
  CHECK_REFUSED(weir_domain_get_info(NULL, &domain), "domain");
  CHECK_REFUSED(weir_place_create(NULL, NULL, &place), "domain");
  CHECK_REFUSED(weir_domain_partition(NULL, 1, false, &place), "domain");
  CHECK_REFUSED(weir_place_get_info(NULL, &info), "place");
  CHECK_REFUSED(weir_buffer_get_info(NULL, &buffer), "buffer");
  CHECK_REFUSED(weir_stream_create(NULL, NULL, &stream), "place");
  CHECK_REFUSED(weir_stream_compute(NULL, &compute, NULL), "stream");
  CHECK_REFUSED(weir_stream_transfer(NULL, &transfer, NULL), "stream");
  CHECK_REFUSED(weir_stream_upload(NULL, f.x, region, NULL), "stream");
  CHECK_REFUSED(weir_stream_download(NULL, f.x, region, NULL), "stream");
  CHECK_REFUSED(weir_stream_sync(NULL, &sync, NULL), "stream");
  CHECK_REFUSED(weir_stream_wait_event(NULL, &event), "stream");
  CHECK_REFUSED(weir_stream_synchronize(NULL, SOON), "stream");
  CHECK_REFUSED(weir_stream_cancel(NULL), "stream");
  CHECK_REFUSED(weir_stream_upload(f.stream, NULL, region, NULL), "buffer");
  CHECK_REFUSED(weir_stream_download(f.stream, NULL, region, NULL), "buffer");
}

static void null_arguments(void) {
  weir_domain* domain = NULL;
  weir_kernel* kernel = NULL;
  weir_buffer* buffer = NULL;
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  const weir_event event = WEIR_EVENT_INIT;
  CHECK_REFUSED(weir_runtime_find_domain(f.runtime, NULL, &domain), "domain");
  CHECK_REFUSED(weir_kernel_find(f.runtime, NULL, &kernel), "kernel");
  CHECK_REFUSED(weir_kernel_register(f.runtime, NULL, NULL), "options");
  CHECK_REFUSED(weir_kernel_register_portable(f.runtime, NULL, NULL), "options");
  CHECK_REFUSED(weir_buffer_wrap(f.runtime, NULL, 8, NULL, &buffer), "NULL");
  CHECK_REFUSED(weir_stream_compute(f.stream, NULL, NULL), "compute");
  CHECK_REFUSED(weir_stream_transfer(f.stream, NULL, NULL), "transfer");
  CHECK_REFUSED(weir_stream_sync(f.stream, NULL, NULL), "sync");
  CHECK_REFUSED(weir_stream_wait_event(f.stream, NULL), "event");
  CHECK_REFUSED(weir_event_wait(f.runtime, NULL, 1, WEIR_WAIT_MODE_ALL, 0, NULL), "events");
  CHECK_REFUSED(weir_event_get_info(f.runtime, NULL, &info), "event");
  CHECK_REFUSED(weir_event_on_complete(f.runtime, &event, NULL, NULL), "callback");
  CHECK_REFUSED(weir_trace_write(f.runtime, NULL), "path");
}

/* A count that says that there is something behind a NULL pointer. */
static void null_operands(void) {
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "add";
  compute.operand_count = 2;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "operands");
}

static void null_scalars(void) {
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "add";
  compute.scalar_count = 2;
  CHECK_REFUSED(weir_stream_compute(f.stream, &compute, NULL), "scalars");
}

static void null_sync_events(void) {
  weir_sync sync = WEIR_SYNC_INIT;
  sync.event_count = 2;
  CHECK_REFUSED(weir_stream_sync(f.stream, &sync, NULL), "events");
}

static void null_sync_operands(void) {
  weir_sync sync = WEIR_SYNC_INIT;
  sync.operand_count = 2;
  sync.scope = WEIR_SYNC_SCOPE_OPERANDS;
  CHECK_REFUSED(weir_stream_sync(f.stream, &sync, NULL), "operands");
}

static void null_is_destroyed_silently(void) {
  weir_runtime_destroy(NULL);
  weir_place_destroy(NULL);
  weir_stream_destroy(NULL);
  weir_buffer_destroy(NULL);
}

/* Every struct, with sizes that no version has. */
#define CHECK_SIZES(type, init, expression)                                            \
  do {                                                                                 \
    const size_t sizes[] = {0, 1, sizeof(size_t) - 1, sizeof(type) - 4, SIZE_MAX - 7}; \
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {                        \
      type given = init;                                                               \
      given.struct_size = sizes[i];                                                    \
      CHECK_REFUSED(expression, "struct_size");                                        \
    }                                                                                  \
  } while (0)

static void wrong_struct_sizes(void) {
  weir_runtime* runtime = NULL;
  weir_place* place = NULL;
  weir_buffer* buffer = NULL;
  weir_stream* stream = NULL;
  const weir_event event = WEIR_EVENT_INIT;
  CHECK_SIZES(weir_runtime_options, WEIR_RUNTIME_OPTIONS_INIT,
              weir_runtime_create(&given, &runtime));
  CHECK_SIZES(weir_place_options, WEIR_PLACE_OPTIONS_INIT,
              weir_place_create(f.domain, &given, &place));
  CHECK_SIZES(weir_buffer_options, WEIR_BUFFER_OPTIONS_INIT,
              weir_buffer_create(f.runtime, 8, &given, &buffer));
  CHECK_SIZES(weir_stream_options, WEIR_STREAM_OPTIONS_INIT,
              weir_stream_create(f.places[0], &given, &stream));
  CHECK_SIZES(weir_kernel_options, WEIR_KERNEL_OPTIONS_INIT,
              weir_kernel_register(f.runtime, &given, NULL));
  CHECK_SIZES(weir_portable_options, WEIR_PORTABLE_OPTIONS_INIT,
              weir_kernel_register_portable(f.runtime, &given, NULL));
  CHECK_SIZES(weir_compute, WEIR_COMPUTE_INIT, weir_stream_compute(f.stream, &given, NULL));
  CHECK_SIZES(weir_transfer, WEIR_TRANSFER_INIT, weir_stream_transfer(f.stream, &given, NULL));
  CHECK_SIZES(weir_sync, WEIR_SYNC_INIT, weir_stream_sync(f.stream, &given, NULL));
  CHECK_SIZES(weir_stats, WEIR_STATS_INIT, weir_runtime_get_stats(f.runtime, &given));
  CHECK_SIZES(weir_domain_info, WEIR_DOMAIN_INFO_INIT, weir_domain_get_info(f.domain, &given));
  CHECK_SIZES(weir_place_info, WEIR_PLACE_INFO_INIT, weir_place_get_info(f.places[0], &given));
  CHECK_SIZES(weir_buffer_info, WEIR_BUFFER_INFO_INIT, weir_buffer_get_info(f.x, &given));
  CHECK_SIZES(weir_event_info, WEIR_EVENT_INFO_INIT,
              weir_event_get_info(f.runtime, &event, &given));
  CHECK_SIZES(weir_trace_summary, WEIR_TRACE_SUMMARY_INIT, weir_trace_summarize(f.runtime, &given));
}

/* A program built with an older version has shorter structs: what it lacks keeps its default. */
static void older_struct(void) {
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  options.struct_size = offsetof(weir_stream_options, policy);
  options.policy = (weir_dependence_policy)77;  // not there for the older program
  options.priority = 77;
  weir_stream* stream = NULL;
  CHECK_OK(weir_stream_create(f.places[0], &options, &stream));
  weir_stream_destroy(stream);
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  info.struct_size = offsetof(weir_buffer_info, bytes);
  info.bytes = 77;
  CHECK_OK(weir_buffer_get_info(f.x, &info));
  CHECK(info.bytes == 77);
  CHECK(strcmp(info.name, "vector") == 0);
}

static void wrong_enumerators(void) {
  const weir_event event = WEIR_EVENT_INIT;
  weir_stream* stream = NULL;
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  options.policy = (weir_dependence_policy)9;
  CHECK_REFUSED(weir_stream_create(f.places[0], &options, &stream), "9");
  options.policy = WEIR_DEPENDENCE_POLICY_OPERANDS;
  options.priority = 2;
  CHECK_REFUSED(weir_stream_create(f.places[0], &options, &stream), "priority 2");
  weir_sync sync = WEIR_SYNC_INIT;
  sync.scope = (weir_sync_scope)9;
  CHECK_REFUSED(weir_stream_sync(f.stream, &sync, NULL), "scope 9");
  CHECK_REFUSED(weir_event_wait(f.runtime, &event, 1, (weir_wait_mode)9, 0, NULL), "mode 9");
  weir_buffer_options buffer = WEIR_BUFFER_OPTIONS_INIT;
  weir_buffer* made = NULL;
  buffer.kind = (weir_memory_kind)9;
  CHECK_REFUSED(weir_buffer_create(f.runtime, 8, &buffer, &made), "9");
  CHECK(strcmp(weir_status_name((weir_status)77), "unknown") == 0);
}

int main(void) {
  set_up(&f);
  const uint64_t before = enqueued(&f);
  RUN(null_out_parameters);
  RUN(null_runtime);
  RUN(null_objects);
  RUN(null_arguments);
  RUN(null_is_destroyed_silently);
  RUN(wrong_struct_sizes);
  RUN(older_struct);
  RUN(wrong_enumerators);
  RUN(null_operands);
  RUN(null_scalars);
  RUN(null_sync_events);
  RUN(null_sync_operands);
  CHECK(enqueued(&f) == before);
  tear_down(&f);
  return check_failures != 0;
}
