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
 *
 * Timeouts are in nanoseconds; a negative one never passes.
 */
typedef struct weir_fabric weir_fabric;

typedef struct weir_fabric_options {
  size_t struct_size;
  /**
   * What connects the ranks; NULL: WEIR_TRANSPORT, else what the program was started by.
   *
   *   self     this process is the only rank
   *   inproc   all ranks are threads of one process: weir_fabric_simulate()
   *   shm      processes of one machine, started by weir_fabric_launch(): `weir run --ranks`
   *   mpi      processes started by mpirun, by Open MPI or MPICH
   */
  const char* transport;
  /**
   * Who moves the fabric on; NULL: caller with a seed, else WEIR_PROGRESS, else hybrid. One-sided
   * operations, and messages to handlers, wait until the target's fabric is moved on.
   *
   *   thread   a thread of the fabric, which looks for news and sleeps when there are none
   *   caller   whoever waits in a function of the fabric, and nobody else; ranks with this are not
   *            noticed when they stop, only when they end
   *   hybrid   those who wait, and the thread when nobody does
   */
  const char* progress;
  int64_t lost_after_ns; /**< silence after which a rank counts as lost; 0: WEIR_LOST_AFTER_MS, or
                              10 s */
  uint64_t seed;         /**< inproc: decides the order of delivery; 0: as it comes */
} weir_fabric_options;
#define WEIR_FABRIC_OPTIONS_INIT \
  { sizeof(weir_fabric_options), NULL, NULL, 0, 0 }

/**
 * Joins the fabric this process was started in. Every rank calls it, over shm and mpi once (BUSY).
 * options may be NULL. Ranks that run different programs or builds of weir are refused
 * (UNSUPPORTED).
 */
WEIR_API weir_status weir_fabric_open(const weir_fabric_options* options, weir_fabric** out_fabric);

/**
 * Leaves the fabric; calls of the other ranks that need this one fail from then on. What was sent
 * still goes out, if that takes no longer than a rank takes to count as lost. Its windows end
 * with it. A runtime that uses it (weir_runtime_options::fabric) keeps it: it is left when the last
 * of these is destroyed. NULL is ignored.
 *
 * A process that ends by a return from main() or by exit() without it leaves then, and the others
 * are told so: their calls that need this rank fail.
 */
WEIR_API void weir_fabric_close(weir_fabric* fabric);

/** A program as one rank runs it. */
typedef weir_status (*weir_fabric_program)(weir_fabric* fabric, void* payload);

/**
 * Runs a program on `ranks` ranks (1 to 1024) in this process, each on a thread of its own, and
 * returns the failure of the lowest rank that failed, with its number before the message.
 *
 * A seed decides the order in which everything of different ranks arrives: messages, operations on
 * windows, the end of a rank. The same program and seed are the same order on every run, whatever
 * the threads' timing. Messages of one rank stay in order. For that something arrives only when all
 * ranks wait in functions of the fabric: then one thing is drawn of all that has been sent to any
 * rank, and the call that it is for goes on. Calls with a timeout of 0 wait until then. It holds
 * for ranks that call from one thread each, wait for each other in functions of the fabric only,
 * and do not do other things as time passes: as after a timeout that is not 0, or with the ages and
 * speeds of conveyors and shares. Of a rank with several threads one that waits is enough: then
 * orders are mixed, and differ from run to run. So they do, after a warning, when a rank is in no
 * function of the fabric for a minute while others wait for what the seed holds, as they may wait
 * for each other. With a progress that has a thread, as a runtime on the fabric needs (UNSUPPORTED
 * without), the seed draws from what has come, which differs from run to run, too.
 *
 * When all ranks wait for each other, without a timeout, all of these calls fail and say which rank
 * waits for what. Of a rank all threads must wait that have called the fabric and have not ended;
 * one that has not called it yet may do what is waited for, so it is to call before others wait.
 */
WEIR_API weir_status weir_fabric_simulate(const weir_fabric_options* options, unsigned ranks,
                                          weir_fabric_program program, void* payload);

/**
 * Starts the program argv[0] with these arguments (the last one NULL) as `ranks` processes (1 to
 * 1024) of this machine, where weir_fabric_open() joins them, and waits until all have ended.
 * out_status: the exit status of the lowest rank whose is not 0, or 128 + the number of the signal
 * that ended it, else 0; UNAVAILABLE when nobody is told how one has ended, as in a process that
 * ignores SIGCHLD. Ranks that are stopped (SIGSTOP) for longer than lost_after_ns when all
 * others have ended are killed. Of the options only that one counts; they may be NULL.
 */
WEIR_API weir_status weir_fabric_launch(const weir_fabric_options* options, unsigned ranks,
                                        const char* const* argv, int* out_status);

