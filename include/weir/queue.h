/* Task queues: a sequential program of tasks, distributed over places (after MetaQ, paper 001). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/buffer.h>
#include <weir/event.h>
#include <weir/kernel.h>
#include <weir/place.h>
#include <weir/runtime.h>
#include <weir/status.h>
#include <weir/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A queue that spans places of any domains.
 *
 * Tasks are submitted in program order. Their effect on their operands equals their execution in
 * that order, on one memory: weir chooses the place of each task, copies its operands there, and
 * orders dependent tasks across all places. Independent tasks run at the same time.
 *
 * Operands name host memory. A place whose domain has its own memory works on copies, one for each
 * region that tasks name, packed. They are made when they are needed, kept, shared between readers,
 * and written back when another place needs them, when there is no room, or when the program asks:
 * results of tasks are in host memory after weir_queue_acquire(), weir_queue_flush() or
 * weir_queue_synchronize(). Between the submission of a task and one of these calls neither the
 * program nor its own streams may access the operands of the task. Regions that overlap without
 * being equal are exchanged through host memory: programs are fast when they always name the same
 * regions.
 *
 * When a task fails, those that depend on it complete as POISONED and never run, until the queue is
 * synchronised; all others run. Any thread may submit; the order between threads is that of calls.
 */
typedef struct weir_queue weir_queue;

typedef struct weir_queue_options {
  size_t struct_size;
  const char* name;          /**< NULL: "queue N" */
  weir_place* const* places; /**< that run tasks; they must outlive the queue */
  size_t place_count;        /**< 0: a place of its own with all free cores of each domain */
  const char* policy;        /**< policy that chooses the place of a task; NULL: "finish" */
  /** Weights of the places for policy "static"; NULL: number of cores times measured speed. */
  const double* weights;
  size_t weight_count;  /**< number of weights, equal to the number of places */
  bool no_models;       /**< neither reads nor keeps measured times in the user's cache */
  size_t max_in_flight; /**< number of incomplete tasks at which weir_queue_submit() waits; 0: the
                           value of WEIR_MAX_IN_FLIGHT, or else 65536 */
} weir_queue_options;
#define WEIR_QUEUE_OPTIONS_INIT \
  { sizeof(weir_queue_options), NULL, NULL, 0, NULL, NULL, 0, false, 0 }

/** Makes a queue. options may be NULL. The caller owns *out_queue. */
WEIR_API weir_status weir_queue_create(weir_runtime* runtime, const weir_queue_options* options,
                                       weir_queue** out_queue);

/**
 * Waits for all tasks and until host memory has all contents, and frees the queue and the places it
 * made. An unreported failure is logged as a warning. NULL is ignored. The caller ensures that no
 * other thread is in a call with the queue, or begins one. Inside a kernel, callback or stage of a
 * pipeline a thread of the runtime destroys the queue later.
 */
WEIR_API void weir_queue_destroy(weir_queue* queue);

typedef struct weir_task {
  size_t struct_size;
  const weir_kernel* kernel; /**< or NULL with kernel_name */
  const char* kernel_name;   /**< looked up at each call; a handle is faster */
  const weir_operand* operands;
  size_t operand_count;
  const weir_scalar* scalars;
  size_t scalar_count;
  const char* name;           /**< in messages and traces, cut at 31 bytes; NULL: the kernel's */
  int priority;               /**< -1 to 1: a free place gets tasks of a higher priority first */
  uint64_t domains;           /**< bit i: domain i of the runtime may run it; 0: all of them */
  weir_place* place;          /**< place that runs the task; NULL: the policy decides */
  const weir_kernel* combine; /**< combines operands with access REDUCE; its operands are the result
                                 so far (read-write) and a partial result (read), in the same shape;
                                 must be associative and commutative */
  const weir_kernel* init; /**< sets its operand (write) to the identity of combine; NULL: to zero
                                bytes */
} weir_task;
#define WEIR_TASK_INIT \
  { sizeof(weir_task), NULL, NULL, NULL, 0, NULL, 0, NULL, 0, 0, NULL, NULL, NULL }

/**
 * Submits a call of a kernel and returns at once, unless max_in_flight tasks are incomplete
 * (backpressure): then the calling thread works on tasks and waits, without a deadline, until an
 * eighth of them is complete. Kernels and callbacks do not wait and may exceed the bound. While a
 * program submits, it must not hold a lock that its kernels or callbacks take. A task with access
 * REDUCE gets a partial result, set to the identity, in place of its operand, so that tasks that
 * reduce into the same region by the same kernels run at the same time. A queue has at most one
 * partial result for each of its cores, and at most 32, and uses them round robin: the same program
 * on the same places gives the same bits. The queue combines them before the next task that uses
 * the region in another way, or when the program acquires or flushes it; cancelling the queue drops
 * them. Everything in task is copied. out_event may be NULL. UNSUPPORTED when none of the allowed
 * places of the queue can run it.
 */
WEIR_API weir_status weir_queue_submit(weir_queue* queue, const weir_task* task,
                                       weir_event* out_event);

