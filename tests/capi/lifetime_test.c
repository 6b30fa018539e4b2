/* Destroying what is busy waits for it; nothing is lost and nothing hangs. */
#include "fixture.h"

#include <pthread.h>

static fixture f;

/* Calls destroy(object) on another thread, so that a gate can be opened meanwhile. */
typedef struct destroyer {
  void (*destroy)(void* object);
  void* object;
  sem_t started;
  pthread_t thread;
} destroyer;

static void* run_destroyer(void* payload) {
  destroyer* self = payload;
  sem_post(&self->started);
  self->destroy(self->object);
  return NULL;
}

static void begin_destroy(destroyer* self, void (*destroy)(void*), void* object) {
  self->destroy = destroy;
  self->object = object;
  sem_init(&self->started, 0, 0);
  pthread_create(&self->thread, NULL, run_destroyer, self);
  sem_wait(&self->started);
}

static void destroy_buffer(void* object) { weir_buffer_destroy(object); }
static void destroy_stream(void* object) { weir_stream_destroy(object); }
static void destroy_place(void* object) { weir_place_destroy(object); }
static void destroy_runtime(void* object) { weir_runtime_destroy(object); }

static void a_busy_buffer(void) {
  destroyer helper;
  double* data = NULL;
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  weir_buffer* const buffer = make_buffer(f.runtime, "busy", &data);
  const weir_event gate = close_gate(&f, f.stream, buffer);
  begin_destroy(&helper, destroy_buffer, buffer);
  CHECK_FAILS(weir_event_wait(f.runtime, &gate, 1, WEIR_WAIT_MODE_ALL, 0, NULL),
              WEIR_STATUS_TIMEOUT, NULL);
  open_gate(&f);
  pthread_join(helper.thread, NULL);
  CHECK_OK(wait_for(&f, gate));
  CHECK_REFUSED(weir_buffer_get_info(buffer, &info), "buffer 'busy' has been destroyed");
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void a_busy_stream(void) {
  destroyer helper;
  weir_event last = WEIR_EVENT_INIT;
  weir_stream* const stream = make_stream(f.places[0], "busy");
  f.x_data[0] = 5;
  close_gate(&f, stream, f.x);
  CHECK_OK(enqueue(stream, "add", f.x, 1, &last));
  begin_destroy(&helper, destroy_stream, stream);
  open_gate(&f);
  pthread_join(helper.thread, NULL);
  CHECK(f.x_data[0] == 6);
  CHECK_OK(wait_for(&f, last));
}

static void a_failed_stream(void) {
  weir_event bad = WEIR_EVENT_INIT;
  weir_stream* const stream = make_stream(f.places[0], "unlucky");
  CHECK_OK(enqueue(stream, "fail", f.x, 0, &bad));
  weir_stream_destroy(stream);
  CHECK_FAILS(wait_for(&f, bad), WEIR_STATUS_KERNEL_ERROR, "stream 'unlucky'");
}

static void a_busy_place(void) {
  destroyer helper;
  const uint32_t core = 0;
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  weir_place* place = NULL;
  weir_event last[2] = {WEIR_EVENT_INIT, WEIR_EVENT_INIT};
  options.cores = &core;
  options.core_count = 1;
  options.oversubscribe = true;
  require(weir_place_create(f.domain, &options, &place));
  weir_stream* const first = make_stream(place, "first");
  weir_stream* const second = make_stream(place, "second");
  f.x_data[0] = f.y_data[0] = 5;
  close_gate(&f, first, f.x);
  CHECK_OK(enqueue(first, "add", f.x, 1, &last[0]));
  CHECK_OK(enqueue(second, "add", f.y, 1, &last[1]));
  begin_destroy(&helper, destroy_place, place);
  open_gate(&f);
  pthread_join(helper.thread, NULL);
  CHECK(f.x_data[0] == 6 && f.y_data[0] == 6);
  CHECK_OK(weir_event_wait(f.runtime, last, 2, WEIR_WAIT_MODE_ALL, SOON, NULL));
}

static void a_busy_runtime(void) {
  static fixture own;
  static double memory[FIXTURE_DOUBLES];
  destroyer helper;
  weir_buffer* buffer = NULL;
  set_up(&own);
  require(weir_buffer_wrap(own.runtime, memory, sizeof memory, NULL, &buffer));
  close_gate(&own, own.stream, buffer);
  for (int i = 0; i < 100; ++i) require(enqueue(own.stream, "add", buffer, 1, NULL));
  begin_destroy(&helper, destroy_runtime, own.runtime);
  open_gate(&own);
  pthread_join(helper.thread, NULL);
  CHECK(memory[0] == 100);
  CHECK_REFUSED(weir_runtime_synchronize(own.runtime, 0), "has been destroyed");
}

/* What the last action of a stream ended with. */
typedef struct ending {
  sem_t over;
  weir_status status;
} ending;

static void note_ending(weir_status status, const char* message, void* payload) {
  ending* seen = payload;
  (void)message;
  seen->status = status;
  sem_post(&seen->over);
}

/* A deadline that has passed: what has not started is cancelled, what runs may end. */
static void a_shutdown_with_a_deadline(void) {
  static fixture own;
  static double memory[FIXTURE_DOUBLES];
  destroyer helper;
  ending seen;
  weir_buffer* buffer = NULL;
  weir_event last = WEIR_EVENT_INIT;
  sem_init(&seen.over, 0, 0);
  set_up_with_deadline(&own, 0);
  require(weir_buffer_wrap(own.runtime, memory, sizeof memory, NULL, &buffer));
  const weir_event gate = close_gate(&own, own.stream, own.x);
  require(weir_stream_wait_event(own.other, &gate));
  for (int i = 0; i < 100; ++i) require(enqueue(own.other, "add", buffer, 1, &last));
  require(weir_event_on_complete(own.runtime, &last, note_ending, &seen));
  begin_destroy(&helper, destroy_runtime, own.runtime);
  sem_wait(&seen.over);
  CHECK(seen.status == WEIR_STATUS_CANCELLED);
  open_gate(&own);
  pthread_join(helper.thread, NULL);
  CHECK(memory[0] == 0);
}

/* Many objects made and ended by several threads at once. */
static void* make_and_destroy(void* payload) {
  (void)payload;
  for (int i = 0; i < 200; ++i) {
    double* data = NULL;
    weir_buffer* const buffer = make_buffer(f.runtime, "brief", &data);
    weir_stream* const stream = make_stream(f.places[i % 2], "brief");
    require(enqueue(stream, "add", buffer, 1, NULL));
    weir_buffer_destroy(buffer);
    weir_stream_destroy(stream);
  }
  return NULL;
}

static void threads_make_and_destroy(void) {
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, make_and_destroy, NULL);
  for (size_t i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK_OK(weir_runtime_synchronize(f.runtime, SOON));
}

static void runtimes_come_and_go(void) {
  for (int i = 0; i < 20; ++i) {
    fixture own;
    set_up(&own);
    CHECK_OK(enqueue(own.stream, "add", own.x, 1, NULL));
    tear_down(&own);
  }
}

int main(void) {
  set_up(&f);
  RUN(a_busy_buffer);
  RUN(a_busy_stream);
  RUN(a_failed_stream);
  RUN(a_busy_place);
  RUN(a_busy_runtime);
  RUN(a_shutdown_with_a_deadline);
  RUN(threads_make_and_destroy);
  RUN(runtimes_come_and_go);
  tear_down(&f);
  return check_failures != 0;
}
