/* Conveyors: small items for other ranks, sent in large messages (the communication cache of paper
 * 003). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/fabric.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sends items of 8 to 256 bytes, in steps of 8, to the memory or to the handlers of other ranks.
 *
 * A rank that puts items opens producers, one for each thread. A producer aggregates items for the
 * same rank in a block, and sends the block when it is full, when it reaches age_ns, and on a
 * flush. Within a block adjacent items are joined; where an address repeats, an item replaces the
 * one before it (put) or is added to it (add).
 *
 * Order: items of one producer for one rank take effect in the order in which they were put,
 * whatever their kind. Items of different producers, or for different ranks, are unordered;
 * weir_producer_flush() and weir_conveyor_finish() order them.
 *
 * The thread that makes progress on the target rank applies items, one at a time. Meanwhile other
 * threads must not access what they write.
 *
 * Memory is bounded: a producer has one block for each rank it puts to, of block_bytes, four times
 * that where addresses repeat, and as much again for addresses. At most blocks_in_flight blocks are
 * in flight from one rank to another; a producer that would exceed this waits.
 *
 * When a rank dies, calls that put to it fail with NETWORK_ERROR and its items are dropped; items
 * for other ranks are not affected.
 */
typedef struct weir_conveyor weir_conveyor;

/** One thread's access to a conveyor. One thread at a time calls functions on a producer. */
typedef struct weir_producer weir_producer;

/** Items for a handler, valid during the call. */
typedef struct weir_items {
  const void* items; /**< contiguous items, aligned to 16 bytes */
  size_t count;
  size_t item_bytes;
  unsigned from; /**< rank */
  void* payload;
} weir_items;

/**
 * Handles items. One call at a time, on the thread that makes progress: it must neither wait nor
 * put items. weir_conveyor_finish() on this rank returns the first status that is not OK; later
 * items are still delivered.
 */
typedef weir_status (*weir_items_function)(const weir_items* items);

typedef struct weir_conveyor_handler {
  weir_items_function function;
  void* payload;
  size_t item_bytes; /**< the same on all ranks */
} weir_conveyor_handler;

typedef struct weir_conveyor_options {
  size_t struct_size;
  const char* name; /**< NULL: "conveyor" */
  void* memory;     /**< memory of this rank that other ranks put to; NULL: none */
  size_t bytes;     /**< size of memory; may differ between ranks */
  const weir_conveyor_handler* handlers; /**< numbered from 0, the same on all ranks */
  size_t handler_count;                  /**< 256 at most */
  size_t block_bytes;      /**< size of a block, 1 KiB to 4 MiB; 0: 63 KiB, over MPI 504 KiB */
  size_t block_items;      /**< most items in a block; 0: as many as fit; 1: no aggregation */
  size_t blocks_in_flight; /**< maximum number from this rank to another; 0: 8 */
  /** Age at which a block is sent. 0: 1 ms, or no limit where a seed decides the order of delivery;
      negative: no limit. The producer checks ages in every 64th call and in calls without items, so
      flush before it stops calling. */
  int64_t age_ns;
  int64_t timeout_ns; /**< timeout of the creation; 0: 60 s; negative: forever */
} weir_conveyor_options;
#define WEIR_CONVEYOR_OPTIONS_INIT \
  { sizeof(weir_conveyor_options), NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0 }

/**
 * Creates a conveyor. Collective: one thread of every rank calls it, for several conveyors in the
 * same order. INVALID_ARGUMENT when the handlers of the ranks are not the same. The fabric and the
 * memory must outlive the conveyor.
 */
WEIR_API weir_status weir_conveyor_create(weir_fabric* fabric, const weir_conveyor_options* options,
                                          weir_conveyor** out_conveyor);

/**
 * Frees the conveyor and its producers. Not allowed in a handler. Items that weir_conveyor_finish()
 * has not covered are dropped; items that still arrive from other ranks fail on the ranks that sent
 * them. NULL is ignored.
 */
WEIR_API void weir_conveyor_destroy(weir_conveyor* conveyor);

/**
 * Waits until all items of all ranks are applied. Collective: one thread of every rank calls it;
 * meanwhile no other thread may use a producer of this rank. Producers can be used again
 * afterwards. Returns the first failure of an item that this rank put or received, or of a handler
 * on it; even then it has waited for the other ranks. After TIMEOUT, call it again.
 */
WEIR_API weir_status weir_conveyor_finish(weir_conveyor* conveyor, int64_t timeout_ns);

/** Counts of this rank, of blocks that were sent. */
typedef struct weir_conveyor_info {
  size_t struct_size;
  uint64_t items;          /**< items put */
  uint64_t item_bytes;     /**< bytes of these items */
  uint64_t combined;       /**< items that replaced another item, or were added to it */
  uint64_t joined;         /**< items adjacent to the item before */
  uint64_t blocks;         /**< messages */
  uint64_t wire_bytes;     /**< bytes of the blocks, including addresses */
  uint64_t most_in_flight; /**< most blocks in flight to one rank */
  uint64_t blocks_applied; /**< blocks from all ranks, this one included */
} weir_conveyor_info;
#define WEIR_CONVEYOR_INFO_INIT \
  { sizeof(weir_conveyor_info), 0, 0, 0, 0, 0, 0, 0, 0 }

WEIR_API weir_status weir_conveyor_get_info(weir_conveyor* conveyor, weir_conveyor_info* out_info);

/** Opens a producer for a thread. */
WEIR_API weir_status weir_producer_open(weir_conveyor* conveyor, weir_producer** out_producer);

/**
 * Sends the producer's items as far as this is possible without waiting, and frees the producer.
 * Items that it cannot send are lost, so flush first. NULL is ignored.
 */
WEIR_API void weir_producer_close(weir_producer* producer);

/**
 * Writes items, one after the other in `items`, to offsets in the memory of a rank. The call copies
 * the items, and waits while blocks_in_flight blocks are in flight. INVALID_ARGUMENT for an offset
 * outside the rank's memory or an invalid item size: nothing is put. NETWORK_ERROR: the rank is
 * lost or refused a block; the open block for it is dropped.
 */
WEIR_API weir_status weir_producer_put(weir_producer* producer, unsigned rank,
                                       const uint64_t* offsets, const void* items,
                                       size_t item_bytes, size_t count);

/** Adds to int64 in the memory of a rank, at offsets that are multiples of 8; overflow wraps. */
WEIR_API weir_status weir_producer_add(weir_producer* producer, unsigned rank,
                                       const uint64_t* offsets, const int64_t* values,
                                       size_t count);

/** Sends items to a handler of a rank. */
WEIR_API weir_status weir_producer_send(weir_producer* producer, unsigned rank, unsigned handler,
                                        const void* items, size_t item_bytes, size_t count);

/**
 * Sends the open blocks, and waits until all items that this producer has put are applied: a rank
 * that is notified afterwards finds their effects. TIMEOUT: it can be repeated.
 */
WEIR_API weir_status weir_producer_flush(weir_producer* producer, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
