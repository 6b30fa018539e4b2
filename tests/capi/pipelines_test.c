/* Pipelines in C: a sum of squares, and what is refused. */
#include "fixture.h"

static weir_runtime* runtime;

typedef struct numbers {
  uint64_t next, end, sum;
} numbers;

static weir_status count_up(weir_batch* batch) {
  numbers* state = batch->payload;
  for (size_t i = 0; i < batch->count && state->next < state->end; ++i) {
    uint64_t* item = weir_outlet_add(batch->outlets[0]);
    if (item == NULL) return WEIR_STATUS_OUT_OF_MEMORY;
    *item = state->next++;
  }
  batch->over = state->next == state->end;
  return WEIR_STATUS_OK;
}

static weir_status add_up(weir_batch* batch) {
  numbers* state = batch->payload;
  const uint64_t* items = batch->items;
  for (size_t i = 0; i < batch->count; ++i) state->sum += items[i];
  return WEIR_STATUS_OK;
}

static weir_status refuse_items(weir_batch* batch) {
  return weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "item %d is broken", 7);
}

static weir_tunnel* add_tunnel(weir_pipeline* pipeline, const char* name) {
  weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
  weir_tunnel* tunnel = NULL;
  options.name = name;
  options.item_bytes = sizeof(uint64_t);
  CHECK_OK(weir_pipeline_add_tunnel(pipeline, &options, &tunnel));
  return tunnel;
}

static weir_pipeline* make(numbers* state, weir_stage_function sink) {
  weir_pipeline* pipeline = NULL;
  weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
  weir_tunnel* tunnel = NULL;
  require(weir_pipeline_create(runtime, NULL, &pipeline));
  tunnel = add_tunnel(pipeline, "numbers");
  options.name = "count";
  options.outputs = &tunnel;
  options.output_count = 1;
  options.function = count_up;
  options.payload = state;
  CHECK_OK(weir_pipeline_add_stage(pipeline, &options));
  options.name = "add";
  options.input = tunnel;
  options.output_count = 0;
  options.function = sink;
  options.workers = 1;
  CHECK_OK(weir_pipeline_add_stage(pipeline, &options));
  return pipeline;
}

static void a_sum(void) {
  numbers state = {0, 100000, 0};
  weir_pipeline* pipeline = make(&state, add_up);
  weir_pipeline_info info = WEIR_PIPELINE_INFO_INIT;
  weir_stage_info stage;
  CHECK_OK(weir_pipeline_start(pipeline));
  CHECK_OK(weir_pipeline_wait(pipeline, WEIR_FOREVER));
  CHECK(state.sum == UINT64_C(99999) * 100000 / 2);
  CHECK_OK(weir_pipeline_get_info(pipeline, &info, &stage, 1));
  CHECK(info.at_end && info.stages == 1 && stage.created == 100000 && stage.complete == 100000);
  weir_pipeline_destroy(pipeline);
}

/* Keeps each item, completes it at once, and is refused when it does so again. */
static weir_status keep_and_complete(weir_batch* batch) {
  for (size_t i = 0; i < batch->count; ++i) {
    weir_item* item = NULL;
    CHECK_OK(weir_item_keep(batch, i, &item));
    CHECK_OK(weir_item_complete(item));
    CHECK_REFUSED(weir_item_complete(item), "is complete already");
  }
  return add_up(batch);
}

static void items_that_are_kept(void) {
  numbers state = {0, 1000, 0};
  weir_pipeline* pipeline = make(&state, keep_and_complete);
  CHECK_OK(weir_pipeline_run(pipeline));
  CHECK(state.sum == 999 * 1000 / 2);
  weir_pipeline_destroy(pipeline);
  CHECK_REFUSED(weir_item_keep(NULL, 0, NULL), "out_item");
}

static void states(void) {
  numbers state = {0, 1000, 0};
  weir_pipeline* pipeline = make(&state, add_up);
  weir_pipeline_info info = WEIR_PIPELINE_INFO_INIT;
  weir_stage_state source = WEIR_STAGE_STATE_INIT, sink = WEIR_STAGE_STATE_INIT;
  weir_tunnel_state tunnel = WEIR_TUNNEL_STATE_INIT;
  int64_t age = 0;
  CHECK_OK(weir_pipeline_get_stage(pipeline, 0, &source));
  CHECK_OK(weir_pipeline_run(pipeline));
  CHECK_OK(weir_pipeline_get_info(pipeline, &info, NULL, 0));
  CHECK(info.all_stages == 2 && info.tunnels == 1 && info.elapsed_ns > 0);
  CHECK_OK(weir_pipeline_get_stage(pipeline, 0, &source));
  CHECK_OK(weir_pipeline_get_stage(pipeline, 1, &sink));
  CHECK_OK(weir_pipeline_get_tunnel(pipeline, 0, &tunnel));
  CHECK(source.input == SIZE_MAX && source.output_count == 1 && source.outputs[0] == 0);
  CHECK(source.put == 1000 && sink.complete == 1000 && sink.workers == 1 && sink.at_end);
  CHECK(tunnel.stage == 1 && tunnel.created == 1000 && tunnel.waiting + tunnel.under_way == 0);
  CHECK_OK(weir_latency_percentile(&sink.latency, NULL, 50, &age));
  CHECK(age > 0);
  CHECK_OK(weir_latency_percentile(&sink.latency, &sink.latency, 50, &age));
  CHECK(age == -1);
  CHECK_REFUSED(weir_latency_percentile(&sink.latency, NULL, 0, &age), "percentile 0");
  CHECK_REFUSED(weir_pipeline_get_stage(pipeline, 2, &sink), "it has 2");
  CHECK_REFUSED(weir_pipeline_get_tunnel(pipeline, 1, &tunnel), "it has 1");
  weir_pipeline_destroy(pipeline);
}

