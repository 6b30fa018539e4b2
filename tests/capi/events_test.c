/* Events: waits for any and all, deadlines, callbacks, and waits that could never end. */
#include "fixture.h"

static fixture f;

static void the_null_event_is_complete(void) {
  const weir_event null = WEIR_EVENT_INIT;
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  CHECK_OK(wait_for(&f, null));
  CHECK_OK(weir_stream_wait_event(f.stream, &null));
  CHECK_OK(weir_event_get_info(f.runtime, &null, &info));
  CHECK(info.complete && info.status == WEIR_STATUS_OK && info.message[0] == '\0');
  CHECK_OK(weir_event_wait(f.runtime, NULL, 0, WEIR_WAIT_MODE_ALL, WEIR_FOREVER, NULL));
  CHECK_OK(weir_event_wait(f.runtime, NULL, 0, WEIR_WAIT_MODE_ANY, WEIR_FOREVER, NULL));
}

/* Only a forged event can be later than the wait: real ones come from actions already enqueued. */
static void a_stream_does_not_wait_for_its_later_event(void) {
  weir_event event = WEIR_EVENT_INIT;
  weir_sync sync = WEIR_SYNC_INIT;
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &event));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
  const uint64_t before = enqueued(&f);
  event.opaque[1] += 1000;
  CHECK_REFUSED(weir_stream_wait_event(f.stream, &event), "stream 'left'");
  CHECK_CONTAINS(weir_last_error(), "later action");
  sync.events = &event;
  sync.event_count = 1;
  sync.scope = WEIR_SYNC_SCOPE_NOTHING;
  CHECK_REFUSED(weir_stream_sync(f.stream, &sync, NULL), "stream 'left'");
  CHECK(enqueued(&f) == before);
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void not_an_event(void) {
  const weir_event forged = {{123456789, 123456789}};
  const weir_event lost = {{7, 0}};
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  CHECK_REFUSED(wait_for(&f, forged), "event");
  CHECK_REFUSED(weir_stream_wait_event(f.stream, &forged), "event");
  CHECK_REFUSED(weir_event_get_info(f.runtime, &forged, &info), "event");
  CHECK_OK(wait_for(&f, lost));
}

/* Two streams that wait for each other's events, in every order that the interface allows. */
static void streams_cannot_wait_in_a_circle(void) {
  weir_event left = WEIR_EVENT_INIT;
  weir_event right = WEIR_EVENT_INIT;
  for (int round = 0; round < 100; ++round) {
    CHECK_OK(weir_stream_wait_event(f.stream, &right));
    CHECK_OK(enqueue(f.stream, "add", f.x, 1, &left));
    CHECK_OK(weir_stream_wait_event(f.other, &left));
    CHECK_OK(enqueue(f.other, "add", f.x, 1, &right));
  }
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
}

static void deadlines(void) {
  size_t index = 99;
  const weir_event event = close_gate(&f, f.stream, f.x);
  CHECK_FAILS(weir_event_wait(f.runtime, &event, 1, WEIR_WAIT_MODE_ALL, 0, &index),
              WEIR_STATUS_TIMEOUT, "deadline");
  CHECK_FAILS(weir_event_wait(f.runtime, &event, 1, WEIR_WAIT_MODE_ALL, 1000000, NULL),
              WEIR_STATUS_TIMEOUT, "deadline");
  CHECK_FAILS(weir_event_wait(f.runtime, &event, 1, WEIR_WAIT_MODE_ANY, 1000000, NULL),
              WEIR_STATUS_TIMEOUT, "deadline");
  CHECK_FAILS(weir_stream_synchronize(f.stream, 1000000), WEIR_STATUS_TIMEOUT, "stream 'left'");
  CHECK_FAILS(weir_stream_synchronize(f.stream, 0), WEIR_STATUS_TIMEOUT, "stream 'left'");
  CHECK_FAILS(weir_runtime_synchronize(f.runtime, 1000000), WEIR_STATUS_TIMEOUT, "deadline");
  open_gate(&f);
  CHECK_OK(wait_for(&f, event));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void any_and_all(void) {
  weir_event events[3] = {WEIR_EVENT_INIT, WEIR_EVENT_INIT, WEIR_EVENT_INIT};
  size_t index = 99;
  events[0] = close_gate(&f, f.stream, f.x);
  CHECK_OK(enqueue(f.other, "add", f.y, 1, &events[1]));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &events[2]));
  CHECK_OK(weir_event_wait(f.runtime, events, 3, WEIR_WAIT_MODE_ANY, SOON, &index));
  CHECK(index == 1);
  CHECK_FAILS(weir_event_wait(f.runtime, events, 3, WEIR_WAIT_MODE_ALL, 0, &index),
              WEIR_STATUS_TIMEOUT, NULL);
  open_gate(&f);
  CHECK_OK(weir_event_wait(f.runtime, events, 3, WEIR_WAIT_MODE_ALL, SOON, &index));
  CHECK_OK(weir_event_wait(f.runtime, events, 3, WEIR_WAIT_MODE_ANY, 0, &index));
  CHECK(index == 0);
}

