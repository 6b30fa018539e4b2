/* Graphs from C: recording, launches, ends of life, and what they refuse. */
#include "fixture.h"

static weir_queue* make_queue_of(fixture* f) {
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  weir_queue* queue = NULL;
  options.name = "tasks";
  options.places = f->places;
  options.place_count = 1;
  options.no_models = true;
  require(weir_queue_create(f->runtime, &options, &queue));
  return queue;
}

static weir_graph* begin(weir_queue* queue, const char* name) {
  weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
  weir_graph* graph = NULL;
  options.queue = queue;
  options.name = name;
  require(weir_graph_begin(&options, &graph));
  return graph;
}

static weir_status submit(weir_queue* queue, const char* kernel, weir_buffer* buffer,
                          weir_scalar scalar) {
  const weir_operand operand = {buffer, weir_region_range(0, FIXTURE_BYTES),
                                WEIR_ACCESS_READ_WRITE};
  weir_task task = WEIR_TASK_INIT;
  task.kernel_name = kernel;
  task.operands = &operand;
  task.operand_count = 1;
  task.scalars = &scalar;
  task.scalar_count = 1;
  return weir_queue_submit(queue, &task, NULL);
}

static void launches_with_parameters_and_bindings(void) {
  fixture f;
  set_up(&f);
  weir_queue* const queue = make_queue_of(&f);
  weir_graph* const graph = begin(queue, "sweep");
  weir_graph_info info = WEIR_GRAPH_INFO_INIT;
  CHECK_OK(weir_graph_get_info(graph, &info));
  CHECK(info.recording && info.calls == 0);
  CHECK_OK(submit(queue, "add", f.x, weir_scalar_parameter(weir_scalar_f64(1), 0)));
  CHECK_OK(submit(queue, "add", f.x, weir_scalar_f64(10)));
  CHECK_OK(weir_graph_end(graph));
  CHECK_OK(weir_queue_synchronize(queue, SOON));
  const double before = f.x_data[0];

  weir_event done = WEIR_EVENT_INIT;
  CHECK_OK(weir_graph_launch(graph, NULL, &done));
  CHECK_OK(weir_event_wait(f.runtime, &done, 1, WEIR_WAIT_MODE_ALL, SOON, NULL));
  CHECK(f.x_data[0] == before + 11);

  weir_graph_launch_options nothing = WEIR_GRAPH_LAUNCH_OPTIONS_INIT;
  nothing.binding_count = 1;
  CHECK_REFUSED(weir_graph_launch(graph, &nothing, NULL), "of graph 'sweep' are given as NULL");
  nothing.binding_count = 0;
  nothing.parameter_count = 1;
  CHECK_REFUSED(weir_graph_launch(graph, &nothing, NULL), "of graph 'sweep' are given as NULL");

  const weir_scalar two = weir_scalar_f64(2);
  const weir_binding other = {f.x, f.y};
  weir_graph_launch_options options = WEIR_GRAPH_LAUNCH_OPTIONS_INIT;
  options.parameters = &two;
  options.parameter_count = 1;
  options.bindings = &other;
  options.binding_count = 1;
  const double y_before = f.y_data[FIXTURE_DOUBLES - 1];
  CHECK_OK(weir_graph_launch(graph, &options, NULL));
  CHECK_OK(weir_queue_synchronize(queue, SOON));
  CHECK(f.x_data[0] == before + 11 && f.y_data[FIXTURE_DOUBLES - 1] == y_before + 12);

  CHECK_OK(weir_graph_get_info(graph, &info));
  CHECK(strcmp(info.name, "sweep") == 0 && !info.recording && info.calls == 2);
  CHECK(info.buffers == 1 && info.parameters == 1 && info.launches == 2 && info.cores == 1);
  CHECK(info.dependences == 1 && info.waits == 0);
  weir_graph_destroy(graph);
  CHECK_REFUSED(weir_graph_launch(graph, NULL, NULL), "graph 'sweep' has been destroyed");
  tear_down(&f);
}

static void a_failed_call_is_named(void) {
  fixture f;
  set_up(&f);
  weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
  weir_graph* graph = NULL;
  weir_compute compute = WEIR_COMPUTE_INIT;
  const weir_operand operand = {f.x, weir_region_range(0, 8), WEIR_ACCESS_READ_WRITE};
  options.stream = f.stream;
  options.record_only = true;
  require(weir_graph_begin(&options, &graph));
  compute.kernel_name = "fail";
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.name = "tile";
  CHECK_OK(weir_stream_compute(f.stream, &compute, NULL));
  CHECK_OK(weir_graph_end(graph));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK_OK(weir_graph_launch(graph, NULL, NULL));
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR,
              "call 1 of 1, 'tile': tile 7 is broken");
  tear_down(&f);  // with the graph
}

static void bad_arguments_are_named(void) {
  fixture f;
  set_up(&f);
  weir_queue* const queue = make_queue_of(&f);
  weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
  weir_graph* graph = NULL;
  CHECK_REFUSED(weir_graph_begin(NULL, &graph), "options");
  CHECK_REFUSED(weir_graph_begin(&options, &graph), "give one of them");
  options.queue = queue;
  options.stream = f.stream;
  CHECK_REFUSED(weir_graph_begin(&options, &graph), "give one of them");
  CHECK_REFUSED(weir_graph_begin(&options, NULL), "out_graph");
  CHECK_REFUSED(weir_graph_end(NULL), "graph");
  CHECK_REFUSED(weir_graph_launch(NULL, NULL, NULL), "graph");

  graph = begin(queue, NULL);
  CHECK_REFUSED(weir_graph_launch(graph, NULL, NULL), "its recording has not ended");
  CHECK_REFUSED(submit(queue, "add", f.x, weir_scalar_parameter(weir_scalar_f64(1), 1000)),
                "parameter 1000 of graph");
  CHECK_REFUSED(weir_graph_end(graph), "has recorded no kernel call");
  weir_graph_destroy(graph);
  weir_graph_destroy(NULL);
  tear_down(&f);
}

static void a_recording_may_be_left(void) {
  fixture f;
  set_up(&f);
  weir_queue* const queue = make_queue_of(&f);
  weir_graph_destroy(begin(queue, "left"));
  CHECK_OK(submit(queue, "add", f.x, weir_scalar_f64(1)));  // unrecorded
  CHECK_OK(weir_queue_synchronize(queue, SOON));
  weir_graph* const open = begin(queue, "open");
  CHECK_OK(submit(queue, "add", f.x, weir_scalar_f64(1)));
  weir_queue_destroy(queue);
  CHECK_REFUSED(weir_graph_end(open), "queue 'tasks' has been destroyed");
  weir_graph_destroy(open);
  begin(make_queue_of(&f), "ends with the runtime");
  tear_down(&f);
}

int main(void) {
  RUN(launches_with_parameters_and_bindings);
  RUN(a_failed_call_is_named);
  RUN(bad_arguments_are_named);
  RUN(a_recording_may_be_left);
  return check_failures > 0;
}
