/* Wisdom in C: what is kept is found again, for the same problem alone. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static weir_runtime* make_runtime(const char* domains) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* runtime = NULL;
  options.domains = domains;
  CHECK_OK(weir_runtime_create(&options, &runtime));
  return runtime;
}

static weir_wisdom make_wisdom(size_t places, const char* policy) {
  weir_wisdom wisdom = WEIR_WISDOM_INIT;
  wisdom.places = places;
  wisdom.streams = 3;
  wisdom.tiles = 12;
  wisdom.aspect = 4;
  wisdom.seconds = 0.1;
  strncpy(wisdom.policy, policy, sizeof wisdom.policy - 1);
  return wisdom;
}

static void found_again(void) {
  weir_runtime* const runtime = make_runtime("null");
  const weir_wisdom kept = make_wisdom(7, "finish"), other = make_wisdom(2, "");
  weir_wisdom found = WEIR_WISDOM_INIT;
  CHECK_FAILS(weir_wisdom_find(runtime, "solve", 1000, &found), WEIR_STATUS_NOT_FOUND, "solve");
  CHECK(found.places == 1 && found.tiles == 0);
  CHECK_OK(weir_wisdom_keep(runtime, "solve", 1000, &kept));
  CHECK_OK(weir_wisdom_find(runtime, "solve", 1000, &found));
  CHECK(found.places == 7 && found.streams == 3 && found.tiles == 12 && found.seconds == 0.1);
  CHECK(found.aspect == 4);
  CHECK(strcmp(found.policy, "finish") == 0);
  CHECK_OK(weir_wisdom_keep(runtime, "solve", 1000, &other));
  CHECK_OK(weir_wisdom_find(runtime, "solve", 1000, &found));
  CHECK(found.places == 2 && strcmp(found.policy, "") == 0);
  weir_runtime_destroy(runtime);
}

static void for_the_same_problem_alone(void) {
  weir_runtime* const runtime = make_runtime("null");
  weir_runtime* const card = make_runtime("sim:clock=virtual");
  const weir_wisdom kept = make_wisdom(5, "");
  weir_wisdom found = WEIR_WISDOM_INIT;
  CHECK_OK(weir_wisdom_keep(runtime, "sort", 1000, &kept));
  CHECK_OK(weir_wisdom_find(runtime, "sort", 1100, &found));
  CHECK(found.places == 5);
  CHECK_FAILS(weir_wisdom_find(runtime, "sort", 2000, &found), WEIR_STATUS_NOT_FOUND, "sort");
  CHECK_FAILS(weir_wisdom_find(runtime, "sort", 0, &found), WEIR_STATUS_NOT_FOUND, "sort");
  CHECK_FAILS(weir_wisdom_find(runtime, "sort, float", 1000, &found), WEIR_STATUS_NOT_FOUND,
              "sort, float");
  CHECK_FAILS(weir_wisdom_find(card, "sort", 1000, &found), WEIR_STATUS_NOT_FOUND, "sort");
  CHECK_OK(weir_wisdom_keep(card, "sort", UINT64_MAX, &kept));
  CHECK_OK(weir_wisdom_find(card, "sort", UINT64_MAX, &found));
  weir_runtime_destroy(card);
  weir_runtime_destroy(runtime);
}

static void bad_input(void) {
  weir_runtime* const runtime = make_runtime("null");
  weir_wisdom good = make_wisdom(1, ""), bad = good, found = WEIR_WISDOM_INIT;
  CHECK_REFUSED(weir_wisdom_find(NULL, "a", 1, &found), "runtime");
  CHECK_REFUSED(weir_wisdom_find(runtime, NULL, 1, &found), "problem");
  CHECK_REFUSED(weir_wisdom_find(runtime, "", 1, &found), "empty");
  CHECK_REFUSED(weir_wisdom_find(runtime, "a\nb", 1, &found), "one line");
  CHECK_REFUSED(weir_wisdom_find(runtime, "a", 1, NULL), "out_wisdom");
  CHECK_REFUSED(weir_wisdom_keep(NULL, "a", 1, &good), "runtime");
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, NULL), "wisdom");
  bad.places = 0;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "0 places");
  bad = good;
  bad.streams = 0;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "0 streams");
  bad = good;
  bad.aspect = 0;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "aspect 0");
  bad = good;
  bad.seconds = -1;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "-1 s");
  bad.seconds = INFINITY;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "inf s");
  bad.seconds = NAN;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "nan s");
  bad = good;
  memset(bad.policy, 'x', sizeof bad.policy);
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "no end");
  bad = good;
  strcpy(bad.policy, "a\tb");
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "policy");
  bad = good;
  bad.struct_size = 1;
  CHECK_REFUSED(weir_wisdom_keep(runtime, "a", 1, &bad), "struct_size");
  found.struct_size = 3;
  CHECK_OK(weir_wisdom_keep(runtime, "a", 1, &good));
  CHECK_REFUSED(weir_wisdom_find(runtime, "a", 1, &found), "struct_size");
  weir_runtime_destroy(runtime);
}

static void nowhere_to_keep_it(void) {
  weir_runtime* const runtime = make_runtime("null");
  const weir_wisdom kept = make_wisdom(1, "");
  weir_wisdom found = WEIR_WISDOM_INIT;
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  CHECK_OK(weir_wisdom_keep(runtime, "lost", 1, &kept));
  CHECK_FAILS(weir_wisdom_find(runtime, "lost", 1, &found), WEIR_STATUS_NOT_FOUND, "lost");
  weir_runtime_destroy(runtime);
}

int main(void) {
  char folder[] = "/tmp/weir-wisdom-XXXXXX", command[64];
  if (mkdtemp(folder) == NULL) return 1;
  setenv("XDG_CACHE_HOME", folder, 1);
  RUN(found_again);
  RUN(for_the_same_problem_alone);
  RUN(bad_input);
  RUN(nowhere_to_keep_it);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return check_failures > 0 || system(command) != 0;
}
