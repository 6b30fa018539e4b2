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
 * One rank's membership in the fabric. Functions on it may be called from any thread. They reach
 * other ranks by number, 0 to ranks - 1. A call that needs a rank which has died, or which no
 * longer answers, fails with NETWORK_ERROR and names that rank; calls to other ranks continue to
 * work.
 *
 * Timeouts are in nanoseconds; a negative timeout never expires.
 */
typedef struct weir_fabric weir_fabric;

typedef struct weir_fabric_options {
  size_t struct_size;
  /**
   * How the ranks communicate; NULL: WEIR_TRANSPORT, or else auto.
   *
   *   auto     that of the launcher; under mpirun, ranks of one machine share memory, and UCX
   *            connects the machines, or MPI if a rank has no UCX
   *   self     this process is the only rank
   *   inproc   all ranks are threads of one process: weir_fabric_simulate()
   *   shm      processes of one machine, started by weir_fabric_launch(): `weir run --ranks`
   *   mpi      processes started by mpirun, by Open MPI or MPICH; MPI connects all of them
   *   ucx      the same processes; UCX connects all of them
   */
  const char* transport;
  /**
   * Which thread makes progress; NULL: caller with a seed, else WEIR_PROGRESS, else hybrid.
   * One-sided operations and messages to handlers complete only when the target rank makes
   * progress.
   *
   *   thread   a progress thread of the fabric, which polls, and sleeps while nothing arrives
   *   caller   only threads that wait in a function of the fabric; other ranks notice when such a
   *            rank ends, but not when it stops
   *   hybrid   threads that wait in a function of the fabric; without one, the progress thread
   */
  const char* progress;
  int64_t lost_after_ns; /**< silence after which a rank counts as lost; 0: WEIR_LOST_AFTER_MS, or
                              10 s */
  uint64_t seed;         /**< inproc: decides the order of delivery; 0: order of arrival */
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
 * Leaves the fabric; from then on calls of other ranks that need this rank fail. Messages already
 * sent are still delivered, for at most lost_after_ns. The windows of this rank end with the
 * membership. A runtime that uses the fabric (weir_runtime_options::fabric) holds a reference: the
 * rank leaves when the last such runtime is destroyed. NULL is ignored.
 *
 * A process that returns from main() or calls exit() without closing the fabric leaves it then and
 * notifies the other ranks: their calls that need this rank fail.
 */
WEIR_API void weir_fabric_close(weir_fabric* fabric);

/** A program as one rank runs it. */
typedef weir_status (*weir_fabric_program)(weir_fabric* fabric, void* payload);

/**
 * Runs a program on `ranks` ranks (1 to 1024) in this process, one thread per rank, and returns the
 * failure of the lowest rank that failed; the message begins with the rank's number.
 *
 * A seed decides the order in which messages, window operations and the ends of different ranks are
 * delivered. The same program and seed give the same order on every run, independent of thread
 * timing. Messages of one rank stay in order. The scheduler delivers only when all ranks wait in
 * functions of the fabric: it then draws one pending delivery at random, and the call that receives
 * it goes on. Calls with a timeout of 0 wait until then. The order is reproducible if each rank
 * calls from one thread, ranks wait for each other only in functions of the fabric, and nothing
 * depends on elapsed time, as a timeout that is not 0 or the ages and speeds of conveyors and
 * shares do. If a rank has several threads, one waiting thread suffices for a delivery, and the
 * order differs from run to run. It also differs, after a warning, when a rank stays outside the
 * functions of the fabric for a minute while others wait for pending deliveries, because the ranks
 * may be waiting for each other. With a progress thread, which a runtime on the fabric needs
 * (UNSUPPORTED without), the seed draws from what has arrived, and the order differs from run to
 * run, too.
 *
 * Deadlock: when all ranks wait for each other without a timeout, all of these calls fail and say
 * which rank waits for what. A rank counts as waiting when each of its threads that has called the
 * fabric and has not ended waits. A thread that has not called the fabric yet is not counted, so
 * call the fabric on it before the others wait.
 */
WEIR_API weir_status weir_fabric_simulate(const weir_fabric_options* options, unsigned ranks,
                                          weir_fabric_program program, void* payload);

/**
 * Starts the program argv[0] with these arguments (the last one NULL) as `ranks` processes (1 to
 * 1024) of this machine, where weir_fabric_open() joins them, and waits until all have ended.
 * out_status: the exit status of the lowest rank whose status is not 0, or 128 + the number of the
 * signal that ended it, else 0. UNAVAILABLE when the system does not report how a rank has ended,
 * as in a process that ignores SIGCHLD. When all other ranks have ended, ranks that stay stopped
 * (SIGSTOP) for longer than lost_after_ns are killed. Rank 0 has the standard input of this
 * process, the others an empty one. options may be NULL; only lost_after_ns is used.
 */
WEIR_API weir_status weir_fabric_launch(const weir_fabric_options* options, unsigned ranks,
                                        const char* const* argv, int* out_status);

/**
 * What weir_fabric_launch_with() reports of the ranks, and asks: functions that it calls on its
 * thread, one at a time. They must not fail. NULL: none.
 */
typedef struct weir_launch_options {
  size_t struct_size;
  int64_t lost_after_ns; /**< as in weir_fabric_options */
  void* payload;         /**< argument of the functions */
  /**
   * Receives what a rank has written to standard output (stream 1) or error (2), which are pipes
   * then. NULL: ranks write to the output of this process.
   */
  void (*on_output)(unsigned rank, int stream, const char* text, size_t bytes, void* payload);
  /** A rank has ended; `status` as from weir_fabric_launch(). All of its output came before. */
  void (*on_end)(unsigned rank, int status, void* payload);
  /** Called about ten times a second: returns a signal to send to all ranks that run, 0: none. */
  int (*next_signal)(void* payload);
} weir_launch_options;
#define WEIR_LAUNCH_OPTIONS_INIT \
  { sizeof(weir_launch_options), 0, NULL, NULL, NULL, NULL }

/** As weir_fabric_launch(), and reports what the ranks do. options may be NULL. */
WEIR_API weir_status weir_fabric_launch_with(const weir_launch_options* options, unsigned ranks,
                                             const char* const* argv, int* out_status);

WEIR_API unsigned weir_fabric_rank(const weir_fabric* fabric);
WEIR_API unsigned weir_fabric_ranks(const weir_fabric* fabric);
/** Returns whether a rank is in the fabric: it is not lost and has not left. */
WEIR_API bool weir_fabric_is_alive(const weir_fabric* fabric, unsigned rank);
/**
 * Returns what connects this rank to a rank: "shm", "ucx (1.13.1)", "mpi (Open MPI 4.1.4)",
 * "inproc", or "self" for this rank; NULL if there is no such rank. The text lives as long as the
 * fabric.
 */
WEIR_API const char* weir_fabric_link(const weir_fabric* fabric, unsigned rank);

/** Waits until all live ranks have called it. After TIMEOUT, call it again to continue the same
 * barrier. */
WEIR_API weir_status weir_fabric_barrier(weir_fabric* fabric, int64_t timeout_ns);

/* ---- Collective operations of all ranks, which call the same functions in the same order, one
 * thread each. <weir/communicator.h> has more operations, also for groups of ranks, and says what a
 * failure means. ---- */

typedef enum weir_fabric_op {
  WEIR_FABRIC_OP_SUM = 0,
  WEIR_FABRIC_OP_MIN = 1,
  WEIR_FABRIC_OP_MAX = 2,
  WEIR_FABRIC_OP_PRODUCT = 3,
  WEIR_FABRIC_OP_AND = 4,
  WEIR_FABRIC_OP_OR = 5,
  WEIR_FABRIC_OP_XOR = 6
} weir_fabric_op;

/**
 * Reduces `count` numbers over all ranks, in place. Numbers are combined in the order of the ranks:
 * every rank gets the same bits, on every run. Sums of integers wrap. Meant for short vectors.
 */
WEIR_API weir_status weir_fabric_reduce_int64(weir_fabric* fabric, int64_t* values, size_t count,
                                              weir_fabric_op op, int64_t timeout_ns);
WEIR_API weir_status weir_fabric_reduce_double(weir_fabric* fabric, double* values, size_t count,
                                               weir_fabric_op op, int64_t timeout_ns);

/** Copies `bytes` bytes at `data` from rank `root` to `data` on all other ranks. */
WEIR_API weir_status weir_fabric_broadcast(weir_fabric* fabric, unsigned root, void* data,
                                           size_t bytes, int64_t timeout_ns);

/* ---- Messages to a handler ---- */

/**
 * Receives a message; `message` is valid until it returns. Messages of one rank arrive one at a
 * time, in the order in which it sent them. The handler runs on the thread that makes progress: it
 * may send, must not wait (BUSY), and must return within lost_after_ns.
 */
typedef void (*weir_fabric_handler)(unsigned from, const void* message, size_t bytes,
                                    void* payload);

/**
 * Sets the handler of this rank's messages; messages that arrived before are delivered first. NULL:
 * messages are queued. After it returns the former handler is not called again.
 */
WEIR_API weir_status weir_fabric_listen(weir_fabric* fabric, weir_fabric_handler handler,
                                        void* payload);

/**
 * Copies the message and sends it; blocks under backpressure. BUSY: this rank has sent 64 MiB to
 * itself and has no handler.
 */
WEIR_API weir_status weir_fabric_send(weir_fabric* fabric, unsigned to, const void* message,
                                      size_t bytes);

/**
 * Makes progress until the handler has returned from at least one message since the last such call
 * of any thread. TIMEOUT: no message arrived. NETWORK_ERROR: all other ranks have left or are lost.
 */
WEIR_API weir_status weir_fabric_progress(weir_fabric* fabric, int64_t timeout_ns);

/* ---- Windows: memory that all ranks may reach ---- */

typedef struct weir_window weir_window;

/**
 * Exposes `bytes` bytes of this rank to all ranks. Collective; sizes may differ and may be 0.
 * memory NULL: weir allocates zeroed memory of the kind that other ranks access fastest. Otherwise
 * the memory is the caller's and must outlive the window. Waits until all ranks have called it; a
 * failure, TIMEOUT included, fails all later collective operations.
 */
WEIR_API weir_status weir_window_create(weir_fabric* fabric, void* memory, size_t bytes,
                                        int64_t timeout_ns, weir_window** out_window);

/** Ends the window on this rank: later accesses of other ranks fail. NULL is ignored. */
WEIR_API void weir_window_destroy(weir_window* window);

/** This rank's memory. */
WEIR_API void* weir_window_memory(const weir_window* window);

/**
 * Copies between the caller's memory, which must not change until weir_window_flush(), and the
 * memory of a rank. Operations are unordered. They block while 1,024 operations of this thread to
 * the rank are in flight; a handler, which cannot wait, may have 65,536 in flight (BUSY).
 */
WEIR_API weir_status weir_window_put(weir_window* window, unsigned rank, size_t offset,
                                     const void* data, size_t bytes);
WEIR_API weir_status weir_window_get(weir_window* window, unsigned rank, size_t offset, void* data,
                                     size_t bytes);

/**
 * Atomically add to the int64 at an offset that is a multiple of 8 in the memory of a rank, or
 * replace it if it equals `expected`. They wait for the previous value and write it to out_old,
 * which may be NULL.
 */
WEIR_API weir_status weir_window_fetch_add(weir_window* window, unsigned rank, size_t offset,
                                           int64_t operand, int64_t* out_old);
WEIR_API weir_status weir_window_compare_swap(weir_window* window, unsigned rank, size_t offset,
                                              int64_t expected, int64_t desired, int64_t* out_old);

/** Waits until the puts and gets of this thread to a rank are complete and visible to all ranks. */
WEIR_API weir_status weir_window_flush(weir_window* window, unsigned rank, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