static void an_item_that_fails(void) {
  numbers state = {0, 1000, 0};
  weir_pipeline* pipeline = make(&state, refuse_items);
  CHECK(weir_pipeline_run(pipeline) == WEIR_STATUS_KERNEL_ERROR);
  CHECK_CONTAINS(weir_last_error(), "stage 'add': item 7 is broken");
  weir_pipeline_destroy(pipeline);
}

static void what_is_refused(void) {
  weir_pipeline* pipeline = NULL;
  weir_tunnel* tunnel = NULL;
  weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
  weir_stage_options stage = WEIR_STAGE_OPTIONS_INIT;
  CHECK_REFUSED(weir_pipeline_create(NULL, NULL, &pipeline), "NULL");
  CHECK_OK(weir_pipeline_create(runtime, NULL, &pipeline));
  CHECK_REFUSED(weir_pipeline_add_tunnel(pipeline, &options, &tunnel), "0 bytes");
  options.item_bytes = 8;
  options.overflow = (weir_overflow)17;
  CHECK_REFUSED(weir_pipeline_add_tunnel(pipeline, &options, &tunnel), "overflow 17");
  CHECK_REFUSED(weir_pipeline_add_stage(pipeline, &stage), "no function");
  CHECK_REFUSED(weir_pipeline_start(pipeline), "no stages");
  CHECK_REFUSED(weir_pipeline_wait(pipeline, 0), "not started");
  CHECK_REFUSED(weir_feed_open(NULL, NULL), "out_feed");
  weir_pipeline_destroy(pipeline);
  weir_pipeline_destroy(NULL);
  weir_feed_close(NULL);
  CHECK_REFUSED(weir_pipeline_start(pipeline), "destroyed");
}

/* What a kernel and a stencil need, and the messages without it. */
static void what_devices_are_refused(void) {
  numbers state = {0, 1, 0};
  weir_pipeline* pipeline = NULL;
  weir_place* place = NULL;
  weir_buffer* result = NULL;
  weir_stencil* stencil = NULL;
  weir_place_options shared = WEIR_PLACE_OPTIONS_INIT;
  weir_stage_options stage = WEIR_STAGE_OPTIONS_INIT;
  weir_stage_kernel kernel = WEIR_STAGE_KERNEL_INIT;
  weir_stencil_options options = WEIR_STENCIL_OPTIONS_INIT;
  weir_tunnel_options wide = WEIR_TUNNEL_OPTIONS_INIT;
  shared.core_count = 1;
  shared.oversubscribe = true;
  require(weir_place_create(weir_runtime_get_domain(runtime, 0), &shared, &place));
  require(weir_pipeline_create(runtime, NULL, &pipeline));
  stage.name = "halve";
  stage.input = add_tunnel(pipeline, "raw");
  stage.kernel = &kernel;
  CHECK_REFUSED(weir_pipeline_add_stage(pipeline, &stage), "no place");
  stage.place = place;
  CHECK_REFUSED(weir_pipeline_add_stage(pipeline, &stage), "kernel");
  kernel.kernel_name = "no.such";
  CHECK_FAILS(weir_pipeline_add_stage(pipeline, &stage), WEIR_STATUS_NOT_FOUND, "no.such");
  kernel.kernel_name = "mem.copy";
  kernel.in_flight = 1000;
  CHECK_REFUSED(weir_pipeline_add_stage(pipeline, &stage), "1000 in flight");
  kernel.in_flight = 0;
  stage.function = add_up;
  stage.payload = &state;
  CHECK_REFUSED(weir_pipeline_add_stage(pipeline, &stage), "a kernel and a function");
  stage.function = NULL;
  stage.input = NULL;
  CHECK_REFUSED(weir_pipeline_add_stage(pipeline, &stage), "no input");

  options.name = "blur";
  options.kernel_name = "mem.copy";
  options.place = place;
  options.input = add_tunnel(pipeline, "narrow");
  CHECK_REFUSED(weir_pipeline_add_stencil(pipeline, &options, &stencil), "items of 8 bytes");
  wide.item_bytes = sizeof(weir_stencil_region);
  CHECK_OK(weir_pipeline_add_tunnel(pipeline, &wide, &options.input));
  CHECK_REFUSED(weir_pipeline_add_stencil(pipeline, &options, &stencil), "0 rows");
  options.rows = 30;
  options.columns = 20;
  options.value_bytes = 8;
  require(weir_buffer_create(runtime, 100, NULL, &result));
  options.result = result;
  CHECK_REFUSED(weir_pipeline_add_stencil(pipeline, &options, &stencil), "100 bytes");
  options.rows = 5;
  options.columns = 5;
  options.value_bytes = 4;
  CHECK_OK(weir_pipeline_add_stencil(pipeline, &options, &stencil));
  {
    weir_stencil_info info = WEIR_STENCIL_INFO_INIT;
    CHECK_OK(weir_stencil_get_info(stencil, &info));
    CHECK(info.regions == 1 && info.regions_copied == 0 && info.tiles_made == 0);
  }
  CHECK_REFUSED(weir_stencil_set(stencil, NULL, 0, 0, 1, 1, &state, 1), "outlet");
  CHECK_REFUSED(weir_stencil_get_info(NULL, NULL), "stencil");
  weir_pipeline_destroy(pipeline);
  weir_buffer_destroy(result);
  weir_place_destroy(place);
}

int main(void) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host";
  require(weir_runtime_create(&options, &runtime));
  RUN(a_sum);
  RUN(items_that_are_kept);
  RUN(states);
  RUN(an_item_that_fails);
  RUN(what_is_refused);
  RUN(what_devices_are_refused);
  weir_runtime_destroy(runtime);
  return check_failures != 0;
}
