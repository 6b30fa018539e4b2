/* Arguments and return values of sink functions: none, nineteen, more, and a result. */
#include <hStreams_sink.h>
#include <hStreams_source.h>

#include "check.h"

#define WORDS_19                                                                             \
  uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, \
      uint64_t a7, uint64_t a8, uint64_t a9, uint64_t a10, uint64_t a11, uint64_t a12,       \
      uint64_t a13, uint64_t a14, uint64_t a15, uint64_t a16, uint64_t a17, uint64_t a18
#define SUM_19                                                                                 \
  (a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 + a16 + \
   a17 + a18)

static uint64_t seen;

HSTREAMS_EXPORT void no_arguments(void) { seen = 7; }

/* A sink function may take a pointer for an address, and less than it is given. */
HSTREAMS_EXPORT void some(uint64_t scalar, int32_t* data) { data[0] = (int32_t)scalar; }

HSTREAMS_EXPORT void nineteen(WORDS_19, void* result, uint16_t size) {
  const uint64_t sum = SUM_19;
  memcpy(result, &sum, size);
}

HSTREAMS_EXPORT void twenty_two(WORDS_19, uint64_t a19, uint64_t a20, uint64_t a21, void* result,
                                uint16_t size) {
  const uint64_t sum = SUM_19 + 1000 * (a19 + a20 + a21);
  memcpy(result, &sum, size);
}

/* The last two words of the most that there can be, seen by their place on the stack. */
HSTREAMS_EXPORT void text_result(uint64_t first, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                                 uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8, uint64_t a9,
                                 uint64_t a10, uint64_t a11, uint64_t a12, uint64_t a13,
                                 uint64_t a14, uint64_t a15, uint64_t a16, uint64_t a17,
                                 uint64_t a18, char* result, uint16_t size) {
  seen = a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 + a16 +
         a17 + a18;
  snprintf(result, size, "first was %d", (int)first);
}

HSTREAMS_EXPORT void most(WORDS_19) { seen = SUM_19; }

static void run(const char* name, uint32_t scalars, uint32_t addresses, uint64_t* args,
                void* result, uint16_t size) {
  HSTR_EVENT event;
  OK(hStreams_EnqueueCompute(100, name, scalars, addresses, args, &event, result, size));
  OK(hStreams_EventWait(1, &event, true, -1, NULL, NULL));
}

static void make_stream(HSTR_PHYS_DOM where) {
  HSTR_CPU_MASK mask;
  HSTR_LOG_DOM domain;
  HSTR_OVERLAP_TYPE overlap;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(1, mask);
  OK(hStreams_AddLogDomain(where, mask, &domain, &overlap));
  OK(hStreams_StreamCreate(100, domain, mask));
}

static void on(HSTR_PHYS_DOM where) {
  static int32_t data[4];
  static uint64_t args[HSTR_MISC_DATA_SIZE];
  uint64_t sum = 0;
  char text[64];
  OK(hStreams_Init());
  make_stream(where);
  OK(hStreams_Alloc1D(data, sizeof data));

  run("no_arguments", 0, 0, NULL, NULL, 0);
  CHECK(seen == 7);

  args[0] = 5;
  args[1] = (uint64_t)(data + 2);
  run("some", 1, 1, args, NULL, 0);
  OK(hStreams_EnqueueData1D(100, data, data, sizeof data, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_StreamSynchronize(100));
  CHECK(data[0] == 0 && data[2] == 5);

  for (uint64_t i = 0; i < 502; ++i) args[i] = i + 1;
  run("nineteen", 19, 0, args, &sum, sizeof sum);
  CHECK(sum == 190);
  run("twenty_two", 22, 0, args, &sum, sizeof sum);
  CHECK(sum == 190 + 1000 * 63);
  run("text_result", 19, 0, args, text, sizeof text);
  CHECK(strcmp(text, "first was 1") == 0 && seen == 189);
  run("most", (uint32_t)(HSTR_ARGS_SUPPORTED), 0, args, NULL, 0);
  CHECK(seen == 190);
  for (uint64_t i = 19; i < 502; ++i) args[i] = (uint64_t)data;
  run("most", 19, (uint32_t)(HSTR_ARGS_SUPPORTED)-19, args, NULL, 0);
  EXPECT(
      hStreams_EnqueueCompute(100, "most", (uint32_t)(HSTR_ARGS_SUPPORTED), 1, args, NULL, NULL, 0),
      TOO_MANY_ARGS);
  OK(hStreams_Fini());
}

int main(void) {
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  on(0);
  on(HSTR_SRC_PHYS_DOMAIN);
  return 0;
}
