/* Wisdom: stored results of tuning, how to divide a problem on this machine. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <weir/runtime.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A way to divide the work of a program, and the time it took. */
typedef struct weir_wisdom {
  size_t struct_size;
  size_t places;   /**< places of each domain, at least 1 */
  size_t streams;  /**< streams of each place, at least 1 */
  size_t tiles;    /**< tiles along an edge or in total, as the program counts; 0: its default */
  double seconds;  /**< run time */
  char policy[32]; /**< policy of the task queue; "": the program uses streams */
  size_t aspect;   /**< width of a tile over its height, at least 1 */
} weir_wisdom;
#define WEIR_WISDOM_INIT \
  { sizeof(weir_wisdom), 1, 1, 0, 0, "", 1 }

/**
 * Looks up how to divide a problem. `problem` identifies it by everything except size and machine:
 * one line of text, like "matmul, float". `size` is its order: sizes with the same nearest power of
 * 2 share one entry. Finds only what this version of weir stored, on this kind of machine and for a
 * runtime with the same list of domains. NOT_FOUND: there is no entry; out_wisdom is unchanged.
 * `weir tune` keeps the wisdom of an application under "weir run", its name and its options. The
 * file is read in each call. From any thread.
 */
WEIR_API weir_status weir_wisdom_find(const weir_runtime* runtime, const char* problem,
                                      uint64_t size, weir_wisdom* out_wisdom);

/**
 * Keeps how to divide a problem, instead of what was kept for it before, in "weir/wisdom" of
 * XDG_CACHE_HOME, or of ~/.cache without it. If the file cannot be written nothing is kept, and the
 * call still returns OK: wisdom saves time, and results never depend on it. Any thread may call it,
 * and several processes at once: the last writer wins. INVALID_ARGUMENT if places, streams or
 * aspect is 0, if seconds is negative or not finite, or if a text has more than one line.
 */
WEIR_API weir_status weir_wisdom_keep(const weir_runtime* runtime, const char* problem,
                                      uint64_t size, const weir_wisdom* wisdom);

#ifdef __cplusplus
}
#endif