static void the_first_failure_of_a_list(void) {
  weir_event events[3] = {WEIR_EVENT_INIT, WEIR_EVENT_INIT, WEIR_EVENT_INIT};
  size_t index = 99;
  CHECK_OK(enqueue(f.stream, "add", f.y, 1, &events[0]));
  CHECK_OK(enqueue(f.stream, "fail", f.x, 1, &events[1]));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, &events[2]));
  CHECK_FAILS(weir_event_wait(f.runtime, events, 3, WEIR_WAIT_MODE_ALL, SOON, &index),
              WEIR_STATUS_KERNEL_ERROR, "'fail'");
  CHECK(index == 1);
  CHECK_OK(weir_event_wait(f.runtime, events, 3, WEIR_WAIT_MODE_ANY, SOON, &index));
  CHECK(index == 0);
  CHECK_FAILS(weir_event_wait(f.runtime, events + 1, 2, WEIR_WAIT_MODE_ANY, SOON, &index),
              WEIR_STATUS_KERNEL_ERROR, "'fail'");
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "'fail'");
  CHECK_FAILS(wait_for(&f, events[1]), WEIR_STATUS_KERNEL_ERROR, "'fail'");
  CHECK_FAILS(wait_for(&f, events[2]), WEIR_STATUS_POISONED, "'fail'");
}

static void state_without_waiting(void) {
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  weir_event after = WEIR_EVENT_INIT;
  const weir_event event = close_gate(&f, f.stream, f.x);
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, &after));
  CHECK_OK(weir_event_get_info(f.runtime, &event, &info));
  CHECK(!info.complete && info.status == WEIR_STATUS_OK && info.message[0] == '\0');
  open_gate(&f);
  CHECK_FAILS(wait_for(&f, after), WEIR_STATUS_KERNEL_ERROR, "'fail'");
  CHECK_OK(weir_event_get_info(f.runtime, &event, &info));
  CHECK(info.complete && info.status == WEIR_STATUS_OK);
  CHECK_OK(weir_event_get_info(f.runtime, &after, &info));
  CHECK(info.complete && info.status == WEIR_STATUS_KERNEL_ERROR);
  CHECK_CONTAINS(info.message, "tile 7 is broken");
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "'fail'");
}

/* What a callback saw. */
typedef struct sight {
  sem_t called;
  size_t calls;
  weir_status status;
  char message[256];
  weir_status wait_status;
  weir_status synchronize_status;
  weir_status enqueue_status;
  weir_event gate;
  weir_stream* stream; /**< for the callback to destroy */
  weir_buffer* buffer; /**< the same */
} sight;

static void record(weir_status status, const char* message, void* payload) {
  sight* seen = payload;
  seen->status = status;
  snprintf(seen->message, sizeof seen->message, "%s", message);
  seen->calls += 1;
  sem_post(&seen->called);
}

