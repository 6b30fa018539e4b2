/* External actions: order, completion by any thread, failures, cancellation, wrong completions. */
#include "fixture.h"

#include <pthread.h>

static fixture f;

/* An operation that the program performs when the test says so. */
typedef struct operation {
  sem_t started, released;
  weir_event event;
  double* target;
  weir_status status; /**< of its start function */
  bool completes_at_once;
  bool is_awaited; /**< the test waits for its release */
} operation;

static weir_status begin(const weir_external_call* started) {
  operation* own = started->payload;
  own->event = started->event;
  own->target = started->operand_count > 0 ? started->operands[0].address : NULL;
  if (own->completes_at_once) {
    own->target[0] += 100;
    CHECK_OK(weir_external_complete(f.runtime, &started->event, WEIR_STATUS_OK, NULL));
  }
  sem_post(&own->started);
  return own->status;
}

static void release_operation(void* payload) { sem_post(&((operation*)payload)->released); }

static operation make_operation(void) {
  operation made;
  memset(&made, 0, sizeof made);
  sem_init(&made.started, 0, 0);
  sem_init(&made.released, 0, 0);
  return made;
}

/* Reads and writes a whole buffer. */
static weir_event enqueue_external(weir_stream* stream, weir_buffer* buffer, operation* own) {
  const weir_operand operand = {buffer, weir_region_range(0, FIXTURE_BYTES),
                                WEIR_ACCESS_READ_WRITE};
  weir_external external = WEIR_EXTERNAL_INIT;
  weir_event event = WEIR_EVENT_INIT;
  external.start = begin;
  external.payload = own;
  external.operands = &operand;
  external.operand_count = 1;
  external.name = "message";
  if (own->is_awaited) external.release = release_operation;
  require(weir_stream_external(stream, &external, &event));
  return event;
}

static bool is_started(operation* own) { return sem_trywait(&own->started) == 0; }
static bool is_complete(weir_event event) {
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  CHECK_OK(weir_event_get_info(f.runtime, &event, &info));
  return info.complete;
}

static void it_is_ordered_by_its_operands(void) {
  operation own = make_operation();
  weir_event after = WEIR_EVENT_INIT, beside = WEIR_EVENT_INIT;
  f.x_data[0] = f.y_data[0] = 0;
  close_gate(&f, f.stream, f.x);
  const weir_event event = enqueue_external(f.stream, f.x, &own);
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &after));
  CHECK(!is_started(&own));
  open_gate(&f);
  sem_wait(&own.started);
  CHECK(own.target == f.x_data && own.event.opaque[1] == event.opaque[1]);
  CHECK_OK(enqueue(f.stream, "add", f.y, 1, &beside)); /* does not depend on it */
  CHECK_OK(wait_for(&f, beside));
  CHECK(f.y_data[0] == 1 && !is_complete(event) && !is_complete(after));
  own.target[0] = 10;
  CHECK_OK(weir_external_complete(f.runtime, &event, WEIR_STATUS_OK, NULL));
  CHECK_OK(wait_for(&f, after));
  CHECK(f.x_data[0] == 11);
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void its_function_may_complete_it(void) {
  operation own = make_operation();
  own.completes_at_once = true;
  f.x_data[0] = 1;
  for (int i = 0; i < 100; ++i) {
    enqueue_external(f.stream, f.x, &own);
    CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  }
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK(f.x_data[0] == 1 + 100 * 101);
}

static void a_failure_poisons_what_depends_on_it(void) {
  operation own = make_operation();
  weir_event after = WEIR_EVENT_INIT;
  const weir_event event = enqueue_external(f.stream, f.x, &own);
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &after));
  sem_wait(&own.started);
  CHECK_OK(
      weir_external_complete(f.runtime, &event, WEIR_STATUS_NETWORK_ERROR, "the line is dead"));
  CHECK_FAILS(wait_for(&f, after), WEIR_STATUS_POISONED, "message");
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_NETWORK_ERROR, "message");
  CHECK_CONTAINS(weir_last_error(), "the line is dead");
  own.status = WEIR_STATUS_UNAVAILABLE;
  enqueue_external(f.stream, f.x, &own);
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_UNAVAILABLE, "could not start");
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void a_poisoned_one_is_not_started(void) {
  operation own = make_operation();
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, NULL));
  const weir_event event = enqueue_external(f.stream, f.x, &own);
  CHECK_FAILS(wait_for(&f, event), WEIR_STATUS_POISONED, "tile 7");
  CHECK(!is_started(&own));
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "tile 7");
}

static void cancelling_waits_for_one_that_is_started(void) {
  operation first = make_operation(), second = make_operation();
  const weir_event running = enqueue_external(f.stream, f.x, &first);
  const weir_event waiting = enqueue_external(f.stream, f.x, &second);
  sem_wait(&first.started);
  CHECK_OK(weir_stream_cancel(f.stream));
  CHECK_FAILS(weir_stream_synchronize(f.stream, 1000000), WEIR_STATUS_TIMEOUT, "stream 'left'");
  CHECK_OK(weir_external_complete(f.runtime, &running, WEIR_STATUS_OK, NULL));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  CHECK(!is_started(&second));
  CHECK_FAILS(wait_for(&f, waiting), WEIR_STATUS_CANCELLED, "cancelled");
}

