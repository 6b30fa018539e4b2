/* Graphs: kernel calls that are recorded once and launched many times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/buffer.h>
#include <weir/event.h>
#include <weir/kernel.h>
#include <weir/queue.h>
#include <weir/status.h>
#include <weir/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A recorded sequence of kernel calls, with their dependences.
 *
 * weir_graph_begin() starts to record the calls that the program submits to a queue or enqueues in
 * a stream, and weir_graph_end() ends that. weir_graph_launch() runs all of them again. A launch is
 * one task of the queue, or one action of the stream: its operands are the buffers of the calls,
 * each from the first to the last byte that the calls use, and it is ordered with other work by
 * them. Inside a launch the effect is that of the calls in program order. Each core of the place
 * works off a list that was made when the graph was first launched. A call waits for another core
 * only where it depends on a call of that core. No dependence is searched and nothing is allocated
 * for a call, which makes graphs suitable for calls of a microsecond and less.
 *
 * Only the calls are recorded. Code of the program between them is not, and waiting there has no
 * effect on the graph. Scalars keep the values that they had, except for parameters, see
 * weir_scalar_parameter(); buffers may be replaced at a launch.
 *
 * When a call of a launch fails, those that depend on it do not run; all others do. The launch
 * fails with the message of the first failed call in program order, and poisons what depends on
 * any of its operands. A launch that depends on a failed task is POISONED as a whole.
 *
 * The queue must have one place, which works in host memory; the place of a stream must run host
 * code and leave the ordering to weir (backends "host" and "sim"). Priorities, places and domains
 * of the recorded calls have no effect on a launch.
 */
typedef struct weir_graph weir_graph;

typedef struct weir_graph_options {
  size_t struct_size;
  const char* name;    /**< of the graph and of its launches, copied; NULL: "graph N" */
  weir_queue* queue;   /**< whose tasks are recorded, or NULL with a stream */
  weir_stream* stream; /**< whose compute actions are recorded, or NULL with a queue */
  bool record_only;    /**< records calls without running them: their events are null */
} weir_graph_options;
#define WEIR_GRAPH_OPTIONS_INIT \
  { sizeof(weir_graph_options), NULL, NULL, NULL, false }

/**
 * Begins to record. The caller owns *out_graph. The queue or stream must outlive the graph. BUSY if
 * it is being recorded already; UNSUPPORTED if it cannot be.
 *
 * Until weir_graph_end(), a task with access REDUCE, a transfer that copies, and a sync that waits
 * for events are refused with UNSUPPORTED, because a launch could not repeat them.
 */
WEIR_API weir_status weir_graph_begin(const weir_graph_options* options, weir_graph** out_graph);

/** Ends the recording. INVALID_ARGUMENT if nothing was recorded; the graph can only be destroyed
 * then. */
WEIR_API weir_status weir_graph_end(weir_graph* graph);

/**
 * Marks a scalar of a recorded call as parameter `index` of the graph: it has its value while the
 * call is recorded, and the value of that parameter in launches that give parameters. Only for
 * calls that are being recorded: elsewhere the kernel gets a scalar of an unknown type.
 */
static inline weir_scalar weir_scalar_parameter(weir_scalar value, unsigned index) {
  value.type = (weir_scalar_type)((unsigned)value.type | ((index + 1) << 8));
  return value;
}

/** Replaces a recorded buffer in one launch by another one of the same size. */
typedef struct weir_binding {
  weir_buffer* recorded;
  weir_buffer* replacement;
} weir_binding;

typedef struct weir_graph_launch_options {
  size_t struct_size;
  const weir_binding* bindings; /**< two recorded buffers may replace each other */
  size_t binding_count;
  const weir_scalar* parameters; /**< one for each parameter, of the recorded type */
  size_t parameter_count;        /**< 0: the recorded values */
} weir_graph_launch_options;
#define WEIR_GRAPH_LAUNCH_OPTIONS_INIT \
  { sizeof(weir_graph_launch_options), NULL, 0, NULL, 0 }

/**
 * Runs the recorded calls once more; returns at once, except at the bound of work in flight.
 * options and out_event may be NULL. Any number of launches may be in flight. Nothing is enqueued
 * if a buffer was destroyed or replaced by one of another size, or if two operands of the calls
 * would be the same buffer that were not when they were recorded.
 */
WEIR_API weir_status weir_graph_launch(weir_graph* graph, const weir_graph_launch_options* options,
                                       weir_event* out_event);

typedef struct weir_graph_info {
  size_t struct_size;
  const char* name;     /**< lives as long as the graph */
  bool recording;       /**< weir_graph_end() was not called yet */
  size_t calls;         /**< recorded kernel calls */
  size_t buffers;       /**< that they use */
  size_t parameters;    /**< highest parameter index plus one */
  uint64_t launches;    /**< so far */
  size_t cores;         /**< that the lists were made for; 0: it was not launched yet */
  uint64_t dependences; /**< of calls on earlier calls */
  uint64_t waits;       /**< for another core, in a launch */
} weir_graph_info;
#define WEIR_GRAPH_INFO_INIT \
  { sizeof(weir_graph_info), NULL, false, 0, 0, 0, 0, 0, 0, 0 }

WEIR_API weir_status weir_graph_get_info(weir_graph* graph, weir_graph_info* out_info);

/** Ends a recording that has not ended, waits for all launches, and frees the graph. NULL is
 * ignored. Inside a kernel or a callback a thread of the runtime destroys it later. */
WEIR_API void weir_graph_destroy(weir_graph* graph);

#ifdef __cplusplus
}
#endif
