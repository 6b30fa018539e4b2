/* Traces: recordings of actions and their summary. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <weir/runtime.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Starts recording the actions that are enqueued from now on; discards an earlier recording.
 * max_bytes bounds the memory (0: 512 MiB); beyond it the newest actions are dropped and counted.
 * WEIR_TRACE=FILE records any program from its start and writes FILE when its runtime ends.
 */
WEIR_API weir_status weir_trace_start(weir_runtime* runtime, size_t max_bytes);

/** Stops recording; the recording stays. */
WEIR_API weir_status weir_trace_stop(weir_runtime* runtime);

/**
 * Writes the recording: Perfetto's protobuf if path ends in ".pftrace", Chrome's JSON otherwise.
 * Both open in ui.perfetto.dev. Synchronise first: actions that are not complete are not in it.
 */
WEIR_API weir_status weir_trace_write(weir_runtime* runtime, const char* path);

/** Statistics of a recording. Times in seconds. */
typedef struct weir_trace_summary {
  size_t struct_size;
  uint64_t actions;
  uint64_t dropped;
  double measured_s;      /**< from the first enqueue to the last end */
  double compute_s;       /**< sum over all compute actions */
  double transfer_s;      /**< sum over all transfers that moved data */
  double busiest_place_s; /**< time the busiest place was occupied */
  double busiest_link_s;  /**< time the busiest link was occupied */
  double ideal_s;         /**< the larger of busiest_place_s and busiest_link_s: full overlap */
  double overlap_ratio;   /**< measured_s / ideal_s, 0 without actions */
  double hidden_s;        /**< transfer time during which some place computed */
  double idle_share;      /**< mean share of measured_s that the cores of the places were idle */
  double critical_path_s; /**< longest chain of dependent actions */
  char busiest_place[64];
  char busiest_link[64];
} weir_trace_summary;
#define WEIR_TRACE_SUMMARY_INIT \
  { sizeof(weir_trace_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "" }

/** Computes the summary of the recording. */
WEIR_API weir_status weir_trace_summarize(weir_runtime* runtime, weir_trace_summary* out_summary);

#ifdef __cplusplus
}
#endif
