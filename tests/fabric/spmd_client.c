/* What every rank does with the whole interface of the fabric. The arguments say how to start it:
 *
 *   spmd_client                 as a rank, of whatever launcher started it
 *   spmd_client shm RANKS       starts itself
 *   spmd_client inproc RANKS SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#define SECOND 1000000000ll
#define PATIENCE (100 * SECOND)

static int failures = 0;

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "%s:%d: rank %u: %s: %s\n", __FILE__, __LINE__, rank, #condition, \
              weir_last_error());                                                       \
      __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);                               \
    }                                                                                   \
  } while (0)
#define OK(call) EXPECT((call) == WEIR_STATUS_OK)

static void check_collectives(weir_fabric* fabric, unsigned rank, unsigned ranks) {
  int64_t counts[3] = {(int64_t)rank, 7 - (int64_t)rank, INT64_MAX};
  OK(weir_fabric_reduce_int64(fabric, counts, 2, WEIR_FABRIC_OP_SUM, PATIENCE));
  EXPECT(counts[0] == (int64_t)ranks * (ranks - 1) / 2);
  EXPECT(counts[1] == 7 * (int64_t)ranks - counts[0]);
  EXPECT(counts[2] == INT64_MAX);
  double values[2] = {1e16 / (rank + 1), 0.1 * rank}, sum = 0;
  for (unsigned i = 0; i < ranks; ++i) sum = i == 0 ? 1e16 : sum + 1e16 / (i + 1);
  OK(weir_fabric_reduce_double(fabric, values, 1, WEIR_FABRIC_OP_SUM, PATIENCE));
  EXPECT(memcmp(&values[0], &sum, sizeof sum) == 0);
  OK(weir_fabric_reduce_double(fabric, values + 1, 1, WEIR_FABRIC_OP_MAX, PATIENCE));
  EXPECT(values[1] == 0.1 * (ranks - 1));
  for (unsigned root = 0; root < ranks; ++root) {
    unsigned text[2] = {root == rank ? 42 + root : 0, 0};
    OK(weir_fabric_broadcast(fabric, root, text, sizeof text, PATIENCE));
    EXPECT(text[0] == 42 + root);
  }
  EXPECT(weir_fabric_broadcast(fabric, ranks, counts, 8, 0) == WEIR_STATUS_INVALID_ARGUMENT);
}

struct fraction {
  int64_t above, below;
};

/* Keeps the larger fraction; of two equal ones that of the lower rank. */
static void keep_larger(void* into, const void* from, size_t count, void* payload) {
  struct fraction* to = into;
  const struct fraction* more = from;
  ++*(unsigned*)payload;
  for (size_t i = 0; i < count; ++i) {
    if (more[i].above * to[i].below > to[i].above * more[i].below) to[i] = more[i];
  }
}

