/* Pipelines: stages connected by tunnels, with bounded memory and exact termination detection
 * (after HiWayLib, paper 002). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/buffer.h>
#include <weir/kernel.h>
#include <weir/place.h>
#include <weir/runtime.h>
#include <weir/status.h>
#include <weir/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Stages and the tunnels between them, in any shape: chains, forks, joins, loops, recursion.
 *
 * A tunnel carries items of one size to the one stage that takes them; any number of stages and
 * feeds may put items there. A stage takes items in batches and puts any number of items into the
 * tunnels that are its outputs, its own included. A stage without an input is a source: it is
 * called repeatedly until it sets weir_batch::over.
 *
 * An item is complete when the call that got it has returned and the items it put are counted. A
 * stage is at its end when all stages and feeds that could put items for it are at their end and
 * all its items are complete; the pipeline is at its end when all stages are. No time-outs are
 * involved. Stages that put items for each other in a loop end together.
 *
 * Memory is bounded: a worker never waits while it has items that it could work on. Items that do
 * not fit into a full tunnel stay with the worker, which processes them first: downstream stages
 * before upstream ones, and in loops the newest first. Only sources and feeds wait. For a recursive
 * stage a worker keeps at most batch x (depth x (children - 1) + 1) items.
 *
 * A running pipeline has the cores of its places to itself: other work of these places waits until
 * the pipeline ends.
 */
typedef struct weir_pipeline weir_pipeline;

/** The bounded queue of items in front of one stage. Belongs to its pipeline. */
typedef struct weir_tunnel weir_tunnel;

/** A thread of the program, seen as a source. */
typedef struct weir_feed weir_feed;

/** One call of a stage, valid during the call. Stages may write the fields marked "write". */
typedef struct weir_batch weir_batch;

/** The buffer for items that a call puts into one tunnel. */
typedef struct weir_outlet {
  unsigned char* next; /**< for weir_outlet_add() */
  unsigned char* end;
  size_t item_bytes;
} weir_outlet;

struct weir_batch {
  const void* items;           /**< contiguous, aligned for any type; NULL for a source */
  size_t count;                /**< number of items; for a source a hint how many to put */
  size_t index;                /**< write: on failure, the item that failed */
  weir_outlet* const* outlets; /**< in the order of weir_stage_options::outputs */
  size_t outlet_count;
  uint64_t epoch;  /**< of all items, including those that the call puts */
  size_t worker;   /**< below weir_pipeline_info::workers; concurrent calls have different values */
  bool over;       /**< write, of a source: it has no more items */
  bool epoch_over; /**< write, of a source: later items belong to the next epoch */
  void* payload;
  /** Write: nanoseconds of work on the items, for a stage whose call also waits, such as for a
      thread that does the work. -1, the initial value: the whole call is work. Workers take about
     20 microseconds of work at once. */
  int64_t busy_ns;
};

/**
 * Works on the items of a batch one after the other. Returns OK, or weir_batch_fail(...): then item
 * `index` has failed, the items before it are complete, and those after it are delivered by another
 * call. Items that it put for the failed item remain. Calls run at the same time on different
 * batches, unless weir_stage_options::workers is 1. It must not wait for weir events, nor block for
 * long: threads that wait use a feed.
 */
typedef weir_status (*weir_stage_function)(weir_batch* batch);

/** Fails an item with a message: `return weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "...")`.
 */
WEIR_API weir_status weir_batch_fail(weir_batch* batch, weir_status status, const char* format, ...)
    WEIR_PRINTF(3, 4);

/** Makes room in an outlet; use weir_outlet_add(). OUT_OF_MEMORY: see weir_pipeline_options. */
WEIR_API weir_status weir_outlet_grow(weir_outlet* outlet);

/** Puts an item: returns where to write it, before the call of the stage ends; NULL: no memory. */
static inline void* weir_outlet_add(weir_outlet* outlet) {
  if (outlet->next == outlet->end && weir_outlet_grow(outlet) != WEIR_STATUS_OK) return NULL;
  void* const item = outlet->next;
  outlet->next += outlet->item_bytes;
  return item;
}

/** An item that is complete later than the call that got it. */
typedef struct weir_item weir_item;

