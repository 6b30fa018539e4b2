/* Streams: FIFO queues of actions bound to a place, executed out of order where operands allow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/buffer.h>
#include <weir/event.h>
#include <weir/kernel.h>
#include <weir/place.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A FIFO of actions bound to a place.
 *
 * The effect of its actions on their operands equals their execution in the order in which they
 * were enqueued. Two of them depend on each other if and only if their operands overlap in the same
 * instance and one of them writes; all others may run at the same time and in any order. Actions
 * that wait for the same action start in the order in which they were enqueued. Only events order
 * actions of different streams.
 *
 * When an action fails, the later actions of the stream that depend on it complete as POISONED and
 * never run, until the stream is synchronised; all others run. With WEIR_DEPENDENCE_POLICY_NONE no
 * action depends on another: syncs without operands report the failure, and later actions run. Any
 * thread may enqueue; the order between threads is the order of the calls.
 */
typedef struct weir_stream weir_stream;

/** What orders the actions of a stream. */
typedef enum weir_dependence_policy {
  WEIR_DEPENDENCE_POLICY_OPERANDS = 0, /**< overlapping operands (default) */
  WEIR_DEPENDENCE_POLICY_FIFO = 1,     /**< everything: strict order */
  WEIR_DEPENDENCE_POLICY_NONE = 2      /**< nothing: for measurements only, results may be wrong */
} weir_dependence_policy;

typedef struct weir_stream_options {
  size_t struct_size;
  const char* name; /**< NULL: "PLACE/sN" */
  weir_dependence_policy policy;
  /** -1 to 1: a free core serves streams of its place with a higher priority first. */
  int priority;
  size_t max_in_flight; /**< number of incomplete actions at which calls that enqueue wait; 0: the
                           value of WEIR_MAX_IN_FLIGHT, or else 65536 */
} weir_stream_options;
#define WEIR_STREAM_OPTIONS_INIT \
  { sizeof(weir_stream_options), NULL, WEIR_DEPENDENCE_POLICY_OPERANDS, 0, 0 }

/** Makes a stream on a place. options may be NULL. The caller owns *out_stream. */
WEIR_API weir_status weir_stream_create(weir_place* place, const weir_stream_options* options,
                                        weir_stream** out_stream);

/**
 * Waits for the enqueued actions, whatever their outcome, and frees the stream. A failure that no
 * synchronise, wait, event or callback has reported is logged as a warning. NULL is ignored. The
 * caller ensures that no other thread is in a call with the stream, or begins one. Inside a kernel,
 * callback or stage of a pipeline a thread of the runtime destroys the stream later.
 */
WEIR_API void weir_stream_destroy(weir_stream* stream);

/** A region of a buffer and how an action uses it, in the instance of the stream's domain. */
typedef struct weir_operand {
  weir_buffer* buffer;
  weir_region region;
  weir_access access;
} weir_operand;

typedef struct weir_compute {
  size_t struct_size;
  const weir_kernel* kernel; /**< or NULL with kernel_name */
  const char* kernel_name;   /**< looked up at each call; a handle is faster */
  const weir_operand* operands;
  size_t operand_count;
  const weir_scalar* scalars;
  size_t scalar_count;
  /** Name of the action in messages and traces, truncated to 31 bytes; NULL: the kernel's name. */
  const char* name;
} weir_compute;
#define WEIR_COMPUTE_INIT \
  { sizeof(weir_compute), NULL, NULL, NULL, 0, NULL, 0, NULL }

/**
 * Enqueues a call of a kernel and returns at once; it copies everything in compute. At
 * max_in_flight incomplete actions (backpressure), this and every other enqueueing function below
 * polls devices and waits, without a deadline, until an eighth of them is complete. Kernels and
 * callbacks do not wait and may exceed the bound. While it waits, the program must not hold a lock
 * that its kernels or callbacks take. out_event may be NULL, here and in all functions below.
 */
WEIR_API weir_status weir_stream_compute(weir_stream* stream, const weir_compute* compute,
                                         weir_event* out_event);

/** One end of a transfer. */
typedef struct weir_endpoint {
  weir_domain* domain; /**< domain of the instance; NULL: the program's host memory */
  weir_buffer* buffer;
  weir_region region;
} weir_endpoint;

typedef struct weir_transfer {
  size_t struct_size;
  weir_endpoint source;
  weir_endpoint target; /**< region of the same shape as the source's */
  const char* name;     /**< NULL: "h2d", "d2h", "d2d" or "h2h"; in traces with the buffer */
} weir_transfer;
#define WEIR_TRANSFER_INIT                                       \
  {                                                              \
    sizeof(weir_transfer), {NULL, NULL, {0, {0, 0, 0}, {0, 0}}}, \
        {NULL, NULL, {0, {0, 0, 0}, {0, 0}}}, NULL               \
  }

/**
 * Enqueues a copy between two instances: reads the source and writes the target.
 * Between instances that share their memory it copies nothing and only keeps its order.
 */
