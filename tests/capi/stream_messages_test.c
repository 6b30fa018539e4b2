/* Messages and collective operations between ranks as actions of streams: order with kernels,
 * device memory, failures. */
#include "ranks.h"

#include <sys/resource.h>

#include "../support/sanitizers.h"

enum { ROUNDS = 20, ROW = 4, ROWS = 8 };

/* What a rank has of its own. */
typedef struct rank {
  weir_fabric* fabric;
  weir_communicator* all;
  unsigned rank;
  weir_runtime* runtime;
  weir_stream* stream;
  weir_buffer *out, *in;
  double *out_data, *in_data;
} rank;

static rank join(weir_fabric* fabric) {
  rank own;
  memset(&own, 0, sizeof own);
  own.fabric = fabric;
  own.all = weir_fabric_communicator(fabric);
  own.rank = weir_fabric_rank(fabric);
  open_runtime(fabric, &own.runtime, &own.stream);
  own.out = make_buffer(own.runtime, "out", &own.out_data);
  own.in = make_buffer(own.runtime, "in", &own.in_data);
  register_kernel(own.runtime, "add", add_kernel, NULL);
  register_kernel(own.runtime, "fail", fail_kernel, NULL);
  return own;
}

static void leave(rank* own) {
  CHECK_OK(weir_fabric_barrier(own->fabric, SOON));
  weir_runtime_destroy(own->runtime);
}

/* In each round a rank adds 1 to what it has, sends it to the right and goes on with what comes
 * from the left; as a block of rows, which arrives contiguous. */
static weir_status pass_round(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const unsigned right = (own.rank + 1) % RANKS, left = (own.rank + RANKS - 1) % RANKS;
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  const weir_region rows = {0, {ROW * 8, ROWS, 1}, {2 * ROW * 8, 0}};
  const weir_region packed = weir_region_range(0, ROW * ROWS * 8);
  (void)payload;
  own.out_data[0] = 100 * own.rank;
  CHECK_OK(weir_stream_upload(own.stream, own.out, all, NULL));
  for (int round = 0; round < ROUNDS; ++round) {
    weir_buffer* const from = round % 2 == 0 ? own.out : own.in;
    weir_buffer* const to = round % 2 == 0 ? own.in : own.out;
    CHECK_OK(enqueue(own.stream, "add", from, 1, NULL));
    CHECK_OK(weir_stream_receive(own.stream, own.all, left, 0, to, packed, NULL));
    CHECK_OK(weir_stream_send(own.stream, own.all, right, 0, from, rows, NULL));
  }
  CHECK_OK(weir_stream_download(own.stream, own.out, all, NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  const unsigned origin = (own.rank + RANKS - ROUNDS % RANKS) % RANKS;
  CHECK(own.out_data[0] == 100 * origin + ROUNDS);
  leave(&own);
  return WEIR_STATUS_OK;
}

/* Receives are enqueued in another order than the sends: tags and numbers match them. */
static weir_status match(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const unsigned other = own.rank ^ 1;
  (void)payload;
  if (own.rank < 2) {
    for (unsigned i = 0; i < 8; ++i) own.out_data[i] = 10 * own.rank + i;
    CHECK_OK(weir_stream_upload(own.stream, own.out, weir_region_range(0, FIXTURE_BYTES), NULL));
    for (unsigned i = 0; i < 8; ++i) {
      CHECK_OK(weir_stream_send(own.stream, own.all, other, i % 2, own.out,
                                weir_region_range(8 * i, 8), NULL));
    }
    for (unsigned tag = 2; tag-- > 0;) {
      for (unsigned i = tag; i < 8; i += 2) {
        CHECK_OK(weir_stream_receive(own.stream, own.all, other, tag, own.in,
                                     weir_region_range(8 * i, 8), NULL));
      }
    }
    CHECK_OK(weir_stream_download(own.stream, own.in, weir_region_range(0, FIXTURE_BYTES), NULL));
    CHECK_OK(weir_stream_synchronize(own.stream, SOON));
    for (unsigned i = 0; i < 8; ++i) CHECK(own.in_data[i] == 10 * other + i);
  }
  leave(&own);
  return WEIR_STATUS_OK;
}

/* Rank 0 fails before it sends: the receive of rank 1 fails, and so does what depends on it. */
static weir_status poisoned(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  weir_event event = WEIR_EVENT_INIT, after = WEIR_EVENT_INIT;
  (void)payload;
  if (own.rank == 0) {
    CHECK_OK(enqueue(own.stream, "fail", own.out, 0, NULL));
    CHECK_OK(weir_stream_send(own.stream, own.all, 1, 5, own.out, all, &event));
    CHECK_FAILS(weir_event_wait(own.runtime, &event, 1, WEIR_WAIT_MODE_ALL, SOON, NULL),
                WEIR_STATUS_POISONED, "tile 7");
    CHECK_OK(weir_stream_send(own.stream, own.all, 1, 5, own.in, all, &event)); /* has not failed */
    CHECK_OK(weir_event_wait(own.runtime, &event, 1, WEIR_WAIT_MODE_ALL, SOON, NULL));
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "tile 7");
  } else if (own.rank == 1) {
    CHECK_OK(weir_stream_receive(own.stream, own.all, 0, 5, own.in, all, NULL));
    CHECK_OK(enqueue(own.stream, "add", own.in, 1, &after));
    CHECK_FAILS(weir_event_wait(own.runtime, &after, 1, WEIR_WAIT_MODE_ALL, SOON, NULL),
                WEIR_STATUS_POISONED, "rank 0");
    CHECK_OK(weir_stream_receive(own.stream, own.all, 0, 5, own.out, all, &after));
    CHECK_OK(weir_event_wait(own.runtime, &after, 1, WEIR_WAIT_MODE_ALL, SOON, NULL));
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_NETWORK_ERROR, "tile 7");
  }
  leave(&own);
  return WEIR_STATUS_OK;
}