/* Even and odd ranks as two groups, each in the opposite order. */
static void check_communicators(weir_fabric* fabric, unsigned rank, unsigned ranks) {
  weir_communicator *all = weir_fabric_communicator(fabric), *half = NULL, *node = NULL;
  EXPECT(weir_communicator_rank(all) == rank && weir_communicator_size(all) == ranks);
  EXPECT(weir_communicator_fabric_rank(all, ranks) == WEIR_ALL_RANKS);
  OK(weir_communicator_barrier(all, PATIENCE));
  OK(weir_communicator_split(all, rank % 2, -(int64_t)rank, PATIENCE, &half));
  const unsigned size = (ranks + 1 - rank % 2) / 2, mine = weir_communicator_rank(half);
  EXPECT(weir_communicator_size(half) == size);
  EXPECT(mine == size - 1 - rank / 2 && weir_communicator_fabric_rank(half, mine) == rank);

  int64_t words[1024], all_words[1024], own = (int64_t)rank * 100;
  OK(weir_communicator_gather(half, WEIR_ALL_RANKS, &own, words, sizeof own, PATIENCE));
  for (unsigned i = 0; i < size; ++i) {
    EXPECT(words[i] == 100 * (int64_t)weir_communicator_fabric_rank(half, i));
  }
  OK(weir_communicator_gather(half, size - 1, &own, words, sizeof own, PATIENCE));
  OK(weir_communicator_scatter(half, size - 1, words, &own, sizeof own, PATIENCE));
  EXPECT(own == (int64_t)rank * 100);
  for (unsigned i = 0; i < size; ++i) words[i] = 1000 * (int64_t)mine + i;
  OK(weir_communicator_all_to_all(half, words, all_words, sizeof own, PATIENCE));
  for (unsigned i = 0; i < size; ++i) EXPECT(all_words[i] == 1000 * (int64_t)i + mine);
  size_t sizes[512], received[512]; /* rank r sends r words to each rank */
  for (unsigned i = 0; i < size; ++i) {
    sizes[i] = mine * sizeof own;
    received[i] = i * sizeof own;
  }
  if (size <= 32) {
    OK(weir_communicator_all_to_all_v(half, words, sizes, all_words, received, PATIENCE));
    if (size > 1) EXPECT(all_words[0] == 1000 + mine);
  }

  weir_reduction sum = WEIR_REDUCTION_INIT, larger = WEIR_REDUCTION_INIT;
  sum.type = WEIR_NUMBER_UINT16;
  uint16_t small = 60000;
  OK(weir_communicator_scan(all, &small, 1, &sum, PATIENCE));
  EXPECT(small == (uint16_t)(60000u * (rank + 1)));
  small = 5;
  OK(weir_communicator_exclusive_scan(all, &small, 1, &sum, PATIENCE));
  EXPECT(small == (rank == 0 ? 5 : (uint16_t)(5 * rank)));
  unsigned calls = 0;
  larger.combine = keep_larger;
  larger.size = sizeof(struct fraction);
  larger.payload = &calls;
  struct fraction mean = {rank + 1, rank + 2};
  OK(weir_communicator_reduce(all, 0, &mean, 1, &larger, PATIENCE));
  if (rank == 0) EXPECT(mean.above == ranks && mean.below == ranks + 1 && calls + 1 == ranks);
  sum.op = WEIR_FABRIC_OP_AND;
  sum.type = WEIR_NUMBER_DOUBLE;
  EXPECT(weir_communicator_reduce(all, 0, NULL, 0, &sum, 0) == WEIR_STATUS_INVALID_ARGUMENT);

  OK(weir_communicator_split_by_node(all, PATIENCE, &node));
  EXPECT(weir_communicator_fabric_rank(node, weir_communicator_rank(node)) == rank);
  OK(weir_communicator_barrier(node, PATIENCE));
  weir_communicator_destroy(node);
  weir_communicator_destroy(half);
  OK(weir_communicator_split(all, rank == 0 ? 0 : WEIR_NO_COLOR, 0, PATIENCE, &half));
  EXPECT((half != NULL) == (rank == 0));
  weir_communicator_destroy(half);
  weir_communicator_destroy(all); /* no effect */
  OK(weir_communicator_barrier(all, PATIENCE));
}

struct inbox {
  unsigned rank, ranks, messages;
  unsigned next[1024];
};

static void take(unsigned from, const void* message, size_t bytes, void* payload) {
  struct inbox* inbox = payload;
  const unsigned rank = inbox->rank;
  const unsigned* words = message;
  EXPECT(bytes >= sizeof(unsigned) * 2 && words[0] == from);
  EXPECT(words[1] == inbox->next[from]++);
  ++inbox->messages;
}

static void check_messages(weir_fabric* fabric, unsigned rank, unsigned ranks) {
  enum { MESSAGES = 50, LARGE = 60000 };
  struct inbox inbox = {rank, ranks, 0, {0}};
  unsigned* words = calloc(LARGE, sizeof *words);
  OK(weir_fabric_listen(fabric, take, &inbox));
  words[0] = rank;
  for (unsigned i = 0; i < MESSAGES; ++i) {
    words[1] = i;
    for (unsigned to = 0; to < ranks; ++to) {
      OK(weir_fabric_send(fabric, to, words, (i % 10 == 0 ? LARGE : 2 + i) * sizeof *words));
    }
  }
  while (inbox.messages < MESSAGES * ranks) {
    if (weir_fabric_progress(fabric, PATIENCE) != WEIR_STATUS_OK) break;
  }
  OK(weir_fabric_barrier(fabric, PATIENCE));
  EXPECT(inbox.messages == MESSAGES * ranks);
  OK(weir_fabric_listen(fabric, NULL, NULL));
  EXPECT(weir_fabric_send(fabric, ranks, words, 4) == WEIR_STATUS_INVALID_ARGUMENT);
  free(words);
}

