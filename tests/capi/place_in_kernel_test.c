/* A place that its own kernel or a callback destroys is destroyed when these have ended. */
#include <sched.h>

#include "fixture.h"

static fixture f;

static weir_status destroying_kernel(const weir_call* call) {
  (void)call;
  weir_place_destroy(f.places[0]);
  return WEIR_STATUS_OK;
}

static void destroying_callback(weir_status status, const char* message, void* payload) {
  (void)status, (void)message;
  weir_place_destroy(f.places[1]);
  sem_post((sem_t*)payload);
}

/* The core is free for a place of its own when no other has it any more. */
static void the_place_is_gone(weir_place* place) {
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  while (weir_place_get_info(place, &info) == WEIR_STATUS_OK) sched_yield();
  CHECK_REFUSED(weir_place_get_info(place, &info), "has been destroyed");
}

static void by_a_kernel(void) {
  weir_event event = WEIR_EVENT_INIT;
  register_kernel(f.runtime, "destroying", destroying_kernel, NULL);
  CHECK_OK(enqueue(f.stream, "destroying", f.x, 0, &event));
  CHECK_OK(wait_for(&f, event));
  the_place_is_gone(f.places[0]);
}

static void by_a_callback(void) {
  const uint32_t core = 0;
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  weir_place* place = NULL;
  sem_t called;
  sem_init(&called, 0, 0);
  const weir_event event = close_gate(&f, f.other, f.x);
  CHECK_OK(weir_event_on_complete(f.runtime, &event, destroying_callback, &called));
  open_gate(&f);
  sem_wait(&called);
  options.cores = &core;
  options.core_count = 1;
  CHECK_OK(weir_place_create(f.domain, &options, &place)); /* waits for the core */
  the_place_is_gone(f.places[1]);
}

int main(void) {
  set_up(&f);
  RUN(by_a_kernel);
  RUN(by_a_callback);
  tear_down(&f);
  return check_failures != 0;
}
