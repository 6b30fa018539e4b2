/* A place is not destroyed by a kernel that runs on it, nor by a callback. */
#include "fixture.h"

static fixture f;

static weir_status destroying_kernel(const weir_call* call) {
  (void)call;
  weir_place_destroy(f.places[0]);
  return WEIR_STATUS_OK;
}

static void destroying_callback(weir_status status, const char* message, void* payload) {
  (void)status, (void)message;
  weir_place_destroy(f.places[0]);
  sem_post((sem_t*)payload);
}

static void the_place_is_still_there(void) {
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  CHECK_OK(weir_place_get_info(f.places[0], &info));
  CHECK_OK(enqueue(f.stream, "add", f.x, 1, NULL));
  CHECK_OK(weir_stream_synchronize(f.stream, SOON));
}

static void by_a_callback(void) {
  sem_t called;
  sem_init(&called, 0, 0);
  const weir_event event = close_gate(&f, f.stream, f.x);
  CHECK_OK(weir_event_on_complete(f.runtime, &event, destroying_callback, &called));
  open_gate(&f);
  sem_wait(&called);
  the_place_is_still_there();
}

static void by_a_kernel(void) {
  weir_event event = WEIR_EVENT_INIT;
  register_kernel(f.runtime, "destroying", destroying_kernel, NULL);
  CHECK_OK(enqueue(f.stream, "destroying", f.x, 0, &event));
  CHECK_OK(wait_for(&f, event));
  the_place_is_still_there();
}

int main(void) {
  set_up(&f);
  RUN(by_a_callback);
  RUN(by_a_kernel);
  tear_down(&f);
  return check_failures != 0;
}