static void callbacks(void) {
  sight early = {.calls = 0};
  sight late = {.calls = 0};
  sight failed = {.calls = 0};
  weir_event bad = WEIR_EVENT_INIT;
  sem_init(&early.called, 0, 0);
  sem_init(&late.called, 0, 0);
  sem_init(&failed.called, 0, 0);
  const weir_event event = close_gate(&f, f.stream, f.x);
  CHECK_OK(enqueue(f.stream, "fail", f.x, 0, &bad));
  CHECK_OK(weir_event_on_complete(f.runtime, &event, record, &early));
  CHECK_OK(weir_event_on_complete(f.runtime, &bad, record, &failed));
  CHECK(early.calls == 0);
  open_gate(&f);
  sem_wait(&early.called);
  sem_wait(&failed.called);
  CHECK(early.calls == 1 && early.status == WEIR_STATUS_OK && early.message[0] == '\0');
  CHECK(failed.status == WEIR_STATUS_KERNEL_ERROR);
  CHECK_CONTAINS(failed.message, "tile 7 is broken");
  CHECK_OK(weir_event_on_complete(f.runtime, &event, record, &late));
  CHECK(late.calls == 1 && late.status == WEIR_STATUS_OK);
  CHECK_FAILS(weir_stream_synchronize(f.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "'fail'");
}

static void make_objects_to_destroy(sight* seen) {
  double* data = NULL;
  seen->stream = make_stream(f.places[0], "destroyed");
  seen->buffer = make_buffer(f.runtime, "destroyed", &data);
}

/* Tries what callbacks must not do, with an action that cannot end before the callback does. */
static void misbehave(weir_status status, const char* message, void* payload) {
  sight* seen = payload;
  (void)status, (void)message;
  seen->wait_status =
      weir_event_wait(f.runtime, &seen->gate, 1, WEIR_WAIT_MODE_ALL, WEIR_FOREVER, NULL);
  seen->synchronize_status = weir_stream_synchronize(f.stream, WEIR_FOREVER);
  seen->enqueue_status = enqueue(f.other, "add", f.y, 1, NULL);
  snprintf(seen->message, sizeof seen->message, "%s", weir_last_error());
  weir_stream_destroy(seen->stream);
  weir_buffer_destroy(seen->buffer);
  weir_runtime_destroy(f.runtime);
  sem_post(&seen->called);
}

static void callbacks_may_enqueue_but_not_wait(void) {
  sight seen = {.calls = 0};
  weir_event event = WEIR_EVENT_INIT;
  sem_init(&seen.called, 0, 0);
  make_objects_to_destroy(&seen);
  seen.gate = close_gate(&f, f.stream, f.x);
  CHECK_OK(enqueue(f.other, "add", f.y, 1, &event));
  CHECK_OK(weir_event_on_complete(f.runtime, &event, misbehave, &seen));
  sem_wait(&seen.called);
  CHECK(seen.wait_status == WEIR_STATUS_BUSY);
  CHECK(seen.synchronize_status == WEIR_STATUS_BUSY);
  CHECK(seen.enqueue_status == WEIR_STATUS_OK);
  CHECK_CONTAINS(seen.message, "stream 'left'");
  open_gate(&f);
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
}

static weir_status waiting_kernel(const weir_call* call) {
  sight* seen = call->payload;
  seen->wait_status =
      weir_event_wait(f.runtime, &seen->gate, 1, WEIR_WAIT_MODE_ALL, WEIR_FOREVER, NULL);
  snprintf(seen->message, sizeof seen->message, "%s", weir_last_error());
  seen->synchronize_status = weir_stream_synchronize(f.stream, WEIR_FOREVER);
  seen->status = weir_runtime_synchronize(f.runtime, WEIR_FOREVER);
  seen->enqueue_status = enqueue(f.other, "add", f.y, 1, NULL);
  weir_stream_destroy(seen->stream);
  weir_buffer_destroy(seen->buffer);
  weir_runtime_destroy(f.runtime);
  return WEIR_STATUS_OK;
}

static void kernels_do_not_wait(void) {
  static sight seen;
  weir_event event = WEIR_EVENT_INIT;
  register_kernel(f.runtime, "waiting", waiting_kernel, &seen);
  make_objects_to_destroy(&seen);
  seen.gate = close_gate(&f, f.stream, f.x);
  CHECK_OK(enqueue(f.other, "waiting", f.y, 0, &event));
  CHECK_OK(wait_for(&f, event));
  CHECK(seen.wait_status == WEIR_STATUS_BUSY);
  CHECK_CONTAINS(seen.message, "must not wait");
  CHECK(seen.synchronize_status == WEIR_STATUS_BUSY);
  CHECK(seen.status == WEIR_STATUS_BUSY);
  CHECK(seen.enqueue_status == WEIR_STATUS_OK);
  open_gate(&f);
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
}

int main(void) {
  set_up(&f);
  RUN(the_null_event_is_complete);
  RUN(a_stream_does_not_wait_for_its_later_event);
  RUN(not_an_event);
  RUN(streams_cannot_wait_in_a_circle);
  RUN(deadlines);
  RUN(any_and_all);
  RUN(the_first_failure_of_a_list);
  RUN(state_without_waiting);
  RUN(callbacks);
  RUN(callbacks_may_enqueue_but_not_wait);
  RUN(kernels_do_not_wait);
  tear_down(&f);
  return check_failures != 0;
}
