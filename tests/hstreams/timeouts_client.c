/* Time-outs: waits end, the work goes on and can be waited for again. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

static int open_gate;

HSTREAMS_EXPORT void wait_for_gate(void) {
  while (!__atomic_load_n(&open_gate, __ATOMIC_ACQUIRE)) sched_yield();
}

int main(void) {
  HSTR_OPTIONS options;
  HSTR_EVENT event;
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  OK(hStreams_app_init(2, 1));
  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  CHECK(options.time_out_ms_val == HSTR_TIME_INFINITE);
  options.time_out_ms_val = 20;
  OK(hStreams_SetOptions(&options));

  OK(hStreams_app_invoke(1, "wait_for_gate", 0, 0, NULL, &event, NULL, 0));
  OK(hStreams_StreamSynchronize(0));
  EXPECT(hStreams_StreamSynchronize(1), TIME_OUT_REACHED);
  EXPECT(hStreams_app_stream_sync(1), TIME_OUT_REACHED);
  EXPECT(hStreams_ThreadSynchronize(), TIME_OUT_REACHED);
  EXPECT(hStreams_app_event_wait(1, &event), TIME_OUT_REACHED);
  EXPECT(hStreams_EventWait(1, &event, true, 0, NULL, NULL), TIME_OUT_REACHED);
  EXPECT(hStreams_EventWait(1, &event, false, 5, NULL, NULL), TIME_OUT_REACHED);
  CHECK(hStreams_GetLastError() == HSTR_RESULT_TIME_OUT_REACHED);

  options.time_out_ms_val = HSTR_TIME_INFINITE;
  OK(hStreams_SetOptions(&options));
  __atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE);
  OK(hStreams_StreamSynchronize(1));
  OK(hStreams_app_thread_sync());
  OK(hStreams_EventWait(1, &event, true, 0, NULL, NULL));
  OK(hStreams_app_fini());

  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  CHECK(options.time_out_ms_val == HSTR_TIME_INFINITE);
  return 0;
}
