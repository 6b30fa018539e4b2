/* Transfers between domains without a link to each other: they go through the host, in the order of
   their stream. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

enum { kCount = 50000, kSkipped = 77 };

static int open_gate;
static int x[kCount], y[kCount];

HSTREAMS_EXPORT void wait_for_gate(int* data) {
  (void)data;
  while (!__atomic_load_n(&open_gate, __ATOMIC_ACQUIRE)) sched_yield();
}

HSTREAMS_EXPORT void add(uint64_t count, uint64_t what, int* data) {
  for (uint64_t i = 0; i < count; ++i) data[i] += (int)what;
}

static const HSTR_LOG_DOM opencl = 1, simulated = 2; /* their streams are 0 and 1 */

static void enqueue_add(HSTR_LOG_STR stream, int what, int* data, int count) {
  uint64_t args[3];
  args[0] = (uint64_t)count;
  args[1] = (uint64_t)what;
  args[2] = (uint64_t)data;
  OK(hStreams_app_invoke(stream, "add", 2, 1, args, NULL, NULL, 0));
}

static HSTR_EVENT transfer(HSTR_LOG_STR stream, int* to, int* from, int count, HSTR_LOG_DOM target,
                           HSTR_LOG_DOM source) {
  HSTR_EVENT event;
  OK(hStreams_EnqueueDataXDomain1D(stream, to, from, (uint64_t)count * sizeof(int), target, source,
                                   &event));
  return event;
}

static void fill(HSTR_LOG_STR stream, int* data, int first) {
  for (int i = 0; i < kCount; ++i) data[i] = first + i;
  OK(hStreams_app_xfer_memory(stream, data, data, sizeof x, HSTR_SRC_TO_SINK, NULL));
}

static void expect(HSTR_LOG_STR stream, int* data, int first) {
  memset(data, 0, sizeof x);
  OK(hStreams_app_xfer_memory(stream, data, data, sizeof x, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_stream_sync(stream));
  for (int i = 0; i < kCount; ++i) CHECK(data[i] == first + i);
}

/* The stream is in the domain that the data comes from: what it did before is done, and what it
   does later waits. */
static void by_the_source(HSTR_LOG_STR stream, HSTR_LOG_DOM from, HSTR_LOG_DOM to) {
  const HSTR_LOG_STR other = 1 - stream;
  fill(stream, x, 10);
  enqueue_add(stream, 5, x, kCount);
  const HSTR_EVENT there = transfer(stream, y, x, kCount, to, from);
  enqueue_add(stream, 100, x, kCount);
  HSTR_EVENT copy = there;
  OK(hStreams_app_event_wait_in_stream(other, 1, &copy, 0, NULL, NULL));
  enqueue_add(other, 1000, y, kCount);
  expect(other, y, 1015);
  expect(stream, x, 115);
}

/* The stream is in the domain that the data goes to. */
static void by_the_target(HSTR_LOG_STR stream, HSTR_LOG_DOM to, HSTR_LOG_DOM from) {
  const HSTR_LOG_STR other = 1 - stream;
  fill(other, x, 20);
  OK(hStreams_app_stream_sync(other));
  fill(stream, y, 0);
  enqueue_add(stream, 1, y, kCount); /* is overwritten */
  transfer(stream, y, x, kCount, to, from);
  enqueue_add(stream, 3, y, kCount);
  expect(stream, y, 23);
}

static int pending(HSTR_EVENT event) {
  return hStreams_EventWait(1, &event, true, 0, NULL, NULL) == HSTR_RESULT_TIME_OUT_REACHED;
}

/* Nothing passes a compute of the stream that has the data, and all is there after its end. */
static void after_the_compute(HSTR_LOG_DOM to, HSTR_LOG_DOM from) {
  uint64_t args[1];
  int* const data = from == simulated ? x : y;
  args[0] = (uint64_t)data;
  fill(1, data, 30);
  OK(hStreams_app_stream_sync(1));
  __atomic_store_n(&open_gate, 0, __ATOMIC_RELEASE);
  OK(hStreams_app_invoke(1, "wait_for_gate", 0, 1, args, NULL, NULL, 0));
  const HSTR_EVENT first = transfer(1, y, x, kCount, to, from);
  const HSTR_EVENT second = transfer(1, y + 7, x, 100, to, from); /* needs a stage of its own */
  CHECK(pending(first) && pending(second));
  __atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE);
  OK(hStreams_app_thread_sync());
  CHECK(!pending(first) && !pending(second));
}

int main(void) {
  unsetenv("WEIR_SIM_CARDS");
  setenv("WEIR_DOMAINS", "host,opencl,sim:cores=1", 1);
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  if (hStreams_app_init(1, 1) != HSTR_RESULT_SUCCESS) {
    printf("there is no OpenCL device\n");
    return kSkipped;
  }
  OK(hStreams_app_create_buf(x, sizeof x));
  OK(hStreams_app_create_buf(y, sizeof y));
  by_the_source(0, opencl, simulated);
  by_the_source(1, simulated, opencl);
  by_the_target(0, opencl, simulated);
  by_the_target(1, simulated, opencl);
  after_the_compute(opencl, simulated);
  after_the_compute(simulated, opencl);
  OK(hStreams_app_fini());
  return 0;
}