/* 0 with the address sanitizer, which keeps memory that was released. */
static long most_memory_kib(void) {
#ifdef WEIR_ADDRESS_SANITIZER
  return 0;
#else
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
#endif
}

/* Many long messages are enqueued at once: their buffers in host memory do not grow with them. */
static weir_status many(weir_fabric* fabric, void* payload) {
  enum { MANY = 200, LONG = 1 << 20, MOST_KIB = 200 << 10 };
  rank own = join(fabric);
  const unsigned right = (own.rank + 1) % RANKS, left = (own.rank + RANKS - 1) % RANKS;
  const weir_region all = weir_region_range(0, LONG);
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  weir_buffer* buffers[2] = {NULL, NULL};
  double* data = NULL;
  const long before = most_memory_kib();
  (void)payload;
  for (int i = 0; i < 2; ++i) require(weir_buffer_create(own.runtime, LONG, &options, &buffers[i]));
  require(weir_buffer_get_info(buffers[0], &info));
  data = info.address;
  data[0] = own.rank;
  CHECK_OK(weir_stream_upload(own.stream, buffers[0], all, NULL));
  for (int i = 0; i < MANY; ++i) {
    CHECK_OK(weir_stream_receive(own.stream, own.all, left, 9, buffers[(i + 1) % 2], all, NULL));
    CHECK_OK(weir_stream_send(own.stream, own.all, right, 9, buffers[i % 2], all, NULL));
  }
  CHECK_OK(weir_stream_download(own.stream, buffers[0], all, NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  CHECK(data[0] == (own.rank + RANKS * MANY - MANY) % RANKS);
  CHECK(most_memory_kib() - before < MOST_KIB);
  leave(&own);
  return WEIR_STATUS_OK;
}

static weir_collective collective(const rank* own, weir_collective_kind kind, unsigned root,
                                  weir_region region, weir_region all) {
  weir_collective made = WEIR_COLLECTIVE_INIT;
  made.kind = kind;
  made.root = root;
  made.buffer = own->out;
  made.region = region;
  made.all_buffer = own->in;
  made.all_region = all;
  return made;
}

/* A reduction of numbers that a kernel has changed, in rows; then the others, each with what the
 * one before it has left. */
static weir_status collect(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  const weir_region rows = {0, {ROW * 8, ROWS, 1}, {2 * ROW * 8, 0}};
  const weir_region one = weir_region_range(0, 8), parts = weir_region_range(8, RANKS * 8);
  weir_collective sum = collective(&own, WEIR_COLLECTIVE_REDUCE, WEIR_ALL_RANKS, rows, all);
  weir_collective gather = collective(&own, WEIR_COLLECTIVE_GATHER, 1, one, parts);
  weir_collective scatter = collective(&own, WEIR_COLLECTIVE_SCATTER, 1, one, parts);
  weir_collective exchange = collective(&own, WEIR_COLLECTIVE_ALL_TO_ALL, 0, parts, parts);
  weir_collective copy = collective(&own, WEIR_COLLECTIVE_BROADCAST, 2, parts, all);
  (void)payload;
  for (unsigned i = 0; i < FIXTURE_DOUBLES; ++i) own.out_data[i] = own.rank + 0.5 * i;
  CHECK_OK(weir_stream_upload(own.stream, own.out, all, NULL));
  for (int round = 0; round < ROUNDS; ++round) {
    CHECK_OK(enqueue(own.stream, "add", own.out, 1, NULL));
    CHECK_OK(weir_stream_collective(own.stream, own.all, &sum, NULL));
    CHECK_OK(enqueue(own.stream, "add", own.out, -1, NULL));
  }
  CHECK_OK(weir_stream_download(own.stream, own.out, all, NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  double expected[2] = {0, 2}; /* element 1 is in a row, element ROW is not */
  for (int round = 0; round < ROUNDS; ++round) {
    double next = 0;
    for (unsigned r = 0; r < RANKS; ++r) next += (round == 0 ? r + 0.5 : expected[0]) + 1;
    expected[0] = next - 1;
  }
  CHECK(own.out_data[1] == expected[0]);
  CHECK(own.out_data[ROW] == own.rank + expected[1]);

  own.out_data[0] = 10 * own.rank;
  CHECK_OK(weir_stream_upload(own.stream, own.out, one, NULL));
  CHECK_OK(weir_stream_collective(own.stream, own.all, &gather, NULL));
  if (own.rank == 1) CHECK_OK(enqueue(own.stream, "add", own.in, 3, NULL));
  CHECK_OK(weir_stream_collective(own.stream, own.all, &scatter, NULL));
  CHECK_OK(weir_stream_download(own.stream, own.out, one, NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  CHECK(own.out_data[0] == 10 * own.rank + 3);

  for (unsigned r = 0; r < RANKS; ++r) own.out_data[1 + r] = 100 * own.rank + r;
  CHECK_OK(weir_stream_upload(own.stream, own.out, parts, NULL));
  CHECK_OK(weir_stream_collective(own.stream, own.all, &exchange, NULL));
  CHECK_OK(weir_stream_collective(own.stream, own.all, &copy, NULL));
  CHECK_OK(weir_stream_download(own.stream, own.in, parts, NULL));
  CHECK_OK(weir_stream_download(own.stream, own.out, parts, NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  for (unsigned r = 0; r < RANKS; ++r) CHECK(own.in_data[1 + r] == 100 * r + own.rank);
  for (unsigned r = 0; r < RANKS; ++r) CHECK(own.out_data[1 + r] == 200 + r);
  leave(&own);
  return WEIR_STATUS_OK;
}

/* Each rank puts rows that a kernel has changed into the window of the rank to its right, and tells
 * it; then it gets them from there into other rows. */
static weir_status put_and_get(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const unsigned right = (own.rank + 1) % RANKS, left = (own.rank + RANKS - 1) % RANKS;
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  const weir_region rows = {0, {ROW * 8, ROWS, 1}, {2 * ROW * 8, 0}};
  const weir_region packed = weir_region_range(0, ROW * ROWS * 8);
  const weir_region last = weir_region_range(FIXTURE_BYTES - 8, 8);
  weir_sync barrier = WEIR_SYNC_INIT;
  weir_window* window = NULL;
  double* part = NULL;
  (void)payload;
  barrier.scope = WEIR_SYNC_SCOPE_STREAM;
  CHECK_OK(weir_window_create(fabric, NULL, RANKS * packed.extent[0], SOON, &window));
  part = weir_window_memory(window);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    /* the rank to the left may be RANKS - 1 rounds ahead */
    const size_t offset = (round % RANKS) * packed.extent[0];
    const double* const arrived = part + offset / 8;
    own.in_data[FIXTURE_DOUBLES - 1] = -1;
    for (unsigned i = 0; i < FIXTURE_DOUBLES; ++i) own.out_data[i] = 100 * own.rank + i + round;
    CHECK_OK(weir_stream_upload(own.stream, own.out, all, NULL));
    CHECK_OK(enqueue(own.stream, "add", own.out, 0.5, NULL));
    CHECK_OK(weir_stream_put(own.stream, window, right, offset, own.out, rows, NULL));
    CHECK_OK(weir_stream_sync(own.stream, &barrier, NULL)); /* the message follows the put */
    CHECK_OK(weir_stream_send(own.stream, own.all, right, 4, own.out, last, NULL));
    CHECK_OK(weir_stream_get(own.stream, window, right, offset, own.in, packed, NULL));
    CHECK_OK(weir_stream_receive(own.stream, own.all, left, 4, own.in, last, NULL));
    CHECK_OK(weir_stream_download(own.stream, own.in, all, NULL));
    CHECK_OK(weir_stream_synchronize(own.stream, SOON));
    CHECK(own.in_data[FIXTURE_DOUBLES - 1] == 100 * left + FIXTURE_DOUBLES - 1 + round + 0.5);
    for (unsigned i = 0; i < ROW * ROWS; ++i) {
      const unsigned at = i / ROW * 2 * ROW + i % ROW;
      CHECK(arrived[i] == 100 * left + at + round + 0.5);
      CHECK(own.in_data[i] == 100 * own.rank + at + round + 0.5);
    }
  }
  CHECK_OK(weir_fabric_barrier(fabric, SOON));
  leave(&own);
  weir_window_destroy(window);
  return WEIR_STATUS_OK;
}

/* A put behind a failure writes nothing; one to a window that the rank has ended fails. */
static weir_status put_poisoned(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const weir_region one = weir_region_range(0, 8);
  weir_window *window = NULL, *ended = NULL;
  (void)payload;
  CHECK_OK(weir_window_create(fabric, NULL, 16, SOON, &window));
  CHECK_OK(weir_window_create(fabric, NULL, 16, SOON, &ended));
  if (own.rank == 1) weir_window_destroy(ended);
  CHECK_OK(weir_fabric_barrier(fabric, SOON));
  if (own.rank == 0) {
    own.out_data[0] = 7;
    own.in_data[0] = 8;
    CHECK_OK(weir_stream_upload(own.stream, own.out, one, NULL));
    CHECK_OK(weir_stream_upload(own.stream, own.in, one, NULL));
    CHECK_OK(enqueue(own.stream, "fail", own.out, 0, NULL));
    CHECK_OK(weir_stream_put(own.stream, window, 1, 0, own.out, one, NULL));
    CHECK_OK(weir_stream_put(own.stream, window, 1, 8, own.in, one, NULL));
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_KERNEL_ERROR, "tile 7");
    CHECK_OK(weir_stream_put(own.stream, ended, 1, 0, own.in, one, NULL));
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_INVALID_ARGUMENT, "put");
    CHECK_REFUSED(weir_stream_put(own.stream, window, RANKS, 0, own.in, one, NULL), "rank 3");
    CHECK_REFUSED(weir_stream_get(own.stream, window, 1, 9, own.in, one, NULL), "8 bytes at 9");
    CHECK_REFUSED(weir_stream_put(own.stream, NULL, 1, 0, own.in, one, NULL), "window");
  }
  CHECK_OK(weir_fabric_barrier(fabric, SOON));
  if (own.rank == 1) {
    const double* const part = weir_window_memory(window);
    CHECK(part[0] == 0 && part[1] == 8);
  }
  leave(&own);
  weir_window_destroy(window);
  if (own.rank != 1) weir_window_destroy(ended);
  return WEIR_STATUS_OK;
}

/* Rank 0 fails before a reduction, which fails on all ranks; the next one does not. */
static weir_status collective_poisoned(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  const weir_collective sum = collective(&own, WEIR_COLLECTIVE_REDUCE, WEIR_ALL_RANKS, all, all);
  (void)payload;
  CHECK_OK(weir_stream_upload(own.stream, own.out, all, NULL));
  if (own.rank == 0) CHECK_OK(enqueue(own.stream, "fail", own.out, 0, NULL));
  CHECK_OK(weir_stream_collective(own.stream, own.all, &sum, NULL));
  CHECK_FAILS(weir_stream_synchronize(own.stream, SOON),
              own.rank == 0 ? WEIR_STATUS_KERNEL_ERROR : WEIR_STATUS_NETWORK_ERROR, "tile 7");
  CHECK_OK(weir_stream_upload(own.stream, own.out, all, NULL));
  CHECK_OK(weir_stream_collective(own.stream, own.all, &sum, NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  leave(&own);
  return WEIR_STATUS_OK;
}

static void refuse_collectives(const rank* own) {
  const weir_region one = weir_region_range(0, 8), two = weir_region_range(0, 16);
  const weir_region odd = weir_region_range(0, 12);
  weir_collective wrong = collective(own, WEIR_COLLECTIVE_REDUCE, RANKS, one, two);
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, &wrong, NULL), "rank 3");
  wrong = collective(own, WEIR_COLLECTIVE_REDUCE, 0, odd, two);
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, &wrong, NULL), "12 bytes");
  wrong = collective(own, WEIR_COLLECTIVE_GATHER, WEIR_ALL_RANKS, one, two);
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, &wrong, NULL),
                "region of all ranks has 16");
  wrong = collective(own, WEIR_COLLECTIVE_ALL_TO_ALL, 0, two, two);
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, &wrong, NULL), "no 3 parts");
  wrong = collective(own, WEIR_COLLECTIVE_BROADCAST, WEIR_ALL_RANKS, one, two);
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, &wrong, NULL), "there is no rank");
  wrong.kind = (weir_collective_kind)9;
  wrong.root = 0;
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, &wrong, NULL), "kind");
  CHECK_REFUSED(weir_stream_collective(own->stream, own->all, NULL, NULL), "the buffer is NULL");
}