/**
 * Keeps item `index` of the batch beyond the call: it is complete when weir_item_complete() is
 * called; until then neither its epoch nor its stage nor the pipeline is at its end. For work that
 * another thread finishes, such as a write. The item's bytes are not kept: copy them. Call it
 * inside the call of a stage that is a function, once for each item. An item that fails, or that is
 * delivered again because one before it failed, is no longer kept.
 */
WEIR_API weir_status weir_item_keep(weir_batch* batch, size_t index, weir_item** out_item);

/**
 * Completes an item that was kept, and frees it. Any thread, once: a second call, and a call after
 * the pipeline was destroyed, returns INVALID_ARGUMENT with the stage and the item in the message.
 * An item that is never completed keeps the pipeline from its end: weir_pipeline_wait() names it at
 * its deadline, and weir_pipeline_destroy() logs it.
 */
WEIR_API weir_status weir_item_complete(weir_item* item);

/** What happens to items for which there is no room. */
typedef enum weir_overflow {
  WEIR_OVERFLOW_BLOCK = 0,       /**< sources and feeds wait */
  WEIR_OVERFLOW_DROP_NEWEST = 1, /**< the new item is dropped */
  WEIR_OVERFLOW_DROP_OLDEST = 2, /**< the oldest item in the tunnel is dropped */
  WEIR_OVERFLOW_KEEP_LATEST = 3  /**< DROP_OLDEST with room for one item */
} weir_overflow;

typedef struct weir_tunnel_options {
  size_t struct_size;
  const char* name;  /**< NULL: "tunnel N" */
  size_t item_bytes; /**< of one item, which is copied as bytes */
  /** Maximum number of items that wait for any worker. 0: 1024, or fewer large ones; for a kernel
      or stencil at least one of its batches. */
  size_t capacity;
  weir_overflow overflow;
} weir_tunnel_options;
#define WEIR_TUNNEL_OPTIONS_INIT \
  { sizeof(weir_tunnel_options), NULL, 0, 0, WEIR_OVERFLOW_BLOCK }

/** How a kernel states how many items it puts into a tunnel. */
typedef enum weir_stage_counting {
  WEIR_STAGE_COUNTING_ALL = 0,       /**< always `most` for each input item */
  WEIR_STAGE_COUNTING_PER_ITEM = 1,  /**< a number for each input item, up to `most` */
  WEIR_STAGE_COUNTING_PER_TUNNEL = 2 /**< one number, initially 0, which it adds to atomically */
} weir_stage_counting;

/** What a kernel puts into one output of its stage. */
typedef struct weir_stage_output {
  size_t most; /**< output items for each input item, at most; 0: 1 */
  weir_stage_counting counting;
} weir_stage_output;

/**
 * A kernel that works on batches in the memory of a domain.
 *
 * Its operands are the input items; then, for each output of the stage, the output items and,
 * unless the counting is ALL, their 32-bit counts; then the tables. Its scalars are the number of
 * input items, as i64, and `scalars`. With ALL and PER_ITEM, the output items of input item i begin
 * at index i * most. With PER_TUNNEL the output items are contiguous from index 0, in any order.
 *
 * The pipeline gathers items into batches, copies them to the domain and the results back, and
 * keeps several batches in flight. From the times of earlier batches it chooses how many items a
 * batch gets, so that they take long beside the launch. It submits such a batch at once, and a
 * smaller one when fewer than two are in flight and a worker finds nothing else to do. When the
 * device is slow the tunnel fills, and the source waits. If the kernel or a copy of a batch fails,
 * all items of the batch fail.
 */
typedef struct weir_stage_kernel {
  size_t struct_size;
  const weir_kernel* kernel; /**< or NULL with kernel_name */
  const char* kernel_name;
  const weir_scalar* scalars; /**< copied */
  size_t scalar_count;
  const weir_stage_output* outputs; /**< one for each output of the stage; NULL: { 1, ALL } each */
  /** Items in a batch, fewer if fewer wait. 0: from measured times, at most 16384, fewer if items
     or results are large, at most the capacity of the input tunnel. A batch is gathered in the
     input tunnel, except in a loop. So the capacity of that tunnel must be at least `batch`,
     otherwise weir_pipeline_start() returns INVALID_ARGUMENT. A tunnel with capacity 0 takes it
     from the batch, unless a feed was opened before this stage was added. */
  size_t batch;
  size_t in_flight; /**< maximum number of batches in flight; 0: 8 */
  /** Regions that every batch reads in addition to its items: access READ. They are copied to the
      domain once, when the stage is added. Their buffers must outlive the pipeline, and the program
      must not write them before its end. */
  const weir_operand* tables;
  size_t table_count;
  size_t scratch_bytes; /**< of device memory for each batch, initially 0: the last operand, which
                             the kernel reads and writes */
} weir_stage_kernel;
#define WEIR_STAGE_KERNEL_INIT \
  { sizeof(weir_stage_kernel), NULL, NULL, NULL, 0, NULL, 0, 0, NULL, 0, 0 }

