/* Calls from many threads, among them the last one; several lives in one process; a system that has
   no more threads to give. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>
#include <pthread.h>
#include <sys/resource.h>

#include "../support/sanitizers.h"
#include "check.h"

enum { THREADS = 4, ROUNDS = 200 };

static uint64_t counters[THREADS][8];
static uint64_t shared_counter;

HSTREAMS_EXPORT void increment(uint64_t* counter) { ++*counter; }

static void enqueue(HSTR_LOG_STR stream, uint64_t* counter) {
  uint64_t args[1];
  args[0] = (uint64_t)counter;
  OK(hStreams_app_invoke(stream, "increment", 0, 1, args, NULL, NULL, 0));
}

static void* work(void* number) {
  const size_t me = (size_t)number;
  for (int round = 0; round < ROUNDS; ++round) {
    enqueue(me, counters[me]);
    enqueue(0, &shared_counter);
    if (round % 16 == 0) OK(hStreams_app_stream_sync(me));
    if (round % 50 == 0) {
      OK(hStreams_Alloc1D(&counters[me][4], 16));
      OK(hStreams_DeAlloc(&counters[me][4]));
    }
  }
  return NULL;
}

/* Waits again and again until the library is closed under it. */
static void* wait_until_the_end(void* nothing) {
  HSTR_RESULT result = HSTR_RESULT_SUCCESS;
  while (result == HSTR_RESULT_SUCCESS) result = hStreams_ThreadSynchronize();
  CHECK(result == HSTR_RESULT_NOT_INITIALIZED);
  return nothing;
}

static void one_life(void) {
  pthread_t threads[THREADS], waiter;
  OK(hStreams_app_init(THREADS, 1));
  memset(counters, 0, sizeof counters);
  shared_counter = 0;
  for (size_t i = 0; i < THREADS; ++i) OK(hStreams_app_create_buf(counters[i], 32));
  OK(hStreams_app_create_buf(&shared_counter, sizeof shared_counter));
  CHECK(pthread_create(&waiter, NULL, wait_until_the_end, NULL) == 0);
  for (size_t i = 0; i < THREADS; ++i) {
    CHECK(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  }
  for (size_t i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (size_t i = 0; i < THREADS; ++i) {
    OK(hStreams_app_xfer_memory(i, counters[i], counters[i], 8, HSTR_SINK_TO_SRC, NULL));
  }
  OK(hStreams_app_xfer_memory(0, &shared_counter, &shared_counter, 8, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_fini()); /* ends what is enqueued first */
  CHECK(pthread_join(waiter, NULL) == 0);
  for (size_t i = 0; i < THREADS; ++i) CHECK(counters[i][0] == ROUNDS);
  CHECK(shared_counter == THREADS * ROUNDS);
}

static void no_more_threads(void) {
#if !defined(WEIR_ADDRESS_SANITIZER) && !defined(WEIR_THREAD_SANITIZER)
  HSTR_CPU_MASK mask;
  HSTR_LOG_DOM domain;
  HSTR_OVERLAP_TYPE overlap;
  struct rlimit limit;
  long pages = 0;
  FILE* file;
  HSTR_CPU_MASK_ZERO(mask);
  HSTR_CPU_MASK_SET(1, mask);
  OK(hStreams_Init());
  OK(hStreams_AddLogDomain(0, mask, &domain, &overlap));
  file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
  fclose(file);
  limit.rlim_max = RLIM_INFINITY;
  limit.rlim_cur = (rlim_t)pages * 4096 + (4 << 20); /* less than the stack of a thread */
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  EXPECT(hStreams_StreamCreate(1, domain, mask), RESOURCE_EXHAUSTED);
  limit.rlim_cur = RLIM_INFINITY;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  OK(hStreams_StreamCreate(1, domain, mask));
  OK(hStreams_Fini());
#endif
}

int main(void) {
  OK(hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL_NO_LOGGING));
  no_more_threads(); /* the system keeps the stacks of threads that ended */
  for (int life = 0; life < 3; ++life) one_life();
  return 0;
}