struct echo {
  weir_fabric* fabric;
  unsigned rank, answers;
  unsigned next[1024];
};

/* Answers questions in the handler, so that messages go out while others are taken in. */
static void answer(unsigned from, const void* message, size_t bytes, void* payload) {
  struct echo* echo = payload;
  const unsigned rank = echo->rank;
  const unsigned* words = message;
  EXPECT(bytes >= sizeof(unsigned) * 3 && words[0] < 2);
  if (words[0] == 0) {
    const unsigned back[3] = {1, words[1], words[2]};
    EXPECT(words[1] == from);
    OK(weir_fabric_send(echo->fabric, from, back, sizeof back));
  } else {
    EXPECT(words[1] == rank && words[2] == echo->next[from]++);
    ++echo->answers;
  }
}

static void check_answers(weir_fabric* fabric, unsigned rank, unsigned ranks) {
  enum { QUESTIONS = 400, WORDS = 600 };
  struct echo echo = {fabric, rank, 0, {0}};
  unsigned words[WORDS] = {0, rank, 0};
  OK(weir_fabric_listen(fabric, answer, &echo));
  OK(weir_fabric_barrier(fabric, PATIENCE)); /* no rank has the handler from before */
  for (unsigned i = 0; i < QUESTIONS; ++i) {
    words[2] = i;
    for (unsigned to = 0; to < ranks; ++to) {
      OK(weir_fabric_send(fabric, to, words, (3 + i) * sizeof *words));
    }
  }
  while (echo.answers < QUESTIONS * ranks) {
    if (weir_fabric_progress(fabric, PATIENCE) != WEIR_STATUS_OK) break;
  }
  OK(weir_fabric_barrier(fabric, PATIENCE));
  EXPECT(echo.answers == QUESTIONS * ranks);
  OK(weir_fabric_listen(fabric, NULL, NULL));
}

static unsigned char pattern(unsigned rank, size_t i) { return (unsigned char)(rank * 31 + i * 7); }

