/* A rank that ends or stops in the middle, and what the others see of it. As a rank of a launcher:
 *
 *   faults_client kill|stop|exit        the last rank does this to itself
 *   faults_client shm RANKS WHAT        starts itself with it
 *
 * Prints "survivor R" for each rank that went on as it should, and exits with 0 there.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#define LOST_AFTER 1000000000ll
#define PATIENCE (60 * 1000000000ll)

static unsigned rank = 0;

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "%s:%d: rank %u: %s: %s\n", __FILE__, __LINE__, rank, #condition, \
              weir_last_error());                                                       \
      _exit(1);                                                                         \
    }                                                                                   \
  } while (0)
#define OK(call) EXPECT((call) == WEIR_STATUS_OK)

static int fail_with(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weir_last_error());
  return 1;
}

static void fall(const char* what) {
  if (strcmp(what, "kill") == 0) raise(SIGKILL);
  if (strcmp(what, "stop") == 0) raise(SIGSTOP);
  _exit(7);
}

/* Operations on the victim fail in time and name it; those on others go on. */
static void survive(weir_fabric* fabric, weir_window* window, unsigned victim) {
  char name[32];
  snprintf(name, sizeof name, "rank %u", victim);
  weir_status status = WEIR_STATUS_OK;
  while (weir_fabric_is_alive(fabric, victim) && status == WEIR_STATUS_OK) {
    int64_t old = 0;
    status = weir_window_fetch_add(window, victim, 8, 1, &old);
    if (status == WEIR_STATUS_OK) status = weir_fabric_send(fabric, victim, "x", 1);
  }
  EXPECT(weir_window_fetch_add(window, victim, 8, 1, NULL) == WEIR_STATUS_NETWORK_ERROR);
  EXPECT(strstr(weir_last_error(), name) != NULL);
  EXPECT(weir_fabric_send(fabric, victim, "x", 1) == WEIR_STATUS_NETWORK_ERROR);
  EXPECT(!weir_fabric_is_alive(fabric, victim));
  int64_t number = 1;
  EXPECT(weir_fabric_reduce_int64(fabric, &number, 1, WEIR_FABRIC_OP_SUM, PATIENCE) ==
         WEIR_STATUS_NETWORK_ERROR);
  EXPECT(strstr(weir_last_error(), name) != NULL);
  OK(weir_fabric_barrier(fabric, PATIENCE));
  int64_t old = 0;
  const unsigned next = (rank + 1) % victim;
  OK(weir_window_fetch_add(window, next, 0, 1, &old));
  OK(weir_fabric_barrier(fabric, PATIENCE));
  EXPECT(*(int64_t*)weir_window_memory(window) == 1);
  OK(weir_fabric_barrier(fabric, PATIENCE));
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "shm") == 0) {
    const char* const arguments[] = {argv[0], argv[3], NULL};
    weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
    options.lost_after_ns = LOST_AFTER;
    int status = 0;
    if (weir_fabric_launch(&options, (unsigned)atoi(argv[2]), arguments, &status) !=
        WEIR_STATUS_OK) {
      return fail_with("launch");
    }
    printf("status %d\n", status);
    return 0;
  }
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.lost_after_ns = LOST_AFTER;
  weir_fabric* fabric = NULL;
  if (weir_fabric_open(&options, &fabric) != WEIR_STATUS_OK) return fail_with("open");
  rank = weir_fabric_rank(fabric);
  const unsigned victim = weir_fabric_ranks(fabric) - 1;
  weir_window* window = NULL;
  OK(weir_window_create(fabric, NULL, 16, PATIENCE, &window));
  OK(weir_fabric_barrier(fabric, PATIENCE));
  if (rank == victim) fall(argv[1]);
  survive(fabric, window, victim);
  printf("survivor %u\n", rank);
  fflush(stdout);
  /* mpirun may end all when the first one ends: not before all have said so. */
  OK(weir_fabric_barrier(fabric, PATIENCE));
  weir_fabric_close(fabric);
  return 0;
}