WEIR_API unsigned weir_fabric_rank(const weir_fabric* fabric);
WEIR_API unsigned weir_fabric_ranks(const weir_fabric* fabric);
/** Returns whether a rank is there: neither lost nor gone. */
WEIR_API bool weir_fabric_is_alive(const weir_fabric* fabric, unsigned rank);

/** Waits until all ranks that live have called it. After TIMEOUT call it again: it goes on. */
WEIR_API weir_status weir_fabric_barrier(weir_fabric* fabric, int64_t timeout_ns);

/* ---- What all ranks do together: all call the same, in the same order, one thread each. After a
 * failure, which all see, nothing of this works any more. ---- */

typedef enum weir_fabric_op {
  WEIR_FABRIC_OP_SUM = 0,
  WEIR_FABRIC_OP_MIN = 1,
  WEIR_FABRIC_OP_MAX = 2
} weir_fabric_op;

/**
 * Reduces `count` numbers over all ranks, in place. Numbers are combined in the order of the ranks:
 * every rank gets the same bits, on every run. Sums of integers wrap. Meant for short vectors.
 */
WEIR_API weir_status weir_fabric_reduce_int64(weir_fabric* fabric, int64_t* values, size_t count,
                                              weir_fabric_op op, int64_t timeout_ns);
WEIR_API weir_status weir_fabric_reduce_double(weir_fabric* fabric, double* values, size_t count,
                                               weir_fabric_op op, int64_t timeout_ns);

/** Copies `bytes` bytes at `data` from rank `root` to the same place on all ranks. */
WEIR_API weir_status weir_fabric_broadcast(weir_fabric* fabric, unsigned root, void* data,
                                           size_t bytes, int64_t timeout_ns);

/* ---- Messages to a handler ---- */

/**
 * Gets a message; `message` is valid until it returns. Messages of one rank come in the order in
 * which it sent them, one at a time. It runs on the thread that moves the fabric on: it may send,
 * and must not wait (BUSY), nor take as long as a rank takes to count as lost.
 */
typedef void (*weir_fabric_handler)(unsigned from, const void* message, size_t bytes,
                                    void* payload);

/**
 * Sets the handler of this rank's messages; those that came before are delivered first. NULL: keep
 * them. After it returns the former handler is not called again.
 */
WEIR_API weir_status weir_fabric_listen(weir_fabric* fabric, weir_fabric_handler handler,
                                        void* payload);

/**
 * Sends a message, which it has copied when it returns; blocks while the way is full. BUSY: this
 * rank has sent 64 MiB to itself, and has no handler for them.
 */
WEIR_API weir_status weir_fabric_send(weir_fabric* fabric, unsigned to, const void* message,
                                      size_t bytes);

/**
 * Moves the fabric on until the handler has returned from at least one message since the last such
 * call of any thread. TIMEOUT: there was none. NETWORK_ERROR: all other ranks are gone, none will
 * come.
 */
WEIR_API weir_status weir_fabric_progress(weir_fabric* fabric, int64_t timeout_ns);

/* ---- Windows: memory that all ranks may reach ---- */

typedef struct weir_window weir_window;

/**
 * Lets all ranks at `bytes` bytes of this one; every rank calls it, with a size of its own, 0 too.
 * memory NULL: weir allocates, zeroed, what the others reach fastest. Else the memory is the
 * caller's and must outlive the window. Waits until all have called it; a failure, TIMEOUT, too, is
 * that of what all ranks do together.
 */
WEIR_API weir_status weir_window_create(weir_fabric* fabric, void* memory, size_t bytes,
                                        int64_t timeout_ns, weir_window** out_window);

/** Ends it on this rank: later accesses of the others fail. NULL is ignored. */
WEIR_API void weir_window_destroy(weir_window* window);

/** This rank's memory. */
WEIR_API void* weir_window_memory(const weir_window* window);

/**
 * Copies between the caller's memory, which must stay as it is until weir_window_flush(), and that
 * of a rank. Operations have no order among each other. They block while 1,024 of this thread are
 * under way to a rank; a handler, which cannot wait, may have 65,536 there (BUSY).
 */
WEIR_API weir_status weir_window_put(weir_window* window, unsigned rank, size_t offset,
                                     const void* data, size_t bytes);
WEIR_API weir_status weir_window_get(weir_window* window, unsigned rank, size_t offset, void* data,
                                     size_t bytes);

/**
 * Add to, or replace if it is `expected`, the int64 at a multiple of 8 in the memory of a rank, as
 * one step. Wait for the value that was there: out_old, which may be NULL.
 */
WEIR_API weir_status weir_window_fetch_add(weir_window* window, unsigned rank, size_t offset,
                                           int64_t operand, int64_t* out_old);
WEIR_API weir_status weir_window_compare_swap(weir_window* window, unsigned rank, size_t offset,
                                              int64_t expected, int64_t desired, int64_t* out_old);

/** Waits until the puts and gets of this thread to a rank are over: all see what was put. */
WEIR_API weir_status weir_window_flush(weir_window* window, unsigned rank, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
