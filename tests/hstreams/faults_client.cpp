// What fails on a device: copies, sink functions, and what depends on them.
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include <dlfcn.h>
#include <pthread.h>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "check.h"

HSTREAMS_EXPORT void throws(char*) { throw std::runtime_error("no good"); }
HSTREAMS_EXPORT void works(char* data) { data[0] = 5; }

/// The libraries call this one: when there is to be no thread, there is none.
static bool no_threads;
HSTREAMS_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                   void* (*start)(void*), void* argument) noexcept {
  if (no_threads) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto next = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, start, argument);
}

static char data[64];

static HSTR_EVENT call(const char* function) {
  HSTR_EVENT event;
  uint64_t args[1] = {reinterpret_cast<uint64_t>(data)};
  OK(hStreams_app_invoke(0, function, 0, 1, args, &event, NULL, 0));
  return event;
}

static void a_function_fails() {
  HSTR_EVENT failed = call("throws"), after = call("works");
  EXPECT(hStreams_app_event_wait(1, &failed), REMOTE_ERROR);
  EXPECT(hStreams_app_event_wait(1, &after), EVENT_CANCELED);
  HSTR_EVENT both[2] = {failed, after};
  uint32_t count = 99, indices[2] = {99, 99};
  EXPECT(hStreams_EventWait(2, both, true, -1, &count, indices), REMOTE_ERROR);
  CHECK(count == 2 && indices[0] == 0 && indices[1] == 1);
  EXPECT(hStreams_app_stream_sync(0), REMOTE_ERROR);
  OK(hStreams_app_stream_sync(0));
  after = call("works");
  OK(hStreams_app_event_wait(1, &after));
}

/// A stream of the host that fails is as good as new when that was said, its transfers included.
static void a_stream_of_the_host_fails() {
  constexpr HSTR_LOG_STR stream = 9;
  constexpr HSTR_LOG_DOM card = 1;
  static char values[64];
  HSTR_LOG_DOM host = 0;
  HSTR_OVERLAP_TYPE overlap;
  HSTR_CPU_MASK mask;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(0, mask);
  OK(hStreams_AddLogDomain(HSTR_SRC_PHYS_DOMAIN, mask, &host, &overlap));
  OK(hStreams_StreamCreate(stream, host, mask));
  OK(hStreams_app_create_buf(values, sizeof values));
  HSTR_EVENT event;
  uint64_t args[1] = {reinterpret_cast<uint64_t>(values)};
  OK(hStreams_app_invoke(stream, "throws", 0, 1, args, NULL, NULL, 0));
  OK(hStreams_EnqueueDataXDomain1D(stream, values, values, 8, card, host, &event));
  EXPECT(hStreams_app_event_wait(1, &event), EVENT_CANCELED);
  EXPECT(hStreams_app_thread_sync(), REMOTE_ERROR);
  for (int i = 0; i < 2; ++i) {
    OK(hStreams_EnqueueDataXDomain1D(stream, values, values, 8, card, host, &event));
    OK(hStreams_app_event_wait(1, &event));
    OK(hStreams_app_stream_sync(stream));
  }
}

/// What one stream of the host fails with is not for another, which has nothing in common with it.
static void another_stream_of_the_host_goes_on() {
  constexpr HSTR_LOG_STR failing = 10, sound = 11;
  constexpr HSTR_LOG_DOM card = 1;
  static char values[64], others[64];
  HSTR_LOG_DOM hosts[2];
  HSTR_OVERLAP_TYPE overlap;
  for (int i = 0; i < 2; ++i) {
    HSTR_CPU_MASK mask;
    HSTR_CPU_MASK_ZERO(mask);
    HSTR_CPU_MASK_SET(1 + i, mask);
    OK(hStreams_AddLogDomain(HSTR_SRC_PHYS_DOMAIN, mask, &hosts[i], &overlap));
    OK(hStreams_StreamCreate(i == 0 ? failing : sound, hosts[i], mask));
  }
  OK(hStreams_app_create_buf(values, sizeof values));
  OK(hStreams_app_create_buf(others, sizeof others));
  HSTR_EVENT event;
  uint64_t args[1] = {reinterpret_cast<uint64_t>(values)};
  OK(hStreams_app_invoke(failing, "throws", 0, 1, args, NULL, NULL, 0));
  OK(hStreams_EnqueueDataXDomain1D(failing, values, values, 8, card, hosts[0], &event));
  EXPECT(hStreams_app_event_wait(1, &event), EVENT_CANCELED);
  OK(hStreams_EnqueueDataXDomain1D(sound, others, others, 8, card, hosts[1], &event));
  OK(hStreams_app_event_wait(1, &event));
  OK(hStreams_app_stream_sync(sound));
  EXPECT(hStreams_app_stream_sync(failing), REMOTE_ERROR);
}

static void a_copy_fails() {
  HSTR_EVENT event;
  OK(hStreams_app_xfer_memory(0, data, data, 8, HSTR_SRC_TO_SINK, &event));
  EXPECT(hStreams_app_event_wait(1, &event), REMOTE_ERROR);
  EXPECT(hStreams_app_thread_sync(), REMOTE_ERROR);
  OK(hStreams_app_thread_sync());
}

static void a_stream_gets_no_thread() {
  HSTR_LOG_DOM domain = 0;
  HSTR_OVERLAP_TYPE overlap;
  HSTR_CPU_MASK mask;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(4, mask);
  OK(hStreams_Init());
  OK(hStreams_AddLogDomain(std::getenv("WEIR_SIM_CARDS") != nullptr ? 1 : 0, mask, &domain,
                           &overlap));
  no_threads = true;
  EXPECT(hStreams_StreamCreate(7, domain, mask), RESOURCE_EXHAUSTED);
  no_threads = false;
  OK(hStreams_StreamCreate(7, domain, mask));
  OK(hStreams_Fini());
}

int main() {
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  a_stream_gets_no_thread();
  OK(hStreams_app_init(1, 1));
  OK(hStreams_app_create_buf(data, sizeof data));
  a_function_fails();
  a_stream_of_the_host_fails();
  another_stream_of_the_host_goes_on();
  OK(hStreams_app_fini());

  unsetenv("WEIR_SIM_CARDS");
  setenv("WEIR_DOMAINS", "sim:fail_copy=1", 1);
  OK(hStreams_app_init(1, 1));
  OK(hStreams_app_create_buf(data, sizeof data));
  a_copy_fails();
  OK(hStreams_app_fini());

  setenv("WEIR_DOMAINS", "host,no-such-device", 1);
  EXPECT(hStreams_Init(), DEVICE_NOT_INITIALIZED);
  setenv("WEIR_DOMAINS", "host", 1);
  setenv("WEIR_SIM_CARDS", "0", 1);
  EXPECT(hStreams_Init(), DEVICE_NOT_INITIALIZED);
  setenv("WEIR_SIM_CARDS", "many", 1);
  EXPECT(hStreams_Init(), OUT_OF_RANGE);
  unsetenv("WEIR_SIM_CARDS");
  OK(hStreams_Init());
  OK(hStreams_Fini());
  return 0;
}