WEIR_API weir_status weir_stream_transfer(weir_stream* stream, const weir_transfer* transfer,
                                          weir_event* out_event);

/** Enqueues the transfer of a region from host memory to the instance of the stream's domain. */
WEIR_API weir_status weir_stream_upload(weir_stream* stream, weir_buffer* buffer,
                                        weir_region region, weir_event* out_event);

/** Enqueues the transfer of a region from the instance of the stream's domain to host memory. */
WEIR_API weir_status weir_stream_download(weir_stream* stream, weir_buffer* buffer,
                                          weir_region region, weir_event* out_event);

/** The call of the function that starts an external action. */
typedef struct weir_external_call {
  weir_event event;          /**< of the action: for weir_external_complete() */
  const weir_view* operands; /**< valid during the call; the memory is valid until the completion */
  size_t operand_count;
  void* payload;
} weir_external_call;

/**
 * Starts an operation and returns: the program later calls weir_external_complete(), on any thread,
 * also inside this function. It runs on a thread of weir, or on one that enqueues, completes or
 * waits, and must not wait; it may enqueue. With another status than OK the action fails at once.
 */
typedef weir_status (*weir_external_start)(const weir_external_call* call);

/**
 * An operation that weir orders and something else performs: a message, reading a file, work that
 * another library runs on the device.
 */
typedef struct weir_external {
  size_t struct_size;
  weir_external_start start;
  void* payload;
  const weir_operand* operands;
  size_t operand_count;
  const char* name; /**< NULL: "external" */
  /** Called with the payload when the action is complete, also if start was not called; not if the
   * enqueueing fails. May be NULL. */
  void (*release)(void* payload);
} weir_external;
#define WEIR_EXTERNAL_INIT \
  { sizeof(weir_external), NULL, NULL, NULL, 0, NULL, NULL }

/**
 * Enqueues an external action: its function is called when the actions that it depends on are
 * complete, and those that depend on it start after its completion. No thread waits for it. The
 * function is not called if the action is poisoned or cancelled. UNSUPPORTED: an operand is in the
 * memory of another rank, or the stream is recorded.
 */
WEIR_API weir_status weir_stream_external(weir_stream* stream, const weir_external* external,
                                          weir_event* out_event);

/**
 * Completes an external action that has been started, by its event. With another status than OK,
 * which is not POISONED, it fails with `message` (copied; may be NULL). Any thread, no lock held:
 * the call may run callbacks and start other external actions.
 * INVALID_ARGUMENT: it has not been started, or is complete.
 */
WEIR_API weir_status weir_external_complete(weir_runtime* runtime, const weir_event* event,
                                            weir_status status, const char* message);

/** What a sync action orders. */
typedef enum weir_sync_scope {
  WEIR_SYNC_SCOPE_STREAM = 0,   /**< all earlier and all later actions: a barrier (no operands) */
  WEIR_SYNC_SCOPE_OPERANDS = 1, /**< earlier and later actions that access the operands */
  WEIR_SYNC_SCOPE_NOTHING = 2   /**< waits for all earlier actions; later ones do not wait for it */
} weir_sync_scope;

typedef struct weir_sync {
  size_t struct_size;
  /** Events of any streams of the runtime; the sync waits for all of them. */
  const weir_event* events;
  size_t event_count;
  const weir_operand* operands; /**< for SCOPE_OPERANDS; the access is ignored */
  size_t operand_count;
  weir_sync_scope scope;
  const char* name; /**< NULL: "sync" */
} weir_sync;
#define WEIR_SYNC_INIT \
  { sizeof(weir_sync), NULL, 0, NULL, 0, WEIR_SYNC_SCOPE_STREAM, NULL }

/**
 * Enqueues a sync action: waits inside the stream, never on the calling thread.
 * An event that failed poisons the actions that the sync orders, except in a stream with
 * WEIR_DEPENDENCE_POLICY_NONE.
 */
WEIR_API weir_status weir_stream_sync(weir_stream* stream, const weir_sync* sync,
                                      weir_event* out_event);

/** Enqueues a barrier that also waits for one event: weir_stream_sync() with SCOPE_STREAM. */
WEIR_API weir_status weir_stream_wait_event(weir_stream* stream, const weir_event* event);

/**
 * Blocks until everything enqueued so far is complete.
 * Returns the status of the first action that failed since the last synchronise, whose message
 * weir_last_error() holds, and clears it: later actions are not poisoned by it. TIMEOUT clears
 * nothing. Refused with BUSY inside a kernel or a callback.
 */
WEIR_API weir_status weir_stream_synchronize(weir_stream* stream, int64_t timeout_ns);

/**
 * Completes every action that has not started as CANCELLED; actions that depend on running ones
 * complete when these end. Running actions end normally.
 */
WEIR_API weir_status weir_stream_cancel(weir_stream* stream);

#ifdef __cplusplus
}
#endif
