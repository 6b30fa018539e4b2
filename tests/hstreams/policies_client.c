/* The three policies of dependence, changed in the middle of a run. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

enum { BYTES = 1 << 16 };

static int open_gate;
static char a[BYTES], b[BYTES];

HSTREAMS_EXPORT void wait_for_gate(char* data) {
  while (!__atomic_load_n(&open_gate, __ATOMIC_ACQUIRE)) sched_yield();
  data[0] = 1;
}

static void choose(HSTR_DEP_POLICY policy) {
  HSTR_OPTIONS options;
  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  options.dep_policy = policy;
  OK(hStreams_SetOptions(&options));
}

static void gate(HSTR_EVENT* event) {
  uint64_t args[1];
  args[0] = (uint64_t)a;
  __atomic_store_n(&open_gate, 0, __ATOMIC_RELEASE);
  OK(hStreams_app_invoke(0, "wait_for_gate", 0, 1, args, event, NULL, 0));
}

static int pending(HSTR_EVENT event) {
  return hStreams_EventWait(1, &event, true, 0, NULL, NULL) == HSTR_RESULT_TIME_OUT_REACHED;
}

int main(void) {
  HSTR_EVENT opened, copied;
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  OK(hStreams_app_init(1, 1));
  OK(hStreams_app_create_buf(a, BYTES));
  OK(hStreams_app_create_buf(b, BYTES));

  gate(&opened); /* transfers of other buffers pass computes */
  OK(hStreams_app_xfer_memory(0, b, b, BYTES, HSTR_SRC_TO_SINK, &copied));
  OK(hStreams_app_event_wait(1, &copied));
  CHECK(pending(opened));
  __atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE);
  OK(hStreams_app_stream_sync(0));

  choose(HSTR_DEP_POLICY_CONSERVATIVE);
  gate(&opened);
  OK(hStreams_app_xfer_memory(0, b, b, BYTES, HSTR_SRC_TO_SINK, &copied));
  CHECK(pending(copied));
  choose(HSTR_DEP_POLICY_BUFFERS); /* what was enqueued before keeps its order */
  OK(hStreams_app_memset(0, b, 1, BYTES, &copied));
  CHECK(pending(copied));
  __atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE);
  OK(hStreams_app_event_wait(1, &copied));

  choose(HSTR_DEP_POLICY_NONE); /* nothing waits for anything */
  gate(&opened);
  memset(&copied, 0x5a, sizeof copied);
  OK(hStreams_StreamSynchronize(0));
  OK(hStreams_ThreadSynchronize());
  OK(hStreams_EventWait(0, NULL, true, -1, NULL, NULL));
  OK(hStreams_EventStreamWait(0, 1, &opened, 0, NULL, &copied));
  CHECK(copied.opaque[0] == 0x5a5a5a5a5a5a5a5a);
  EXPECT(hStreams_StreamSynchronize(9), NOT_FOUND);
  OK(hStreams_app_xfer_memory(0, a, a, BYTES, HSTR_SINK_TO_SRC, &copied));
  choose(HSTR_DEP_POLICY_BUFFERS);
  OK(hStreams_app_event_wait(1, &copied));
  CHECK(pending(opened));
  __atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE);
  OK(hStreams_app_event_wait(1, &opened));
  OK(hStreams_app_fini());
  return 0;
}