static void it_is_completed_once_and_after_its_start(void) {
  operation own = make_operation();
  const weir_event null = WEIR_EVENT_INIT;
  weir_event kernel = WEIR_EVENT_INIT;
  close_gate(&f, f.stream, f.x);
  const weir_event event = enqueue_external(f.stream, f.x, &own);
  CHECK_REFUSED(weir_external_complete(f.runtime, &event, WEIR_STATUS_OK, NULL), "in progress");
  CHECK_REFUSED(weir_external_complete(f.runtime, &null, WEIR_STATUS_OK, NULL), "in progress");
  open_gate(&f);
  sem_wait(&own.started);
  CHECK_REFUSED(weir_external_complete(f.runtime, &event, WEIR_STATUS_POISONED, NULL), "status");
  CHECK_REFUSED(weir_external_complete(f.runtime, &event, (weir_status)99, NULL), "status");
  CHECK_OK(weir_external_complete(f.runtime, &event, WEIR_STATUS_OK, NULL));
  CHECK_REFUSED(weir_external_complete(f.runtime, &event, WEIR_STATUS_OK, NULL), "in progress");
  kernel = close_gate(&f, f.stream, f.x);
  CHECK_REFUSED(weir_external_complete(f.runtime, &kernel, WEIR_STATUS_OK, NULL), "in progress");
  open_gate(&f);
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void wrong_ones_are_refused(void) {
  const weir_operand outside = {f.x, weir_region_range(8, FIXTURE_BYTES), WEIR_ACCESS_READ};
  weir_external external = WEIR_EXTERNAL_INIT;
  CHECK_REFUSED(weir_stream_external(f.stream, &external, NULL), "stream 'left'");
  external.start = begin;
  external.operand_count = 1;
  CHECK_REFUSED(weir_stream_external(f.stream, &external, NULL), "operand");
  external.operands = &outside;
  CHECK_REFUSED(weir_stream_external(f.stream, &external, NULL), "vector");
}

static void its_payload_is_released_once(void) {
  operation done = make_operation(), poisoned = make_operation(), refused = make_operation();
  weir_external external = WEIR_EXTERNAL_INIT;
  done.is_awaited = poisoned.is_awaited = true;
  external.payload = &refused;
  external.release = release_operation;
  CHECK_REFUSED(weir_stream_external(f.stream, &external, NULL), "stream 'left'");
  const weir_event event = enqueue_external(f.stream, f.x, &done);
  sem_wait(&done.started);
  CHECK(sem_trywait(&done.released) != 0);
  CHECK_OK(weir_external_complete(f.runtime, &event, WEIR_STATUS_OK, NULL));
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, NULL));
  enqueue_external(f.stream, f.x, &poisoned);
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "tile 7");
  sem_wait(&done.released);
  sem_wait(&poisoned.released);
  CHECK(!is_started(&poisoned));
  CHECK(sem_trywait(&done.released) != 0 && sem_trywait(&poisoned.released) != 0 &&
        sem_trywait(&refused.released) != 0);
}

/* On each kind of device, between kernels; a thread of its own completes each. */

static void* complete_all(void* payload) {
  operation* own = payload;
  for (int i = 0; i < 50; ++i) {
    sem_wait(&own->started);
    own->target[0] += 1;
    CHECK_OK(weir_external_complete(f.runtime, &own->event, WEIR_STATUS_OK, NULL));
  }
  return NULL;
}

static void it_runs_between_kernels_of(const char* domains) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_place* place = NULL;
  operation own = make_operation();
  pthread_t helper;
  options.domains = domains;
  require(weir_runtime_create(&options, &f.runtime));
  require(weir_place_create(weir_runtime_get_domain(f.runtime, 0), NULL, &place));
  register_kernel(f.runtime, "add", add_kernel, NULL);
  weir_stream* const stream = make_stream(place, "left");
  weir_buffer* const x = make_buffer(f.runtime, "vector", &f.x_data);
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  CHECK(pthread_create(&helper, NULL, complete_all, &own) == 0);
  CHECK_OK(weir_stream_upload(stream, x, all, NULL));
  for (int i = 0; i < 50; ++i) {
    CHECK_OK(enqueue(stream, "add", x, 1, NULL));
    enqueue_external(stream, x, &own);
    CHECK_OK(enqueue(stream, "add", x, 1, NULL));
  }
  CHECK_OK(weir_stream_download(stream, x, all, NULL));
  CHECK_OK(weir_stream_synchronize(stream, SOON));
  CHECK(f.x_data[0] == 150);
  pthread_join(helper, NULL);
  weir_runtime_destroy(f.runtime);
}

static void it_runs_between_kernels_of_each_device(void) {
  it_runs_between_kernels_of("host");
  it_runs_between_kernels_of("sim:cores=2,gbps=1000,latency_us=0");
  it_runs_between_kernels_of("sim:cores=2,gbps=1000,latency_us=0,order=device");
  it_runs_between_kernels_of("sim:cores=2,gbps=10,latency_us=5,clock=virtual");
}

int main(void) {
  set_up(&f);
  RUN(it_is_ordered_by_its_operands);
  RUN(its_function_may_complete_it);
  RUN(a_failure_poisons_what_depends_on_it);
  RUN(a_poisoned_one_is_not_started);
  RUN(cancelling_waits_for_one_that_is_started);
  RUN(it_is_completed_once_and_after_its_start);
  RUN(wrong_ones_are_refused);
  RUN(its_payload_is_released_once);
  tear_down(&f);
  RUN(it_runs_between_kernels_of_each_device);
  return check_failures > 0;
}
