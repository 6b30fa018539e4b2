/* Conveyors in C: puts, adds and a handler on three ranks, and what is refused. */
#include "check.h"

typedef struct pair {
  uint64_t key, value;
} pair;

enum { RANKS = 3, ITEMS = 1000 };

static weir_status add_pairs(const weir_items* items) {
  const pair* pairs = items->items;
  uint64_t* sums = items->payload;
  for (size_t i = 0; i < items->count; ++i) sums[items->from] += pairs[i].key * pairs[i].value;
  return items->item_bytes == sizeof(pair) ? WEIR_STATUS_OK : WEIR_STATUS_INTERNAL;
}

/* Every rank adds to word 0 of all, writes to a word of its own, and sends pairs. */
static weir_status all_to_all(weir_fabric* fabric, void* payload) {
  const unsigned rank = weir_fabric_rank(fabric);
  int64_t table[1 + RANKS] = {0};
  uint64_t sums[RANKS] = {0};
  const weir_conveyor_handler handler = {add_pairs, sums, sizeof(pair)};
  weir_conveyor_options options = WEIR_CONVEYOR_OPTIONS_INIT;
  weir_conveyor_info info = WEIR_CONVEYOR_INFO_INIT;
  weir_conveyor* conveyor = NULL;
  weir_producer* producer = NULL;
  (void)payload;
  options.memory = table;
  options.bytes = sizeof table;
  options.handlers = &handler;
  options.handler_count = 1;
  CHECK_OK(weir_conveyor_create(fabric, &options, &conveyor));
  CHECK_OK(weir_producer_open(conveyor, &producer));
  for (unsigned to = 0; to < RANKS; ++to) {
    const uint64_t zero = 0, own = 8 * (1 + rank);
    for (int64_t i = 0; i < ITEMS; ++i) {
      const pair item = {rank + 1, (uint64_t)i};
      CHECK_OK(weir_producer_add(producer, to, &zero, &i, 1));
      CHECK_OK(weir_producer_put(producer, to, &own, &i, sizeof i, 1));
      CHECK_OK(weir_producer_send(producer, to, 0, &item, sizeof item, 1));
    }
  }
  CHECK_OK(weir_producer_flush(producer, SOON));
  CHECK_OK(weir_conveyor_finish(conveyor, SOON));
  CHECK(table[0] == RANKS * ITEMS * (ITEMS - 1) / 2);
  for (unsigned from = 0; from < RANKS; ++from) {
    CHECK(table[1 + from] == ITEMS - 1);
    CHECK(sums[from] == (from + 1) * (uint64_t)(ITEMS * (ITEMS - 1) / 2));
  }
  CHECK_OK(weir_conveyor_get_info(conveyor, &info));
  CHECK(info.items == 3 * RANKS * ITEMS);
  CHECK(info.item_bytes == 32 * RANKS * ITEMS);
  CHECK(info.blocks < info.items && info.blocks_applied > 0);
  weir_producer_close(producer);
  weir_conveyor_destroy(conveyor);
  return WEIR_STATUS_OK;
}

static void three_ranks(void) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    CHECK_OK(weir_fabric_simulate(&options, RANKS, all_to_all, NULL));
  }
}

static weir_status refuse(const weir_items* items) {
  (void)items;
  return WEIR_STATUS_KERNEL_ERROR;
}

static weir_status refusals(weir_fabric* fabric, void* payload) {
  uint64_t word = 0, offset = 0;
  weir_conveyor_handler handler = {NULL, NULL, 8};
  weir_conveyor_options options = WEIR_CONVEYOR_OPTIONS_INIT;
  weir_conveyor* conveyor = NULL;
  weir_producer* producer = NULL;
  (void)payload;
  CHECK_REFUSED(weir_conveyor_create(NULL, NULL, &conveyor), "NULL");
  CHECK_REFUSED(weir_conveyor_create(fabric, NULL, NULL), "out_conveyor");
  options.bytes = 8;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "memory is NULL");
  options.memory = &word;
  options.handler_count = 1;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "handlers is NULL");
  options.handlers = &handler;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "handler 0");
  handler.function = refuse;
  handler.item_bytes = 12;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "12 bytes");
  handler.item_bytes = 264;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "264");
  handler.item_bytes = 8;
  options.block_bytes = 100;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "block_bytes is 100");
  options.block_bytes = 0;
  options.blocks_in_flight = 1 << 20;
  CHECK_REFUSED(weir_conveyor_create(fabric, &options, &conveyor), "blocks_in_flight");
  options.blocks_in_flight = 0;
  options.name = "sums";
  CHECK_OK(weir_conveyor_create(fabric, &options, &conveyor));
  CHECK_REFUSED(weir_producer_open(conveyor, NULL), "out_producer");
  CHECK_OK(weir_producer_open(conveyor, &producer));
  CHECK_REFUSED(weir_producer_put(producer, 0, NULL, &word, 8, 1), "offsets are NULL");
  CHECK_REFUSED(weir_producer_put(producer, 0, &offset, NULL, 8, 1), "items are NULL");
  CHECK_REFUSED(weir_producer_put(producer, 7, &offset, &word, 8, 1), "rank 7");
  CHECK_REFUSED(weir_producer_put(producer, 0, &offset, &word, 0, 1), "0 bytes");
  CHECK_REFUSED(weir_producer_put(producer, 0, &offset, &word, SIZE_MAX, 1), "bytes");
  CHECK_REFUSED(weir_producer_send(producer, 0, 70000, &word, 8, 1), "handler");
  CHECK_REFUSED(weir_producer_send(producer, 0, 0, &word, 16, 1), "16");
  offset = 1;
  CHECK_REFUSED(weir_producer_add(producer, 0, &offset, (int64_t*)&word, 1), "offset 1");
  CHECK_OK(weir_producer_send(producer, 0, 0, &word, 8, 1));
  CHECK_FAILS(weir_conveyor_finish(conveyor, SOON), WEIR_STATUS_KERNEL_ERROR,
              "handler 0 of conveyor 'sums'");
  CHECK_OK(weir_conveyor_finish(conveyor, SOON));
  weir_conveyor_destroy(conveyor);
  CHECK_REFUSED(weir_conveyor_finish(conveyor, 0), "'sums' has been destroyed");
  CHECK_REFUSED(weir_producer_flush(producer, 0), "destroyed");
  weir_producer_close(producer);
  weir_producer_close(NULL);
  weir_conveyor_destroy(NULL);
  return WEIR_STATUS_OK;
}

static weir_status left_open(weir_fabric* fabric, void* payload) {
  weir_conveyor* conveyor = NULL;
  weir_producer* producer = NULL;
  (void)payload;
  CHECK_OK(weir_conveyor_create(fabric, NULL, &conveyor));
  CHECK_OK(weir_producer_open(conveyor, &producer));
  return WEIR_STATUS_OK;
}

static void what_is_refused(void) { CHECK_OK(weir_fabric_simulate(NULL, 1, refusals, NULL)); }

static void what_is_left_ends_with_the_fabric(void) {
  CHECK_OK(weir_fabric_simulate(NULL, 2, left_open, NULL));
}

int main(void) {
  RUN(three_ranks);
  RUN(what_is_refused);
  RUN(what_is_left_ends_with_the_fabric);
  return check_failures != 0;
}