/* Each rank has a part of `bytes` for each other one; the last word is a counter. */
static void check_window(weir_fabric* fabric, unsigned rank, unsigned ranks, int own_memory) {
  const size_t bytes = 3000000, size = ranks * bytes + 64;
  unsigned char* const memory = own_memory ? calloc(size, 1) : NULL;
  unsigned char* const data = malloc(bytes);
  weir_window* window = NULL;
  OK(weir_window_create(fabric, memory, size, PATIENCE, &window));
  unsigned char* const mine = weir_window_memory(window);
  EXPECT(mine != NULL && (memory == NULL || mine == memory));
  for (size_t i = 0; i < bytes; ++i) data[i] = pattern(rank, i);
  for (unsigned to = 0; to < ranks; ++to)
    OK(weir_window_put(window, to, rank * bytes, data, bytes));
  for (unsigned to = 0; to < ranks; ++to) OK(weir_window_flush(window, to, PATIENCE));
  OK(weir_fabric_barrier(fabric, PATIENCE));
  size_t wrong = 0;
  for (unsigned from = 0; from < ranks; ++from) {
    for (size_t i = 0; i < bytes; ++i) wrong += mine[from * bytes + i] != pattern(from, i);
    memset(data, 0, bytes);
    OK(weir_window_get(window, from, (ranks - 1) * bytes, data, bytes));
    OK(weir_window_flush(window, from, PATIENCE));
    for (size_t i = 0; i < bytes; ++i) wrong += data[i] != pattern(ranks - 1, i);
  }
  EXPECT(wrong == 0);
  OK(weir_fabric_barrier(fabric, PATIENCE));

  const size_t counter = (ranks * bytes + 7) / 8 * 8;
  int64_t old = -1, last = -1;
  for (int i = 0; i < 100; ++i) {
    OK(weir_window_fetch_add(window, ranks - 1, counter, 1, &old));
    EXPECT(old > last);
    last = old;
  }
  OK(weir_fabric_barrier(fabric, PATIENCE));
  OK(weir_window_compare_swap(window, ranks - 1, counter, 100 * ranks + rank,
                              100 * ranks + rank + 1, &old));
  OK(weir_fabric_barrier(fabric, PATIENCE));
  OK(weir_window_fetch_add(window, ranks - 1, counter, 0, &old));
  EXPECT(old > 100 * ranks && old <= 101 * (int64_t)ranks);

  EXPECT(weir_window_put(window, 0, size - 1, data, 2) == WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT(strstr(weir_last_error(), "outside the window") != NULL);
  EXPECT(weir_window_fetch_add(window, 0, 4, 1, NULL) == WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT(weir_window_get(window, ranks, 0, data, 1) == WEIR_STATUS_INVALID_ARGUMENT);
  OK(weir_fabric_barrier(fabric, PATIENCE));
  weir_window_destroy(window);
  free(data);
  free(memory);
}

/* What connects rank 0 to each rank, as the begin of a name, and to the last rank, as the begin of
 * a longer one, where the test says it. */
static void check_links(weir_fabric* fabric, unsigned rank, unsigned ranks) {
  const char *next = getenv("WEIR_TEST_LINKS"), *last = getenv("WEIR_TEST_LAST_LINK");
  EXPECT(weir_fabric_link(fabric, ranks) == NULL);
  EXPECT(strcmp(weir_fabric_link(fabric, rank), "self") == 0);
  if (last != NULL && rank == 0) {
    EXPECT(strncmp(weir_fabric_link(fabric, ranks - 1), last, strlen(last)) == 0);
  }
  if (next == NULL || rank != 0) return;
  for (unsigned to = 0; to < ranks; ++to) {
    const size_t length = strcspn(next, " ");
    EXPECT(length > 0 && strncmp(weir_fabric_link(fabric, to), next, length) == 0);
    next += length + (next[length] == ' ');
  }
}

static weir_status program(weir_fabric* fabric, void* payload) {
  const unsigned rank = weir_fabric_rank(fabric), ranks = weir_fabric_ranks(fabric);
  (void)payload;
  EXPECT(rank < ranks);
  EXPECT(weir_fabric_is_alive(fabric, ranks - 1) && !weir_fabric_is_alive(fabric, ranks));
  OK(weir_fabric_barrier(fabric, PATIENCE));
  check_links(fabric, rank, ranks);
  check_collectives(fabric, rank, ranks);
  check_communicators(fabric, rank, ranks);
  check_messages(fabric, rank, ranks);
  check_answers(fabric, rank, ranks);
  check_window(fabric, rank, ranks, 0);
  check_window(fabric, rank, ranks, 1);
  /* Last: what some call differently is an error on all, and the end of collectives. */
  if (ranks > 1) {
    int64_t one = 1;
    EXPECT(weir_fabric_reduce_int64(fabric, &one, 1,
                                    rank == 0 ? WEIR_FABRIC_OP_MIN : WEIR_FABRIC_OP_MAX,
                                    PATIENCE) == WEIR_STATUS_INVALID_ARGUMENT);
    EXPECT(strstr(weir_last_error(), "all ranks must call the same") != NULL);
  }
  OK(weir_fabric_barrier(fabric, PATIENCE));
  if (rank == 0) printf("spmd: %u ranks, %d failures\n", ranks, failures);
  return WEIR_STATUS_OK;
}

static int give_up(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weir_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "shm") == 0) {
    const char* const arguments[] = {argv[0], NULL};
    int status = 0;
    if (weir_fabric_launch(NULL, (unsigned)atoi(argv[2]), arguments, &status) != WEIR_STATUS_OK) {
      return give_up("launch");
    }
    return status;
  }
  if (argc == 4 && strcmp(argv[1], "inproc") == 0) {
    weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
    options.seed = (uint64_t)atoi(argv[3]);
    if (weir_fabric_simulate(&options, (unsigned)atoi(argv[2]), program, NULL) != WEIR_STATUS_OK) {
      return give_up("simulate");
    }
    return failures > 0;
  }
  weir_fabric* fabric = NULL;
  if (weir_fabric_open(NULL, &fabric) != WEIR_STATUS_OK) return give_up("open");
  program(fabric, NULL);
  weir_fabric_close(fabric);
  return failures > 0;
}
