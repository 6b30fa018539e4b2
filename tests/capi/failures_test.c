/* Failing kernels, what depends on them, what does not, and cancellation. */
#include "fixture.h"

static fixture f;

static void a_failure_poisons_what_depends_on_it(void) {
  weir_event root = WEIR_EVENT_INIT;
  weir_event dependent = WEIR_EVENT_INIT;
  weir_event grandchild = WEIR_EVENT_INIT;
  weir_event independent = WEIR_EVENT_INIT;
  f.x_data[0] = 5;
  f.y_data[0] = 10;
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, &root));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &dependent));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &grandchild));
  CHECK_OK(enqueue(f.stream, "add", f.y, 1, &independent));
  CHECK_FAILS(wait_for(&f, root), WEIR_STATUS_KERNEL_ERROR, "action 'fail'");
  CHECK_CONTAINS(weir_last_error(), "tile 7 is broken");
  CHECK_CONTAINS(weir_last_error(), "stream 'left'");
  CHECK_FAILS(wait_for(&f, dependent), WEIR_STATUS_POISONED, "action 'fail'");
  CHECK_CONTAINS(weir_last_error(), "tile 7 is broken");
  CHECK_FAILS(wait_for(&f, grandchild), WEIR_STATUS_POISONED, "action 'fail'");
  CHECK_OK(wait_for(&f, independent));
  CHECK(f.x_data[0] == 5);
  CHECK(f.y_data[0] == 11);
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "action 'fail'");
}

static void synchronize_reports_once(void) {
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, NULL));
  CHECK_OK(enqueue(f.stream, "fail", f.y, 0, NULL));
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "action 'fail'");
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  f.x_data[0] = 5;
  CHECK_OK(enqueue(f.stream, "add", f.x, 2, NULL));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK(f.x_data[0] == 7);
}

static void a_failure_crosses_streams_by_events(void) {
  weir_event root = WEIR_EVENT_INIT;
  weir_event after = WEIR_EVENT_INIT;
  f.y_data[0] = 10;
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, &root));
  CHECK_OK(weir_stream_wait_event(f.other, &root));
  CHECK_OK(enqueue(f.other, "add", f.y, 1, &after));
  CHECK_FAILS(wait_for(&f, after), WEIR_STATUS_POISONED, "action 'fail' of stream 'left'");
  CHECK_FAILS(weir_stream_synchronize(f.other, SOON), WEIR_STATUS_POISONED, "'fail'");
  CHECK_FAILS(weir_runtime_synchronize(f.runtime, SOON), WEIR_STATUS_KERNEL_ERROR, "'fail'");
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
  CHECK(f.y_data[0] == 10);
}

static void the_runtime_reports_the_stream_created_first(void) {
  CHECK_OK(enqueue(f.other, "fail", f.y, 0, NULL));
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, NULL));
  CHECK_FAILS(weir_runtime_synchronize(f.runtime, SOON), WEIR_STATUS_KERNEL_ERROR, "stream 'left'");
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
}

static weir_status silent_kernel(const weir_call* call) {
  (void)call;
  return WEIR_STATUS_DEVICE_ERROR;
}
static weir_status ok_fail_kernel(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_OK, "said ok");
}
static weir_status forgetful_kernel(const weir_call* call) {
  weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "thought better of it");
  return WEIR_STATUS_OK;
}
static weir_status long_kernel(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "%5000d", 7);
}
static weir_status lines_kernel(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "first line\nsecond line");
}

static weir_status run_once(const char* kernel) {
  require(enqueue(f.stream, kernel, f.x, 0, NULL));
  return weir_stream_synchronize(f.stream, SOON);
}

static void ways_to_fail(void) {
  register_kernel(f.runtime, "silent", silent_kernel, NULL);
  register_kernel(f.runtime, "ok", ok_fail_kernel, NULL);
  register_kernel(f.runtime, "long", long_kernel, NULL);
  CHECK_FAILS(run_once("silent"), WEIR_STATUS_DEVICE_ERROR, "action 'silent'");
  CHECK_CONTAINS(weir_last_error(), "device_error");
  CHECK_FAILS(run_once("ok"), WEIR_STATUS_KERNEL_ERROR, "said ok");
  CHECK_FAILS(run_once("long"), WEIR_STATUS_KERNEL_ERROR, "action 'long'");
}

/* A message belongs to the call that gave it. */
static void a_withdrawn_message_is_forgotten(void) {
  register_kernel(f.runtime, "forgetful", forgetful_kernel, NULL);
  CHECK_OK(run_once("forgetful"));
  CHECK_FAILS(run_once("silent"), WEIR_STATUS_DEVICE_ERROR, "action 'silent'");
  CHECK(strstr(weir_last_error(), "better") == NULL);
}

static void messages_are_one_line(void) {
  register_kernel(f.runtime, "lines", lines_kernel, NULL);
  CHECK_FAILS(run_once("lines"), WEIR_STATUS_KERNEL_ERROR, "first line");
}

static void action_names_are_in_messages(void) {
  const weir_operand operand = {f.x, weir_region_range(0, 8), WEIR_ACCESS_READ};
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "fail";
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.name = "factor (3,4)";
  CHECK_OK(weir_stream_compute(f.stream, &compute, NULL));
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR,
              "action 'factor (3,4)'");
}

