/* Communicators: groups of ranks and their collective operations. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <weir/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A group of ranks, which have the numbers 0, 1, ... in it. As MPI_Comm or ncclComm_t.
 *
 * All functions of this header that take a timeout are collective: all ranks of the communicator
 * call the same ones in the same order, with equal arguments where nothing else is said, one thread
 * of a rank at a time (BUSY otherwise, and inside a handler of messages). Different communicators
 * are independent, also if they have the same ranks.
 *
 * A failure on one rank makes the operation, or the next one, fail on all ranks of the
 * communicator: NETWORK_ERROR with the first reason, for example the lost rank;
 * INVALID_ARGUMENT if ranks call different operations; TIMEOUT on a rank whose deadline has passed.
 * A rank that had completed the operation before returns OK. All later operations of the
 * communicator then fail; weir_communicator_shrink() makes one of the ranks that are left.
 */
typedef struct weir_communicator weir_communicator;

/** As a root: all ranks. */
#define WEIR_ALL_RANKS UINT32_MAX
/** As a color: this rank will be in no group. */
#define WEIR_NO_COLOR (-1)

/** Returns the communicator of all ranks. It ends with the fabric. NULL: not a fabric. */
WEIR_API weir_communicator* weir_fabric_communicator(weir_fabric* fabric);

/**
 * Divides a communicator: ranks with the same color (at least 0) form a new one, in the order of
 * `key`, then of their rank. Colors and keys may differ. With WEIR_NO_COLOR *out_communicator is
 * NULL. Destroy the result before the fabric is closed, or leave that to the fabric.
 */
WEIR_API weir_status weir_communicator_split(weir_communicator* communicator, int64_t color,
                                             int64_t key, int64_t timeout_ns,
                                             weir_communicator** out_communicator);
/** The same, with one group for the ranks that share memory: those of a node. */
WEIR_API weir_status weir_communicator_split_by_node(weir_communicator* communicator,
                                                     int64_t timeout_ns,
                                                     weir_communicator** out_communicator);
/**
 * Makes a communicator of the ranks that are left, in their order, after some have been lost; as
 * MPI_Comm_shrink. All ranks that are left call it, also if an operation has failed on some of them
 * only. Operations of the old communicator fail afterwards. A rank that is lost meanwhile may be in
 * the new communicator, whose operations then fail: shrink that one. After TIMEOUT, call it again
 * to continue.
 */
WEIR_API weir_status weir_communicator_shrink(weir_communicator* communicator, int64_t timeout_ns,
                                              weir_communicator** out_communicator);
/**
 * Makes the operations of the communicator fail on all ranks, also one that another thread of this
 * rank is in; as MPI_Comm_revoke. Not collective, any thread. weir_communicator_shrink() works.
 */
WEIR_API weir_status weir_communicator_revoke(weir_communicator* communicator);
/** Not collective. NULL has no effect, and so has the communicator of all ranks. */
WEIR_API void weir_communicator_destroy(weir_communicator* communicator);

/** Rank of the caller in the communicator, and their number; 0 for an invalid communicator. */
WEIR_API unsigned weir_communicator_rank(const weir_communicator* communicator);
WEIR_API unsigned weir_communicator_size(const weir_communicator* communicator);
/** Returns the rank of the fabric that is rank `rank` of the communicator; WEIR_ALL_RANKS for an
 * invalid rank. */
WEIR_API unsigned weir_communicator_fabric_rank(const weir_communicator* communicator,
                                                unsigned rank);

/** Waits until all ranks have called it. */
WEIR_API weir_status weir_communicator_barrier(weir_communicator* communicator, int64_t timeout_ns);
/** Copies `bytes` bytes at `data` from rank `root` to `data` on all ranks. */
WEIR_API weir_status weir_communicator_broadcast(weir_communicator* communicator, unsigned root,
                                                 void* data, size_t bytes, int64_t timeout_ns);
