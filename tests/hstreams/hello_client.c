/* Hello from a sink function, and what it answers. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

HSTREAMS_EXPORT void hello(uint64_t number, char* greeting) {
  snprintf(greeting, 64, "hello %d from the sink", (int)number);
}

int main(void) {
  char greeting[64] = "not yet";
  uint64_t args[2];
  args[0] = 42;
  args[1] = (uint64_t)greeting;

  CHECK_HSTR_RESULT(hStreams_app_init(1, 1));
  CHECK_HSTR_RESULT(hStreams_app_create_buf(greeting, sizeof greeting));
  CHECK_HSTR_RESULT(hStreams_app_invoke(0, "hello", 1, 1, args, NULL, NULL, 0));
  CHECK_HSTR_RESULT(
      hStreams_app_xfer_memory(0, greeting, greeting, sizeof greeting, HSTR_SINK_TO_SRC, NULL));
  CHECK_HSTR_RESULT(hStreams_app_thread_sync());
  CHECK(strcmp(greeting, "hello 42 from the sink") == 0);
  printf("%s\n", greeting);
  CHECK_HSTR_RESULT(hStreams_app_fini());
  return 0;
}