/* Synchronise does not report what the program itself wanted. */
static void cancelled_actions_do_not_run(void) {
  weir_event events[3] = {WEIR_EVENT_INIT, WEIR_EVENT_INIT, WEIR_EVENT_INIT};
  f.x_data[0] = 5;
  f.y_data[0] = 10;
  const weir_event running = close_gate(&f, f.stream, f.x);
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &events[0]));
  CHECK_OK(enqueue(f.stream, "add", f.y, 1, &events[1]));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &events[2]));
  CHECK_OK(weir_stream_cancel(f.stream));
  open_gate(&f);
  CHECK_OK(wait_for(&f, running));
  for (size_t i = 0; i < 3; ++i) {
    CHECK_FAILS(wait_for(&f, events[i]), WEIR_STATUS_CANCELLED, "stream 'left'");
  }
  CHECK(f.x_data[0] == 5);
  CHECK(f.y_data[0] == 10);
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK(f.x_data[0] == 6);
}

static void cancelling_nothing(void) {
  CHECK_OK(weir_stream_cancel(f.stream));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

/* Cancelling a stream that waits for an event of another one, which goes on. */
static void cancelling_a_wait(void) {
  weir_event waiting = WEIR_EVENT_INIT;
  const weir_event gate = close_gate(&f, f.stream, f.x);
  CHECK_OK(weir_stream_wait_event(f.other, &gate));
  CHECK_OK(enqueue(f.other, "add", f.y, 1, &waiting));
  CHECK_OK(weir_stream_cancel(f.other));
  open_gate(&f);
  CHECK_FAILS(wait_for(&f, waiting), WEIR_STATUS_CANCELLED, "stream 'right'");
  CHECK_OK(wait_for(&f, gate));
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
}

static void failures_are_counted(void) {
  weir_stats before = WEIR_STATS_INIT;
  weir_stats after = WEIR_STATS_INIT;
  require(weir_runtime_get_stats(f.runtime, &before));
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, NULL));
  CHECK_OK(enqueue(f.stream, "add", f.x, 0, NULL));
  CHECK_OK(enqueue(f.stream, "add", f.y, 0, NULL));
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "'fail'");
  require(weir_runtime_get_stats(f.runtime, &after));
  CHECK(after.actions_failed - before.actions_failed == 2);
  CHECK(after.actions_enqueued == after.actions_completed);
}

/* Names are any bytes, messages are one line. */
static void names_of_several_lines(void) {
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  weir_stream* stream = NULL;
  weir_event event = WEIR_EVENT_INIT;
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  options.name = "two\nlines\x1b[31m";
  CHECK_OK(weir_stream_create(f.places[0], &options, &stream));
  CHECK_OK(enqueue(stream, "fail", f.x, 0, &event));
  CHECK_FAILS(weir_stream_synchronize(stream, SOON), WEIR_STATUS_KERNEL_ERROR, "'two lines [31m'");
  CHECK_OK(weir_event_get_info(f.runtime, &event, &info));
  CHECK_CONTAINS(info.message, "'two lines [31m'");
  weir_stream_destroy(stream);
  CHECK_REFUSED(weir_stream_cancel(stream), "'two lines [31m'");
  CHECK_FAILS(weir_kernel_find(f.runtime, "no\r\nkernel", &(weir_kernel*){NULL}),
              WEIR_STATUS_NOT_FOUND, "'no  kernel'");
}

static weir_status cancel_own_stream(const weir_call* call) {
  weir_stream* stream = NULL;
  memcpy(&stream, &call->scalars[0].value.u64, sizeof stream);
  return weir_stream_cancel(stream);
}

/* What was ready to run when the stream was cancelled completes without any other news. */
static void a_kernel_cancels_its_stream(const char* domains) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_place_options one_core = WEIR_PLACE_OPTIONS_INIT;
  weir_runtime* runtime = NULL;
  weir_place* place = NULL;
  weir_event events[3];
  options.domains = domains;
  one_core.core_count = 1;
  require(weir_runtime_create(&options, &runtime));
  require(weir_place_create(weir_runtime_get_domain(runtime, 0), &one_core, &place));
  weir_stream* const stream = make_stream(place, "cancelled");
  const weir_scalar scalar = weir_scalar_u64((uint64_t)(uintptr_t)stream);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = register_kernel(runtime, "cancel", cancel_own_stream, NULL);
  compute.scalars = &scalar;
  compute.scalar_count = 1;
  for (size_t i = 0; i < 3; ++i) CHECK_OK(weir_stream_compute(stream, &compute, &events[i]));
  CHECK_FAILS(weir_event_wait(runtime, events, 3, WEIR_WAIT_MODE_ALL, SOON, NULL),
              WEIR_STATUS_CANCELLED, "stream 'cancelled'");
  CHECK_OK(weir_stream_synchronize(stream, SOON));
  weir_runtime_destroy(runtime);
}

static void a_kernel_cancels_its_stream_on_the_host(void) { a_kernel_cancels_its_stream("host"); }
static void a_kernel_cancels_its_stream_on_a_card(void) { a_kernel_cancels_its_stream("sim"); }
static void a_kernel_cancels_its_stream_in_virtual_time(void) {
  a_kernel_cancels_its_stream("sim:clock=virtual");
}

int main(void) {
  set_up(&f);
  RUN(a_failure_poisons_what_depends_on_it);
  RUN(synchronize_reports_once);
  RUN(a_failure_crosses_streams_by_events);
  RUN(the_runtime_reports_the_stream_created_first);
  RUN(ways_to_fail);
  RUN(a_withdrawn_message_is_forgotten);
  RUN(messages_are_one_line);
  RUN(action_names_are_in_messages);
  RUN(cancelled_actions_do_not_run);
  RUN(cancelling_nothing);
  RUN(cancelling_a_wait);
  RUN(failures_are_counted);
  RUN(names_of_several_lines);
  RUN(a_kernel_cancels_its_stream_on_the_host);
  RUN(a_kernel_cancels_its_stream_on_a_card);
  RUN(a_kernel_cancels_its_stream_in_virtual_time);
  tear_down(&f);
  return check_failures != 0;
}