/**
 * Copies `bytes` bytes at `own` of each rank to `all` of rank `root`, or with WEIR_ALL_RANKS of
 * every rank, in the order of the ranks. `all` has room for `bytes` times the number of ranks; it
 * is not used on other ranks.
 */
WEIR_API weir_status weir_communicator_gather(weir_communicator* communicator, unsigned root,
                                              const void* own, void* all, size_t bytes,
                                              int64_t timeout_ns);
/** Copies part i of `all` on rank `root` to `own` on rank i; each part has `bytes` bytes. */
WEIR_API weir_status weir_communicator_scatter(weir_communicator* communicator, unsigned root,
                                               const void* all, void* own, size_t bytes,
                                               int64_t timeout_ns);
/** Copies part i of `parts` on rank r to part r of `received` on rank i; each part has `bytes`
 * bytes. */
WEIR_API weir_status weir_communicator_all_to_all(weir_communicator* communicator,
                                                  const void* parts, void* received, size_t bytes,
                                                  int64_t timeout_ns);
/**
 * The same with parts of different sizes, one after the other: sizes[i] bytes go to rank i, and
 * received_sizes[i] bytes come from it. INVALID_ARGUMENT: the sizes of two ranks differ.
 */
WEIR_API weir_status weir_communicator_all_to_all_v(weir_communicator* communicator,
                                                    const void* parts, const size_t* sizes,
                                                    void* received, const size_t* received_sizes,
                                                    int64_t timeout_ns);

/** Types of the numbers of a reduction. */
typedef enum weir_number {
  WEIR_NUMBER_INT8 = 0,
  WEIR_NUMBER_INT16 = 1,
  WEIR_NUMBER_INT32 = 2,
  WEIR_NUMBER_INT64 = 3,
  WEIR_NUMBER_UINT8 = 4,
  WEIR_NUMBER_UINT16 = 5,
  WEIR_NUMBER_UINT32 = 6,
  WEIR_NUMBER_UINT64 = 7,
  WEIR_NUMBER_FLOAT = 8,
  WEIR_NUMBER_DOUBLE = 9
} weir_number;

/** into[i] = into[i] OP from[i]. `into` has the values of lower ranks. Must not call weir. */
typedef void (*weir_combine_function)(void* into, const void* from, size_t count, void* payload);

/**
 * How a reduction combines values, in the order of the ranks. All ranks get the same bits, on every
 * run with the same number of ranks. Sums and products of integers wrap; AND, OR and XOR are for
 * integers.
 */
typedef struct weir_reduction {
  size_t struct_size;
  weir_number type;
  weir_fabric_op op;
  weir_combine_function combine; /**< not NULL: instead of `type` and `op` */
  size_t size;                   /**< of a value, for `combine` */
  void* payload;                 /**< for `combine` */
} weir_reduction;
#define WEIR_REDUCTION_INIT \
  { sizeof(weir_reduction), WEIR_NUMBER_DOUBLE, WEIR_FABRIC_OP_SUM, NULL, 0, NULL }

/**
 * Combines `count` values of all ranks, in place on rank `root`, or with WEIR_ALL_RANKS on every
 * rank. The values of other ranks are unspecified afterwards.
 */
WEIR_API weir_status weir_communicator_reduce(weir_communicator* communicator, unsigned root,
                                              void* values, size_t count,
                                              const weir_reduction* reduction, int64_t timeout_ns);
/** Combines the values of the ranks 0 to r, in place on rank r. */
WEIR_API weir_status weir_communicator_scan(weir_communicator* communicator, void* values,
                                            size_t count, const weir_reduction* reduction,
                                            int64_t timeout_ns);
/** Combines the values of the ranks below r, in place on rank r. Rank 0 keeps its values. */
WEIR_API weir_status weir_communicator_exclusive_scan(weir_communicator* communicator, void* values,
                                                      size_t count, const weir_reduction* reduction,
                                                      int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