typedef struct weir_stage_options {
  size_t struct_size;
  const char* name;   /**< NULL: "stage N" */
  weir_tunnel* input; /**< NULL: a source */
  weir_tunnel* const* outputs;
  size_t output_count;
  weir_stage_function function;
  /** Called once, with no items, when the stage has reached its end: it may still put items for
   * stages that are not at their end. These belong to the last epoch begun, or to one more if that
   * epoch was complete before a feed was closed or a source ended. May be NULL. */
  weir_stage_function at_end;
  void* payload;
  void (*release)(void* payload); /**< called once, when the pipeline is destroyed; may be NULL */
  weir_place* place; /**< of a host domain, with the cores that work on it; NULL: the pipeline's */
  size_t workers; /**< maximum number of concurrent calls; 0: all cores of the place; a source: 1 */
  /** The stage takes items in the order of arrival, and its output items keep that order. The next
   * stage sees that order with workers = 1. Not in a loop. */
  bool ordered;
  /** Used in place of a function. Runs on `place`, of any domain, which must have no workers of the
      pipeline and must outlive it. Workers of the pipeline's place move the items. */
  const weir_stage_kernel* kernel;
  /** In virtual time: the nanoseconds of a host core that the function takes for each item of its
   * input, or a source for each item that it puts; 0: no time passes. The cores of the place, which
   * is of a simulated host, share the items evenly, as if each could be divided: their rate is
   * right, the latency of an item too short. Without a place the cores are those of the first
   * simulated host; without that there is one. */
  double item_ns;
} weir_stage_options;
#define WEIR_STAGE_OPTIONS_INIT                                                                    \
  {                                                                                                \
    sizeof(weir_stage_options), NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, false, NULL, \
        0                                                                                          \
  }

/** An item that failed, for weir_pipeline_options::on_failure; valid during the call. */
typedef struct weir_item_failure {
  const char* stage;
  const void* item; /**< NULL: of a source, or at the end of a stage */
  weir_status status;
  const char* message; /**< of a batch on a device: "items 128 to 191: ..." */
  size_t count;        /**< of items from `item` on that failed together */
} weir_item_failure;

/**
 * How workers avoid contention on the counters of a tunnel: the two layers of paper 002, section
 * 3.4. The paper has them for warps and blocks of a GPU; a worker's batch corresponds to a warp.
 */
typedef enum weir_relief {
  WEIR_RELIEF_BOTH = 0, /**< claims of batches; a worker keeps the items it puts for itself until
                           other workers are idle */
  WEIR_RELIEF_WARP =
      1,              /**< one claim for a batch of items; all items go through the shared tunnel */
  WEIR_RELIEF_OFF = 2 /**< each item is claimed separately */
} weir_relief;

typedef struct weir_pipeline_options {
  size_t struct_size;
  const char* name;  /**< NULL: "pipeline N" */
  weir_place* place; /**< of stages without one; NULL: of all free cores of the first host domain */
  bool
      keep_going; /**< continue after a failed item; otherwise the first failure cancels the rest */
  size_t batch;   /**< maximum number of items of a call; 0: 64 */
  size_t epochs;  /**< at most in flight at once; 0: one epoch that never ends by itself */
  /** Most bytes of items that a worker keeps for one tunnel; 0: 256 MiB. A call that puts more
   * fails its item, which ends a loop without an exit. */
  size_t keep_bytes;
  /** Called on any worker, or for a batch of a device on the thread that completes it; must not
   * wait. */
  void (*on_failure)(const weir_item_failure* failure, void* payload);
  /** Called when all items of an epoch are complete, in the order of epochs; on any worker, one
   * call at a time. */
  void (*on_epoch)(uint64_t epoch, void* payload);
  void* payload;      /**< of both */
  weir_relief relief; /**< for measurements */
} weir_pipeline_options;
#define WEIR_PIPELINE_OPTIONS_INIT \
  { sizeof(weir_pipeline_options), NULL, NULL, false, 0, 0, 0, NULL, NULL, NULL, WEIR_RELIEF_BOTH }

