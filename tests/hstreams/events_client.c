/* Events across streams, and all forms of a wait in a stream. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

static int open_gate; /* sink functions run in this process */
static long order[16];
static int orders;

HSTREAMS_EXPORT void wait_for_gate(void* data) {
  (void)data;
  while (!__atomic_load_n(&open_gate, __ATOMIC_ACQUIRE)) sched_yield();
}

HSTREAMS_EXPORT void note(uint64_t number, void* data) {
  (void)data;
  order[__atomic_fetch_add(&orders, 1, __ATOMIC_ACQ_REL)] = (long)number;
}

static int a[64], b[64];

static HSTR_EVENT call(HSTR_LOG_STR stream, const char* function, int number, void* data) {
  HSTR_EVENT event;
  uint64_t args[2];
  const uint32_t scalars = number > 0;
  args[0] = (uint64_t)number;
  args[scalars] = (uint64_t)data;
  OK(hStreams_app_invoke(stream, function, scalars, 1, args, &event, NULL, 0));
  return event;
}

static HSTR_EVENT close_gate(HSTR_LOG_STR stream, void* data) {
  __atomic_store_n(&open_gate, 0, __ATOMIC_RELEASE);
  orders = 0;
  return call(stream, "wait_for_gate", 0, data);
}

static void release(void) { __atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE); }

static int pending(HSTR_EVENT event) {
  return hStreams_EventWait(1, &event, true, 0, NULL, NULL) == HSTR_RESULT_TIME_OUT_REACHED;
}

static void full_barrier(void) {
  HSTR_EVENT gate = close_gate(0, a), after;
  OK(hStreams_app_event_wait_in_stream(1, 1, &gate, 0, NULL, NULL));
  after = call(1, "note", 1, b);
  CHECK(pending(after));
  release();
  OK(hStreams_app_event_wait(1, &after));
  CHECK(orders == 1);
}

static void only_some_buffers(void) {
  HSTR_EVENT gate = close_gate(0, a), on_a, on_b;
  void* addresses[1];
  addresses[0] = a + 7;
  OK(hStreams_app_event_wait_in_stream(1, 1, &gate, 1, addresses, NULL));
  on_b = call(1, "note", 2, b);
  OK(hStreams_app_event_wait(1, &on_b));
  on_a = call(1, "note", 1, a);
  CHECK(pending(on_a));
  release();
  OK(hStreams_app_event_wait(1, &on_a));
  CHECK(order[0] == 2 && order[1] == 1);
}

static void nothing_later(void) {
  HSTR_EVENT gate = close_gate(0, a), joined, drained, passing;
  OK(hStreams_EventStreamWait(1, 1, &gate, HSTR_WAIT_NONE, NULL, &joined));
  passing = call(1, "note", 3, a);
  OK(hStreams_app_event_wait(1, &passing));
  CHECK(pending(joined));
  OK(hStreams_EventStreamWait(0, 0, NULL, HSTR_WAIT_NONE, NULL, &drained));
  CHECK(pending(drained));
  OK(hStreams_StreamSynchronize(1)); /* the event for others does not block the stream */
  release();
  OK(hStreams_app_event_wait(1, &joined));
  OK(hStreams_app_event_wait(1, &drained));
  OK(hStreams_EventStreamWait(1, 1, &gate, -5, NULL, NULL));
}

static void drain_for_some_buffers(void) {
  HSTR_EVENT gate = close_gate(0, a), later, marker;
  void* addresses[1];
  addresses[0] = b;
  OK(hStreams_EventStreamWait(0, 0, NULL, 1, addresses, &marker));
  CHECK(pending(marker));
  later = call(0, "note", 1, b);
  CHECK(pending(later));
  release();
  OK(hStreams_app_event_wait(1, &later));
  OK(hStreams_app_event_wait(1, &gate));
}

static void any_of_many(void) {
  HSTR_EVENT events[4];
  uint32_t count = 99, indices[4];
  events[0] = close_gate(0, a);
  events[1] = call(1, "note", 1, b);
  events[2] = call(0, "note", 2, b);
  memset(&events[3], 0xa5, sizeof events[3]); /* never written: counts as complete */
  OK(hStreams_app_event_wait(1, &events[1]));
  OK(hStreams_EventWait(4, events, false, -1, &count, indices));
  CHECK(count == 2 && indices[0] == 1 && indices[1] == 3);
  for (int timeout = 0; timeout <= 10; timeout += 10) { /* clients poll, and look at what is done */
    count = 99;
    memset(indices, 0xff, sizeof indices);
    EXPECT(hStreams_EventWait(4, events, true, timeout, &count, indices), TIME_OUT_REACHED);
    CHECK(count == 2 && indices[0] == 1 && indices[1] == 3);
  }
  count = 99;
  EXPECT(hStreams_EventWait(1, events, false, 0, &count, indices), TIME_OUT_REACHED);
  CHECK(count == 0);
  EXPECT(hStreams_EventWait(4, events, true, 10, NULL, NULL), TIME_OUT_REACHED);
  release();
  OK(hStreams_EventWait(4, events, true, -1, &count, indices));
  CHECK(count == 4 && indices[3] == 3);
  OK(hStreams_EventWait(4, events, true, 0, NULL, NULL));
}

static void garbage(void) {
  HSTR_EVENT events[3] = {HSTR_EVENT_INITIALIZER, {{(uint64_t)-1, (uint64_t)-1}}, {{0, 0}}};
  OK(hStreams_app_event_wait(3, events));
  OK(hStreams_app_event_wait_in_stream(0, 3, events, 0, NULL, &events[0]));
  OK(hStreams_app_event_wait(1, events));
}

static void very_many(void) {
  enum { MANY = 20500 };
  HSTR_EVENT* const events = (HSTR_EVENT*)malloc(MANY * sizeof(HSTR_EVENT));
  HSTR_EVENT joined;
  for (int i = 0; i < MANY; ++i) {
    OK(hStreams_app_xfer_memory((HSTR_LOG_STR)(i % 2), a, a, 4, HSTR_SRC_TO_SINK, &events[i]));
  }
  OK(hStreams_EventStreamWait(1, MANY, events, HSTR_WAIT_NONE, NULL, &joined));
  OK(hStreams_app_event_wait(1, &joined));
  for (int i = 0; i < MANY; ++i) CHECK(!pending(events[i]));
  OK(hStreams_EventStreamWait(1, MANY, events, 0, NULL, &joined));
  OK(hStreams_app_event_wait(1, &joined));
  free(events);
}

int main(void) {
  HSTR_EVENT old;
  OK(hStreams_app_init(2, 1));
  OK(hStreams_app_create_buf(a, sizeof a));
  OK(hStreams_app_create_buf(b, sizeof b));
  full_barrier();
  only_some_buffers();
  nothing_later();
  drain_for_some_buffers();
  any_of_many();
  garbage();
  very_many();
  old = call(0, "note", 1, a);
  OK(hStreams_app_fini());
  OK(hStreams_app_init(1, 1));
  OK(hStreams_app_event_wait(1, &old)); /* of the time before */
  OK(hStreams_app_fini());
  return 0;
}
