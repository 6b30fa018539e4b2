/* Shares: one index space over many places, each of which fetches its next chunk itself (paper
 * 004). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>
#include <weir/fabric.h>
#include <weir/place.h>
#include <weir/runtime.h>
#include <weir/status.h>
#include <weir/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Distributes the items [0, items) over places of any domains.
 *
 * There is no master: when a place ends a chunk, the thread that learns of it advances a shared
 * counter and enqueues the next chunk there. If chunks are short a place has two, so that it goes
 * on with the one while the other is fetched. Every item is in exactly one chunk that succeeds. A
 * place whose device fails gets no more, and the others take what it had not ended.
 *
 * With a fabric the places of all ranks work on one share (paper 004): every rank starts it, with
 * places of its own. Rank 0 gets all results. It has the counter, which the others advance by
 * one-sided additions, and knows what is done: when a rank is lost the others do what it had not
 * told rank 0 of. When rank 0 is lost the share fails on all.
 */
typedef struct weir_share weir_share;

/** Items for one place. */
typedef struct weir_chunk {
  uint64_t first, count; /**< the items [first, first + count); count is not 0 */
  weir_stream* stream;   /**< of the place, for the chunk's actions; lives as long as the share */
  size_t place;          /**< index in the places that this rank brought */
  size_t way;            /**< of weir_share_options::ways */
} weir_chunk;

/**
 * Enqueues the actions of a chunk in its stream, from host memory and back to it, and gives the
 * event of the last. Called on any thread, for several chunks at once; it does not wait.
 *
 * Anything but OK ends the share with that status, and the message of weir_last_error(), as the
 * failure of an action does. But DEVICE_ERROR, UNAVAILABLE and NETWORK_ERROR, of either, say that
 * the place is of no use: it gets no more chunks, and the others do this one, perhaps beside what
 * the function has enqueued. When no place is left that ends the share.
 *
 * The chunks of a stream must not depend on each other. A chunk of a device that failed is enqueued
 * again on another: what a chunk writes must not be what it reads.
 */
typedef weir_status (*weir_chunk_function)(const weir_chunk* chunk, void* payload,
                                           weir_event* out_event);

typedef struct weir_share_options {
  size_t struct_size;
  const char* name; /**< NULL: "share N" */
  uint64_t items;
  const double* work;        /**< of each item, in any unit, copied; NULL: all alike */
  weir_place* const* places; /**< must outlive the share */
  size_t place_count;        /**< 0: a place of its own with all free cores of each domain */
  /**
   * How large chunks are; weir_runtime_describe() lists these with a line on each. NULL: "learned"
   *
   *   static[:W1,W2,...]    one chunk a place, equal or in proportion to weights
   *   one, fixed:N          1 item, N items
   *   guided, factoring     shrinking with what is left, equal for all places
   *   weighted-factoring    the same in proportion to measured speeds
   *   learned               by measured speeds, so that all places end together
   */
  const char* chunks;
  weir_chunk_function enqueue;
  void* payload; /**< handed to it */
  /** Ways to do a chunk, which the function knows; 0 is 1. "learned" tries all on each place and
      goes on with the fastest there, the others take way 0. */
  size_t ways;
  /** The ranks that share; must outlive the share. Items, work, chunks, scheduler and
     result_offsets are to be the same on all. Refused with UNSUPPORTED in virtual time. NULL: this
     process. */
  weir_fabric* fabric;
  /** How ranks fetch chunks. NULL: "onesided"

        onesided   by adding to the counter at rank 0, which need not know
        master     by a message to rank 0, whose answer is the chunk */
  const char* scheduler;
  /** Memory for the results of all items, where the actions of chunks leave them, and which must
      outlive the share; at rank 0 it gets those of all ranks. NULL: none travel. */
  void* results;
  const size_t*
      result_offsets; /**< of each item in `results`, and behind the last, in bytes, copied */
  int64_t timeout_ns; /**< how long starting waits for the other ranks; 0, negative: ever */
} weir_share_options;
#define WEIR_SHARE_OPTIONS_INIT                                                                \
  {                                                                                            \
    sizeof(weir_share_options), NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, \
        NULL, 0                                                                                \
  }

/**
 * Starts a share and returns at once. The caller owns *out_share. With a fabric all ranks call it,
 * one thread each, and it waits for them; a failure, TIMEOUT, too, is that of what all ranks do
 * together.
 */
WEIR_API weir_status weir_share_start(weir_runtime* runtime, const weir_share_options* options,
                                      weir_share** out_share);

/**
 * Waits until all items are done. Returns the failure that ended the share before, which is that of
 * a chunk, or of the last place that had a device; failures of devices whose chunks others took
 * over are no failures. With a fabric all ranks return the same, once all have ended their chunks.
 * Refused with BUSY inside a kernel or a callback.
 */
WEIR_API weir_status weir_share_wait(weir_share* share, int64_t timeout_ns);

/**
 * Hands out no more chunks, and completes as CANCELLED actions of chunks that have not started.
 * With a fabric any rank does so for all of them; the others do it as soon as they hear of it.
 */
WEIR_API weir_status weir_share_cancel(weir_share* share);

/**
 * Waits for the share, whatever its outcome, and frees it. NULL is ignored. Inside a kernel,
 * callback or stage of a pipeline a thread of the runtime does it soon.
 */
WEIR_API void weir_share_destroy(weir_share* share);

/** What one place did. Times are on the clock of weir_runtime_now(). */
typedef struct weir_share_part {
  const char* place; /**< its name; lives as long as the share */
  uint64_t items;    /**< done there */
  uint64_t visits;   /**< to the counter that brought a chunk */
  double work;       /**< of these items */
  int64_t busy_ns;   /**< that it had a chunk */
  int64_t idle_ns;   /**< of the share's time, without one */
  size_t way;        /**< that it took in the end */
  bool lost;         /**< its device failed, or its rank is lost */
  unsigned rank;     /**< of the fabric, else 0 */
} weir_share_part;

typedef struct weir_share_info {
  size_t struct_size;
  const char* name; /**< lives as long as the share */
  const char* chunks;
  size_t place_count;
  uint64_t items, done;
  int64_t makespan_ns; /**< since the start, or from start to end */
  /** What all of them take for the work at their speeds, work / busy_ns of each, without a break;
      a place that was lost does no more than it did. */
  double ideal_ns;
} weir_share_info;
#define WEIR_SHARE_INFO_INIT \
  { sizeof(weir_share_info), NULL, NULL, 0, 0, 0, 0, 0 }

/**
 * Fills out_info, and the first part_count of the parts of the places. parts may be NULL. At rank 0
 * of a fabric these are the places of all ranks, as far as they have told; at the others their own.
 */
WEIR_API weir_status weir_share_get_info(weir_share* share, weir_share_info* out_info,
                                         weir_share_part* parts, size_t part_count);

#ifdef __cplusplus
}
#endif