/** Makes an empty pipeline. options may be NULL. The caller owns *out_pipeline. */
WEIR_API weir_status weir_pipeline_create(weir_runtime* runtime,
                                          const weir_pipeline_options* options,
                                          weir_pipeline** out_pipeline);

/**
 * Cancels the pipeline, waits for its end, and frees it with everything that belongs to it, feeds
 * included. Threads that wait in weir_feed_put() return CANCELLED first. No other thread may be in,
 * or begin, another call with a feed or the pipeline; a program that cannot rule this out calls
 * weir_pipeline_cancel() and waits until its threads have returned. NULL is ignored. Inside a
 * kernel, callback or stage a thread of the runtime destroys the pipeline later.
 */
WEIR_API void weir_pipeline_destroy(weir_pipeline* pipeline);

/** Adds a tunnel. BUSY once the pipeline has started. */
WEIR_API weir_status weir_pipeline_add_tunnel(weir_pipeline* pipeline,
                                              const weir_tunnel_options* options,
                                              weir_tunnel** out_tunnel);

/** Adds a stage. BUSY once the pipeline has started, or when the input has a stage already. */
WEIR_API weir_status weir_pipeline_add_stage(weir_pipeline* pipeline,
                                             const weir_stage_options* options);

/** A matrix: stages set its values, and a device computes new values in sweeps. Belongs to its
 * pipeline. */
typedef struct weir_stencil weir_stencil;

/** A part of the matrix, in values: the item of the tunnels of a stencil. */
typedef struct weir_stencil_region {
  uint32_t row, column, rows, columns;
} weir_stencil_region;

/**
 * The kernel of a tile has two operands: the values it computes, and the values of the sweep
 * before, which are the tile with its halo clipped to the matrix. Its scalars, as i64, are rows and
 * columns of the tile, the values between two rows of both operands, the rows above and the columns
 * left of the tile in the second operand, the row and column of the tile, the rows and columns of
 * the matrix, and then the scalars given here.
 */
