/* Shares: one index space over many places; each place fetches its next chunk itself (paper
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
 * There is no master: when a place completes a chunk, the thread that completes it advances a
 * shared counter and enqueues the next chunk there. If chunks are short a place has two, so that it
 * runs one while the other is fetched. Every item is in exactly one chunk that succeeds. A place
 * whose device fails gets no more chunks, and the other places take its incomplete chunks.
 *
 * With a fabric the places of all ranks work on one share (paper 004): every rank starts it, with
 * places of its own. Rank 0 gets all results. Rank 0 has the counter, which the others advance by
 * one-sided additions, and records which items are complete: when a rank is lost the other ranks
 * run the items whose completion it had not reported to rank 0. When rank 0 is lost the share fails
 * on all ranks.
 */
typedef struct weir_share weir_share;

/** Items for one place. */
typedef struct weir_chunk {
  uint64_t first, count; /**< the items [first, first + count); count is not 0 */
  weir_stream* stream;   /**< of the place, for the chunk's actions; lives as long as the share */
  size_t place;          /**< index among the places of this rank */
  size_t way;            /**< index of the way to run it; see weir_share_options::ways */
} weir_chunk;

/**
 * Enqueues the actions of a chunk in its stream, from host memory and back to it, and gives the
 * event of the last. Called on any thread, for several chunks at once; it does not wait.
 *
 * Any status except OK ends the share with that status, and the message of weir_last_error(), as
 * the failure of an action does. Exception: DEVICE_ERROR, UNAVAILABLE and NETWORK_ERROR, from the
 * function or an action, mean that the place is lost: it gets no more chunks, and another place
 * runs this chunk, possibly while actions that the function has enqueued still run. The share fails
 * when no place remains.
 *
 * The chunks of a stream must not depend on each other. A chunk of a device that failed is enqueued
 * again on another: a chunk must not read what it writes.
 */
typedef weir_status (*weir_chunk_function)(const weir_chunk* chunk, void* payload,
                                           weir_event* out_event);

typedef struct weir_share_options {
  size_t struct_size;
  const char* name; /**< NULL: "share N" */
  uint64_t items;
  const double* work;        /**< work of each item, in any unit, copied; NULL: all equal */
  weir_place* const* places; /**< must outlive the share */
  size_t place_count;        /**< 0: a place of its own with all free cores of each domain */
  /**
   * Policy for the size of chunks; weir_runtime_describe() lists all with one line on each. NULL:
   * "learned"
   *
   *   static[:W1,W2,...]    one chunk a place, equal or in proportion to weights
   *   one, fixed:N          1 item, N items
   *   guided, factoring     shrinking with the remaining items, equal for all places
   *   weighted-factoring    the same in proportion to measured speeds
   *   learned               by measured speeds, so that all places end together
   */
  const char* chunks;
  weir_chunk_function enqueue;
  void* payload; /**< passed to enqueue */
  /** Number of ways to run a chunk, which the function defines; 0 counts as 1. "learned" tries all
   * ways on each place and continues with the fastest; other policies use way 0. */
  size_t ways;
  /** The fabric whose ranks work on the share; must outlive it. Items, work, chunks, scheduler and
      result_offsets must be the same on all ranks. Refused with UNSUPPORTED in virtual time. NULL:
      this process. */
  weir_fabric* fabric;
  /** How ranks fetch chunks. NULL: "onesided"

        onesided   by a one-sided addition to the counter at rank 0
        master     by a message to rank 0, which answers with the chunk */
  const char* scheduler;
  /** Memory into which the actions of chunks write the results of all items; must outlive the
   * share. Rank 0 receives the results of all ranks. NULL: no results are sent. */
  void* results;
  /** Offset in bytes of each item in `results`, plus the end offset; copied. */
  const size_t* result_offsets;
  int64_t timeout_ns; /**< how long the start waits for the other ranks; 0 or negative: forever */
} weir_share_options;
#define WEIR_SHARE_OPTIONS_INIT                                                                \
  {                                                                                            \
    sizeof(weir_share_options), NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, \
        NULL, 0                                                                                \
  }

/**
 * Starts a share and returns at once. The caller owns *out_share. With a fabric all ranks call it,
 * one thread each, and it waits for them; a failure, TIMEOUT included, is that of a collective
 * operation.
 */
WEIR_API weir_status weir_share_start(weir_runtime* runtime, const weir_share_options* options,
                                      weir_share** out_share);

/**
 * Waits until all items are complete. Returns the failure that ended the share: that of a chunk, or
 * of the last remaining device. The failure of a device whose chunks other places took over is not
 * a failure of the share. With a fabric all ranks return the same, once all have completed their
 * chunks. Refused with BUSY inside a kernel or a callback.
 */
WEIR_API weir_status weir_share_wait(weir_share* share, int64_t timeout_ns);

/**
 * Hands out no more chunks, and completes as CANCELLED actions of chunks that have not started.
 * With a fabric a call on any rank cancels the share on all ranks, when these receive the message.
 */
WEIR_API weir_status weir_share_cancel(weir_share* share);

/**
 * Waits for the share, whatever its outcome, and frees it. NULL is ignored. Inside a kernel,
 * callback or stage of a pipeline a thread of the runtime destroys the share later.
 */
WEIR_API void weir_share_destroy(weir_share* share);

/** What one place did. Times are on the clock of weir_runtime_now(). */
typedef struct weir_share_part {
  const char* place; /**< its name; lives as long as the share */
  uint64_t items;    /**< done there */
  uint64_t visits;   /**< accesses to the counter that returned a chunk */
  double work;       /**< of these items */
  int64_t busy_ns;   /**< time during which the place had a chunk */
  int64_t idle_ns;   /**< time during which the place had no chunk */
  size_t way;        /**< that it used last */
  bool lost;         /**< its device failed, or its rank is lost */
  unsigned rank;     /**< of the fabric, else 0 */
} weir_share_part;

typedef struct weir_share_info {
  size_t struct_size;
  const char* name; /**< lives as long as the share */
  const char* chunks;
  size_t place_count;
  uint64_t items, done;
  int64_t makespan_ns; /**< time from the start until now, or until the end */
  /** The makespan if all places worked without idle time at their measured speeds, work / busy_ns;
   * a lost place counts only with the work that it did. */
  double ideal_ns;
} weir_share_info;
#define WEIR_SHARE_INFO_INIT \
  { sizeof(weir_share_info), NULL, NULL, 0, 0, 0, 0, 0 }

/**
 * Fills out_info, and the first part_count of the parts of the places. parts may be NULL. At rank 0
 * of a fabric these are the places of all ranks, with what these have reported so far; at other
 * ranks their own.
 */
WEIR_API weir_status weir_share_get_info(weir_share* share, weir_share_info* out_info,
                                         weir_share_part* parts, size_t part_count);

#ifdef __cplusplus
}
#endif
