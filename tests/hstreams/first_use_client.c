/* build: -fopenmp */
/* What the first action of a program finds: the memory of instances, and the OpenMP threads of its
   stream. Programs time one pass, and do not expect to pay for these in it. */
#include <dirent.h>
#include <hStreams_app_api.h>
#include <hStreams_sink.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 24 << 20, kMostThreads = 4096 };

HSTREAMS_EXPORT void nothing(void) {}

HSTREAMS_EXPORT void fork_threads(uint64_t* count) {
#pragma omp parallel
  __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static long resident_bytes(void) {
  long all, resident;
  FILE* const file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld %ld", &all, &resident) == 2);
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

static int threads_of_process(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/task");
  CHECK(folder != NULL);
  for (struct dirent* each = readdir(folder); each != NULL; each = readdir(folder)) {
    count += each->d_name[0] != '.';
  }
  closedir(folder);
  return count;
}

/* How much memory the instances of a buffer take, made with these flags. */
static long memory_taken(uint64_t flags) {
  HSTR_BUFFER_PROPS props = HSTR_BUFFER_PROPS_INITIAL_VALUES;
  void* const data = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  props.flags |= flags;
  const long before = resident_bytes();
  OK(hStreams_Alloc1DEx(data, kBytes, &props, -1, NULL));
  const long taken = resident_bytes() - before;
  OK(hStreams_DeAlloc(data));
  munmap(data, kBytes);
  return taken;
}

static void instances_are_there(void) {
  uint32_t cards, active;
  bool alike;
  static char small[64];
  OK(hStreams_GetNumPhysDomains(&cards, &active, &alike));
  OK(hStreams_app_create_buf(small, sizeof small));
  OK(hStreams_app_xfer_memory(0, small, small, sizeof small, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_thread_sync());
  CHECK(memory_taken(0) > (long)cards * kBytes / 10 * 9);
  CHECK(memory_taken(HSTR_BUF_PROP_AFFINITIZED) < kBytes / 2);
}

static void teams_are_there(void) {
  static uint64_t count;
  uint64_t args[1];
  args[0] = (uint64_t)&count;
  OK(hStreams_app_create_buf(&count, sizeof count));
  OK(hStreams_app_invoke(0, "nothing", 0, 0, NULL, NULL, NULL, 0));
  OK(hStreams_app_thread_sync());
  const int threads = threads_of_process();
  for (int i = 0; i < 30; ++i) {
    OK(hStreams_app_invoke(0, "fork_threads", 0, 1, args, NULL, NULL, 0));
    OK(hStreams_app_invoke(0, "nothing", 0, 0, NULL, NULL, NULL, 0));
    if (i % 10 == 0) OK(hStreams_app_thread_sync());
  }
  OK(hStreams_app_xfer_memory(0, &count, &count, sizeof count, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_thread_sync());
  CHECK(count >= 30 && count % 30 == 0);
  CHECK(threads_of_process() == threads);
}

#ifdef KMP_VERSION_MAJOR
/* This OpenMP says how long it polls. */
static void threads_of_the_program_sleep(void) { CHECK(kmp_get_blocktime() == 0); }
#else
static long sleeps_of(long thread) {
  char path[64], line[256];
  long count = -1;
  snprintf(path, sizeof path, "/proc/self/task/%ld/status", thread);
  FILE* const file = fopen(path, "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL)
    sscanf(line, "voluntary_ctxt_switches: %ld", &count);
  fclose(file);
  CHECK(count >= 0);
  return count;
}

static void pause_times(int times) {
#if defined(__x86_64__)
  while (times-- > 0) __builtin_ia32_pause();
#else
  usleep((useconds_t)times / 100);
#endif
}

/* Between two regions of the program its own OpenMP threads sleep: streams have the processors. One
   that OpenMP lets poll does so 300,000 times. */
static void threads_of_the_program_sleep(void) {
  enum { kRegions = 40, kPauses = 30000 };
  static long threads[kMostThreads];
  int team = 0;
  long before = 0, after = 0;
  omp_set_num_threads(2);
  for (int region = 0; region < kRegions; ++region) {
#pragma omp parallel
    {
      threads[omp_get_thread_num()] = syscall(SYS_gettid);
#pragma omp single
      team = omp_get_num_threads();
    }
    if (team < 2) return;
    if (region == 0) before = sleeps_of(threads[1]);
    pause_times(kPauses);
  }
  after = sleeps_of(threads[1]);
  CHECK(after - before >= kRegions / 4);
}

#endif

int main(void) {
  OK(hStreams_app_init(1, 1));
  instances_are_there();
  teams_are_there();
  OK(hStreams_app_fini());
  OK(hStreams_app_init(240, 1)); /* a stream on each thread of the device: all of one core */
  threads_of_the_program_sleep();
  OK(hStreams_app_fini());
  return 0;
}