typedef struct weir_stencil_options {
  size_t struct_size;
  const char* name;   /**< NULL: "stencil" */
  weir_tunnel* input; /**< of weir_stencil_region: an output of the stages that set values */
  /** Receives each tile of the last sweep once it is in `result`; NULL: none. */
  weir_tunnel* output;
  weir_place* place;         /**< that runs the kernel; see weir_stage_options::kernel */
  const weir_kernel* kernel; /**< or NULL with kernel_name */
  const char* kernel_name;
  const weir_scalar* scalars; /**< copied */
  size_t scalar_count;
  weir_buffer* result; /**< rows x columns values, one row after the other */
  size_t rows, columns;
  size_t value_bytes;
  size_t region_rows, region_columns; /**< size of a region, copied and computed at once; 0: 64 */
  size_t halo; /**< values on each side that a value depends on, at most a region */
  /** Whether a value also depends on diagonal neighbours, as in a 3x3 stencil;
     WEIR_STENCIL_OPTIONS_INIT: true. false, for a cross: a tile does not wait for the regions at
     its corners. */
  bool corners;
  size_t sweeps;    /**< number of sweeps; 0: 1 */
  size_t batch;     /**< regions that are copied at once; 0: 16; see weir_stage_kernel::batch */
  size_t in_flight; /**< maximum number of batches in flight; 0: 4 */
} weir_stencil_options;
#define WEIR_STENCIL_OPTIONS_INIT                                                                \
  {                                                                                              \
    sizeof(weir_stencil_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, \
        0, 0, true, 0, 0, 0                                                                      \
  }

/**
 * Adds a stencil (the lazy reference-based scheme of paper 002, with counters in place of polling).
 *
 * The call that sets the last value of a region puts the region into the input tunnel. The pipeline
 * then copies it to the device, each value once. A tile is computed as soon as the device has all
 * values that its stencil reads. Memory for regions that are being set is reused after their copy.
 * A region that is incomplete, or was not put into the input tunnel, fails the pipeline when all
 * stages that set values are at their end.
 */
WEIR_API weir_status weir_pipeline_add_stencil(weir_pipeline* pipeline,
                                               const weir_stencil_options* options,
                                               weir_stencil** out_stencil);

/**
 * Sets rows x columns values, given row by row, `stride` values apart. Inside a stage, with its
 * outlet for the input of the stencil. Threads may set different values at once. INVALID_ARGUMENT
 * for a value that is already set: such a call sets nothing, unless another thread sets the same
 * value at the same time.
 */
WEIR_API weir_status weir_stencil_set(weir_stencil* stencil, weir_outlet* outlet, size_t row,
                                      size_t column, size_t rows, size_t columns,
                                      const void* values, size_t stride);

typedef struct weir_stencil_info {
  size_t struct_size;
  const char* name;         /**< lives as long as the pipeline */
  uint64_t regions;         /**< and tiles in each sweep */
  uint64_t regions_copied;  /**< enqueued */
  uint64_t tiles_made;      /**< in all sweeps, enqueued */
  uint64_t regions_at_once; /**< with memory while stages set them */
} weir_stencil_info;
#define WEIR_STENCIL_INFO_INIT \
  { sizeof(weir_stencil_info), NULL, 0, 0, 0, 0 }

/** Fills out_info. */
WEIR_API weir_status weir_stencil_get_info(weir_stencil* stencil, weir_stencil_info* out_info);

/**
 * Starts the workers and returns. In virtual time there are no workers: threads that wait for the
 * pipeline run its stages, one at a time, and stages take no virtual time. A pipeline starts once.
 * INVALID_ARGUMENT when no stage takes items from a tunnel, or when no source or open feed can put
 * items into it, as in a loop without a source.
 */
WEIR_API weir_status weir_pipeline_start(weir_pipeline* pipeline);

/**
 * Starts the pipeline and works on it until the end on the calling thread, in place of a worker of
 * the first place. Returns what weir_pipeline_wait() returns.
 */
WEIR_API weir_status weir_pipeline_run(weir_pipeline* pipeline);

/**
 * Waits for the end. Returns the status of the first item that failed, CANCELLED, or TIMEOUT with a
 * message that says which stages hold how many items. Refused with BUSY inside a stage.
 */
WEIR_API weir_status weir_pipeline_wait(weir_pipeline* pipeline, int64_t timeout_ns);

/** Ends the pipeline without working on the remaining items. Any thread, stages included. */
WEIR_API weir_status weir_pipeline_cancel(weir_pipeline* pipeline);

/**
 * Opens a feed through which the program puts items. After the start, allowed only while another
 * feed of the tunnel is open. The caller closes it with weir_feed_close().
 */
WEIR_API weir_status weir_feed_open(weir_tunnel* tunnel, weir_feed** out_feed);

/**
 * Puts items, one after the other, each visible at once. Where the tunnel blocks, waits for room up
 * to timeout_ns: TIMEOUT, with the number of items put in *out_put (may be NULL). CANCELLED when
 * the pipeline is cancelled. A feed belongs to one thread at a time.
 */
WEIR_API weir_status weir_feed_put(weir_feed* feed, const void* items, size_t count,
                                   int64_t timeout_ns, size_t* out_put);

/** Items put from now on belong to the next epoch. weir_feed_put() waits while too many epochs are
 * in flight. */
WEIR_API weir_status weir_feed_next_epoch(weir_feed* feed);

/** Closes and frees a feed: it puts nothing more. NULL is ignored. */
WEIR_API void weir_feed_close(weir_feed* feed);

typedef struct weir_stage_info {
  const char* name;  /**< lives as long as the pipeline */
  uint64_t created;  /**< items put for it */
  uint64_t complete; /**< completed items, including dropped and failed ones */
  uint64_t dropped;
  uint64_t failed;
  uint64_t most_kept; /**< items that one worker kept for it at most */
  bool at_end;
} weir_stage_info;

typedef struct weir_pipeline_info {
  size_t struct_size;
  const char* name; /**< lives as long as the pipeline */
  size_t stages;    /**< that have an input, in the order in which they were added */
  size_t workers;   /**< of all places; 0 before the start */
  uint64_t epochs;  /**< that are complete */
  bool at_end;
  size_t all_stages; /**< sources included: for weir_pipeline_get_stage() */
  size_t tunnels;
  uint64_t elapsed_ns; /**< time from the start until now or the end; virtual time if that is the
                          clock */
} weir_pipeline_info;
#define WEIR_PIPELINE_INFO_INIT \
  { sizeof(weir_pipeline_info), NULL, 0, 0, 0, false, 0, 0, 0 }

/**
 * Fills out_info, and the infos of the first stage_count stages. stages may be NULL. While the
 * pipeline runs the counts lag slightly.
 */
WEIR_API weir_status weir_pipeline_get_info(weir_pipeline* pipeline, weir_pipeline_info* out_info,
                                            weir_stage_info* stages, size_t stage_count);

/** Number of age classes. The width of a class is at most an eighth of its lower bound; the last
 * class has all ages from 34 minutes on. */
#define WEIR_LATENCY_CLASSES 312

/** Ages of items when a stage completed them: the number of items in each class. */
typedef struct weir_latency {
  uint64_t items[WEIR_LATENCY_CLASSES];
} weir_latency;

/**
 * Finds the age in nanoseconds that `percent` of the items had at most; -1: no items. `before`,
 * which may be NULL, holds earlier counts, which are subtracted, so that two states of a stage give
 * the percentiles of the time between them.
 */
WEIR_API weir_status weir_latency_percentile(const weir_latency* latency,
                                             const weir_latency* before, double percent,
                                             int64_t* out_ns);

typedef struct weir_stage_state {
  size_t struct_size;
  const char* name;      /**< lives as long as the pipeline, and so do outputs */
  size_t input;          /**< number of its tunnel; SIZE_MAX: a source */
  const size_t* outputs; /**< numbers of tunnels */
  size_t output_count;
  size_t workers; /**< that can be in it at once; 1 for a kernel or stencil; 0 before the start */
  bool on_device; /**< a kernel or stencil */
  bool at_end;
  uint64_t complete; /**< completed items, including dropped and failed ones */
  uint64_t failed;
  uint64_t put;  /**< items it has put */
  uint64_t kept; /**< items that it keeps beyond its calls, by weir_item_keep() */
  /** Time that all workers together spent in the stage, estimated from a sample of calls; for a
   * kernel, the time during which a batch was in flight. In virtual time only kernels take time. */
  uint64_t busy_ns;
  /** From the call of the source or of weir_feed_put() that put the source item until this stage
   * completed the item. Sampled; a batch on a device counts with its first sampled item. */
  weir_latency latency;
} weir_stage_state;
#define WEIR_STAGE_STATE_INIT                                                     \
  {                                                                               \
    sizeof(weir_stage_state), NULL, 0, NULL, 0, 0, false, false, 0, 0, 0, 0, 0, { \
      { 0 }                                                                       \
    }                                                                             \
  }

/**
 * Fills out_state for a stage, by its number: in the order in which they were added, sources
 * included, below weir_pipeline_info::all_stages. Any thread, once the pipeline has started; while
 * it runs the counts lag slightly. From the first call on the pipeline measures latencies, which
 * costs one clock read per sampled batch and stage.
 */
WEIR_API weir_status weir_pipeline_get_stage(weir_pipeline* pipeline, size_t number,
                                             weir_stage_state* out_state);

typedef struct weir_tunnel_state {
  size_t struct_size;
  const char* name; /**< lives as long as the pipeline */
  size_t stage;     /**< number of the stage that takes its items; SIZE_MAX: none yet */
  weir_overflow overflow;
  size_t capacity;    /**< items that may wait for any worker */
  uint64_t waiting;   /**< items that wait now */
  uint64_t under_way; /**< other items that are not complete: workers keep or process them */
  uint64_t created;   /**< items put into it */
  uint64_t complete;
  uint64_t dropped;
} weir_tunnel_state;
#define WEIR_TUNNEL_STATE_INIT \
  { sizeof(weir_tunnel_state), NULL, 0, WEIR_OVERFLOW_BLOCK, 0, 0, 0, 0, 0, 0 }

/** The same for a tunnel, by its number in the order in which they were added. */
WEIR_API weir_status weir_pipeline_get_tunnel(weir_pipeline* pipeline, size_t number,
                                              weir_tunnel_state* out_state);

#ifdef __cplusplus
}
#endif
