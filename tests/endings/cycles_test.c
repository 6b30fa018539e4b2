/* Beginnings and ends of runtimes, threads and children leave nothing behind.
 *
 * usage: cycles_test [host|sim|virtual|together|threads|fork]    (all of them)
 *
 * WEIR_TEST_CYCLES: runtimes made and destroyed in each kind of domain, 300 by default; 10000 take
 * about two minutes. */
#include "../capi/fixture.h"
#include "../support/sanitizers.h"
#include "usage.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { TOGETHER = 64, THREADS = 1000, WARM_UP = 300, GROWTH_KIB = 1024, DOUBLES = 64 };

/* A sanitizer keeps freed memory for a while. */
#if defined(WEIR_ADDRESS_SANITIZER) || defined(WEIR_THREAD_SANITIZER)
enum { MEASURED = 0 };
#else
enum { MEASURED = 1 };
#endif

/* A runtime with a place, a stream and a buffer of zeros. */
typedef struct small {
  weir_runtime* runtime;
  weir_stream* stream;
  weir_buffer* buffer;
  double* data;
} small;

static small make_small(const char* domains, const char* kernel) {
  small s = {0};
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_place_options place_options = WEIR_PLACE_OPTIONS_INIT;
  weir_place* place = NULL;
  options.domains = domains;
  require(weir_runtime_create(&options, &s.runtime));
  const uint32_t core = 0;
  place_options.cores = &core;
  place_options.core_count = 1;
  place_options.oversubscribe = true;
  require(weir_place_create(weir_runtime_get_domain(s.runtime, 0), &place_options, &place));
  s.stream = make_stream(place, "work");
  s.buffer = make_buffer(s.runtime, "x", &s.data);
  s.data[0] = 0;
  register_kernel(s.runtime, kernel, add_kernel, NULL);
  return s;
}

static void add_one(const small* s, const char* kernel) {
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  weir_kernel* found = NULL;
  require(weir_kernel_find(s->runtime, kernel, &found));
  const weir_operand operand = {s->buffer, all, WEIR_ACCESS_READ_WRITE};
  const weir_scalar one = weir_scalar_f64(1);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = found;
  compute.operands = &operand;
  compute.operand_count = 1;
  compute.scalars = &one;
  compute.scalar_count = 1;
  require(weir_stream_upload(s->stream, s->buffer, all, NULL));
  require(weir_stream_compute(s->stream, &compute, NULL));
  require(weir_stream_download(s->stream, s->buffer, all, NULL));
}

static void one_cycle(const char* domains) {
  const small s = make_small(domains, "add");
  add_one(&s, "add");
  CHECK_OK(weir_stream_synchronize(s.stream, WEIR_FOREVER));
  CHECK(s.data[0] == 1);
  weir_runtime_destroy(s.runtime);
}

static long cycles(const char* name, const char* domains) {
  const long count = amount_of("WEIR_TEST_CYCLES", 300);
  for (int i = 0; i < WARM_UP; ++i) one_cycle(domains);
  const usage before = measure_usage();
  for (long i = 0; i < count; ++i) one_cycle(domains);
  const usage after = measure_usage();
  const long grown = after.resident_kib - before.resident_kib;
  printf("%s: %ld runtimes, %ld KiB more resident\n", name, count, grown);
  CHECK(!MEASURED || grown < GROWTH_KIB);
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  return count;
}

/* Whether a file has a text in it. */
static bool holds(const char* path, const char* text) {
  char* const content = calloc(1 << 20, 1);
  FILE* const file = fopen(path, "r");
  bool found = false;
  if (file != NULL) {
    found = fread(content, 1, (1 << 20) - 1, file) > 0 && strstr(content, text) != NULL;
    fclose(file);
  }
  free(content);
  return found;
}

/* Many runtimes work at the same time, and each writes a trace of its own; one that cannot be made
   takes no name. */