/**
 * Waits until host memory has the newest contents of a region and no earlier task accesses them;
 * with READ, until no earlier task writes them. Then the program may use them with that access
 * until it submits the next task that names them. Tasks on other regions continue. Returns the
 * failure of a task that was to write the region, or TIMEOUT.
 */
WEIR_API weir_status weir_queue_acquire(weir_queue* queue, weir_buffer* buffer, weir_region region,
                                        weir_access access, int64_t timeout_ns);

/** Like weir_queue_acquire() for reading, but does not wait: the event, which may be NULL,
 * completes when host memory has the contents. */
WEIR_API weir_status weir_queue_flush(weir_queue* queue, weir_buffer* buffer, weir_region region,
                                      weir_event* out_event);

/**
 * Waits until all tasks submitted so far are complete and host memory has all contents. Returns the
 * status of the first task, in program order, that failed since the last call, and clears it.
 * TIMEOUT clears nothing. Several threads that synchronise a queue at the same time may get the
 * same failure. Refused with BUSY inside a kernel or a callback.
 */
WEIR_API weir_status weir_queue_synchronize(weir_queue* queue, int64_t timeout_ns);

/**
 * Completes every task that has not started as CANCELLED. Running ones end normally. After that, as
 * after a failure, an operand that a cancelled task would have written without reading
 * (WEIR_ACCESS_WRITE) has unspecified contents, also in host memory: a device may copy back memory
 * that the task did not write. An operand that it would have read and written keeps the contents of
 * the earlier tasks.
 */
WEIR_API weir_status weir_queue_cancel(weir_queue* queue);

/** What a queue did with one of its places. */
typedef struct weir_queue_share {
  const char* place;  /**< its name; lives as long as the place */
  uint64_t tasks;     /**< number of tasks that ran there */
  int64_t busy_ns;    /**< total run time, where known; brief tasks are sampled */
  uint64_t bytes_in;  /**< bytes copied to its memory for these tasks */
  uint64_t bytes_out; /**< copied from its memory */
} weir_queue_share;

typedef struct weir_queue_info {
  size_t struct_size;
  const char* name; /**< lives as long as the queue */
  const char* policy;
  size_t place_count;
  uint64_t submitted, completed; /**< tasks, including those that begin and end reductions */
  size_t max_in_flight;          /**< of the options, or the default that replaced 0 */
  const char* remarks; /**< why places have got no task, one line each; NULL: no remarks. Lives
                            as long as the queue */
} weir_queue_info;
#define WEIR_QUEUE_INFO_INIT \
  { sizeof(weir_queue_info), NULL, NULL, 0, 0, 0, 0, NULL }

/**
 * Fills out_info, and the first share_count of the shares of the places. shares may be NULL.
 * Refused with BUSY inside a kernel, a callback or a policy.
 */
WEIR_API weir_status weir_queue_get_info(weir_queue* queue, weir_queue_info* out_info,
                                         weir_queue_share* shares, size_t share_count);

/* ---- Policies ---------------------------------------------------------------------------------
 */

/** A place that can run the task. Times are estimates in nanoseconds. */
typedef struct weir_candidate {
  weir_place* place;
  size_t cores;        /**< tasks of the kernel that it runs at a time: its cores, or 1 if the
                            kernel is parallel */
  size_t tasks;        /**< tasks bound to it and not complete */
  bool full;           /**< its window is full: choosing it defers the task */
  double weight;       /**< weight of the options, or cores times measured speed */
  int64_t free_ns;     /**< time until it has completed these tasks */
  int64_t ready_ns;    /**< time until the operands have their values, on any place */
  int64_t transfer_ns; /**< time to copy the missing operands there */
  /** Estimated run time of the task; -1: no task of this kernel has run on such a place. */
  int64_t run_ns;
  uint64_t missing_bytes; /**< bytes to copy there, of the operands that the task reads */
  uint64_t owned_bytes;   /**< bytes of written operands whose last writer ran there */
} weir_candidate;

/** Defer the task; weir offers it again when the state of the queue has changed. */
#define WEIR_POLICY_LATER ((size_t)-1)

/**
 * Returns the index of a candidate or WEIR_POLICY_LATER. Deferring while nothing is running fails
 * the task. Called on any thread, one call at a time for one queue; does not block.
 */
typedef size_t (*weir_policy_function)(const char* task, const weir_candidate* candidates,
                                       size_t count, void* payload);

typedef struct weir_policy_options {
  size_t struct_size;
  const char* name;    /**< unique in the runtime */
  const char* summary; /**< one line of description */
  weir_policy_function choose;
  void* payload;
} weir_policy_options;
#define WEIR_POLICY_OPTIONS_INIT \
  { sizeof(weir_policy_options), NULL, NULL, NULL, NULL }

/** Adds a policy, for queues created later. weir_runtime_describe() lists all of them. */
WEIR_API weir_status weir_policy_register(weir_runtime* runtime,
                                          const weir_policy_options* options);

#ifdef __cplusplus
}
#endif