static weir_status refused(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  weir_runtime* other = NULL;
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  const weir_region all = weir_region_range(0, FIXTURE_BYTES);
  const weir_region outside = weir_region_range(8, FIXTURE_BYTES);
  (void)payload;
  CHECK_REFUSED(weir_stream_send(own.stream, own.all, RANKS, 0, own.out, all, NULL), "rank 3");
  CHECK_REFUSED(weir_stream_send(own.stream, NULL, 0, 0, own.out, all, NULL), "communicator");
  refuse_collectives(&own);
  if (own.rank == 0) { /* the number is used up: the other rank learns of it */
    CHECK_REFUSED(weir_stream_send(own.stream, own.all, 1, 0, own.out, outside, NULL), "out");
  } else if (own.rank == 1) {
    CHECK_OK(weir_stream_receive(own.stream, own.all, 0, 0, own.in, all, NULL));
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_NETWORK_ERROR, "out");
  }
  options.domains = "host:cores=1";
  require(weir_runtime_create(&options, &other));
  weir_place* place = NULL;
  weir_place_options place_options = WEIR_PLACE_OPTIONS_INIT;
  place_options.core_count = 1;
  place_options.oversubscribe = true;
  require(weir_place_create(weir_runtime_get_domain(other, 0), &place_options, &place));
  weir_stream* const stream = make_stream(place, "alone");
  CHECK_REFUSED(weir_stream_send(stream, own.all, 0, 0, own.out, all, NULL), "stream 'alone'");
  weir_runtime_destroy(other);
  leave(&own);
  return WEIR_STATUS_OK;
}

int main(void) {
  on_ranks("messages are ordered with kernels", pass_round);
  on_ranks("tags and numbers match messages", match);
  on_ranks("many messages do not need many buffers", many);
  on_ranks("a failure reaches the other rank", poisoned);
  on_ranks("collective operations are ordered with kernels", collect);
  on_ranks("a failure reaches all ranks of a reduction", collective_poisoned);
  on_ranks("puts and gets are ordered with kernels", put_and_get);
  on_ranks("puts behind a failure write nothing", put_poisoned);
  on_ranks("wrong messages are refused", refused);
  return check_failures > 0;
}