static void together(void) {
  static small all[TOGETHER];
  weir_runtime_options wrong = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* none = NULL;
  char folder[] = "/tmp/weir-cycles-XXXXXX";
  char path[64], name[32], quoted[40];
  if (mkdtemp(folder) == NULL) abort();
  snprintf(path, sizeof path, "%s/t.json", folder);
  setenv("WEIR_TRACE", path, 1);
  wrong.domains = "no-such-domain";
  CHECK(weir_runtime_create(&wrong, &none) != WEIR_STATUS_OK);
  for (int i = 0; i < TOGETHER; ++i) {
    snprintf(name, sizeof name, "kernel-%d", i);
    all[i] = make_small(i % 2 ? "host" : "sim:gbps=10,cores=1", name);
  }
  unsetenv("WEIR_TRACE");
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < TOGETHER; ++i) {
      snprintf(name, sizeof name, "kernel-%d", i);
      add_one(&all[i], name);
    }
  }
  for (int i = 0; i < TOGETHER; ++i) {
    CHECK_OK(weir_stream_synchronize(all[i].stream, WEIR_FOREVER));
    CHECK(all[i].data[0] == 20);
  }
  for (int i = TOGETHER; i-- > 0;) weir_runtime_destroy(all[i].runtime);
  for (int i = 0; i < TOGETHER; ++i) {
    if (i > 0) snprintf(path, sizeof path, "%s/t.%d.json", folder, i + 1);
    snprintf(quoted, sizeof quoted, "\"kernel-%d\"", i);
    CHECK(holds(path, quoted));
    remove(path);
  }
  CHECK(rmdir(folder) == 0);
}

static void* enqueue_and_leave(void* payload) {
  add_one(payload, "add");
  return NULL;
}

/* Threads that have ended leave nothing of their own, also if they owned a stream or recorded. */
static void threads(void) {
  static const char* const domains[] = {"host", "sim:cores=1"};
  for (int d = 0; d < 2; ++d) {
    small s = make_small(domains[d], "add");
    pthread_t thread;
    usage before = {0};
    for (int i = 0; i < 2 * THREADS; ++i) {
      /* What is in flight has memory, too: keep that little. */
      if (i % 50 == 0) CHECK_OK(weir_stream_synchronize(s.stream, WEIR_FOREVER));
      if (i == THREADS) before = measure_usage();
      if (pthread_create(&thread, NULL, enqueue_and_leave, &s) != 0) abort();
      pthread_join(thread, NULL);
    }
    CHECK_OK(weir_stream_synchronize(s.stream, WEIR_FOREVER));
    CHECK(s.data[0] == 2 * THREADS);
    const usage after = measure_usage();
    CHECK(!MEASURED || after.resident_kib - before.resident_kib < GROWTH_KIB);
    CHECK(after.threads == before.threads);
    weir_runtime_destroy(s.runtime);
  }
}

/* A child may leave or become another program; the parent does not notice. */
static void children(void) {
  small s = make_small("host", "add");
  for (int i = 0; i < 100; ++i) {
    int status = -1;
    add_one(&s, "add");
    const pid_t child = fork();
    if (child == 0) {
      if (i % 2 == 0) _exit(7);
      execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
      _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  CHECK_OK(weir_stream_synchronize(s.stream, WEIR_FOREVER));
  CHECK(s.data[0] == 100);
  weir_runtime_destroy(s.runtime);
}

int main(int argc, char** argv) {
  const char* const part = argc > 1 ? argv[1] : "";
  const bool all = *part == '\0';
  long made = 0;
  if (all || strcmp(part, "host") == 0) made += cycles("host", "host");
  if (all || strcmp(part, "sim") == 0) made += cycles("sim", "sim:cores=1");
  if (all || strcmp(part, "virtual") == 0) {
    made += cycles("virtual", "sim:clock=virtual,cores=1");
  }
  if (all || strcmp(part, "together") == 0) together();
  if (all || strcmp(part, "threads") == 0) threads();
  if (all || strcmp(part, "fork") == 0) children();
  if (all && check_failures == 0) {
    printf(
        "proof: %ld runtimes one after another, %d at once with a trace each, %d threads, "
        "100 children\n",
        made, TOGETHER, 4 * THREADS);
  }
  return check_failures != 0;
}
