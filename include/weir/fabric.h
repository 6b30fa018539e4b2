/* The fabric: processes of one program, called ranks, that reach each other (papers 003 and 004).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One rank's membership of the fabric. Functions on it may be called from any thread. They reach
 * other ranks by number, 0 to ranks - 1. A call that needs a rank which has died, or which answers
 * no more, fails with NETWORK_ERROR and names it; calls to the others go on.
 */
typedef struct weir_fabric weir_fabric;

typedef struct weir_fabric_options {
  size_t struct_size;
  /**
   * What connects the ranks; NULL: WEIR_TRANSPORT, else what the program was started by.
   *
   *   self     this process is the only rank
   *   inproc   all ranks are threads of one process: weir_fabric_simulate()
   *   shm      processes of one machine, started by `weir run --ranks` or another
   *   mpi      processes started by mpirun, by Open MPI or MPICH
   */
  const char* transport;
  const char* progress; /**< who moves the fabric on: thread, caller, hybrid; NULL: WEIR_PROGRESS */
  int64_t lost_after_ns; /**< silence after which a rank counts as lost; 0: 10 s */
  uint64_t seed;         /**< inproc: order of delivery; 0: as it comes */
} weir_fabric_options;
#define WEIR_FABRIC_OPTIONS_INIT \
  { sizeof(weir_fabric_options), NULL, NULL, 0, 0 }

/** Joins the fabric this process was started in. Every rank calls it once. options may be NULL. */
WEIR_API weir_status weir_fabric_open(const weir_fabric_options* options, weir_fabric** out_fabric);

/**
 * Leaves the fabric. Waits for the other ranks that live a bounded time, so that none loses what
 * was sent to it. NULL is ignored.
 */
WEIR_API void weir_fabric_close(weir_fabric* fabric);

/** A program as one rank runs it. */
typedef weir_status (*weir_fabric_program)(weir_fabric* fabric, void* payload);

/**
 * Runs a program on `ranks` ranks in this process, each on a thread of its own, and returns the
 * first failure by rank. With a seed messages are delivered in an order that it decides: the same
 * seed, the same order. Ranks that all wait for each other are an error that says who waits for
 * whom.
 */
WEIR_API weir_status weir_fabric_simulate(const weir_fabric_options* options, unsigned ranks,
                                          weir_fabric_program program, void* payload);

WEIR_API unsigned weir_fabric_rank(const weir_fabric* fabric);
WEIR_API unsigned weir_fabric_ranks(const weir_fabric* fabric);

/** Waits until all ranks that live have called it. */
WEIR_API weir_status weir_fabric_barrier(weir_fabric* fabric, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
