/* The runtime: owns domains, places, streams, buffers and kernels. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <weir/domain.h>
#include <weir/fabric.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A timeout that never expires, for every function that takes a timeout in nanoseconds. */
#define WEIR_FOREVER INT64_C(-1)

/** One instance of weir: domains, places, streams, buffers, kernels. A process may have several.
 */
typedef struct weir_runtime weir_runtime;

typedef struct weir_runtime_options {
  size_t struct_size;
  /**
   * Domains to open, separated by commas; NULL takes WEIR_DOMAINS, or else "host".
   *
   *   host[:cores=N][,smt=on|off]                cores of this machine
   *   sim[:cores=N][,gbps=G][,latency_us=L][,duplex=half|full][,speed=S][,memory=SIZE]
   *      [,clock=real|virtual][,gflops=F]        a simulated accelerator made of host cores;
   *      [,kernels=run|skip][,order=host|device] docs/concepts/simulated-device.md has all settings
   *   opencl[:N][,alias=on|off][,memory=SIZE]    the Nth OpenCL device; native=off uses a processor
   *      [,native=on|off]                        as an accelerator
   *   cuda[:N][,memory=SIZE][,streams=K]         the Nth device of the CUDA driver
   *   rank:N|*[/DOMAIN]                          a domain of rank N of the fabric, or (*) of every
   *                                              rank except 0; default: host; weir_rank_serve()
   *   null                                       refuses all work (template for new backends)
   */
  const char* domains;
  /** How long weir_runtime_destroy() waits for enqueued work before it cancels it; default
   * WEIR_FOREVER. */
  int64_t shutdown_timeout_ns;
  /** BLAS for the built-in tile kernels: "openblas", "blis", "mkl", "reference", "plain" or a path;
     NULL takes WEIR_BLAS. */
  const char* blas;
  /** For domains of other ranks: the program's fabric; the runtime holds it until it is destroyed.
   */
  weir_fabric* fabric;
} weir_runtime_options;
#define WEIR_RUNTIME_OPTIONS_INIT \
  { sizeof(weir_runtime_options), NULL, WEIR_FOREVER, NULL, NULL }

/**
 * Opens the domains and registers the built-in kernels.
 * options may be NULL. The caller owns *out_runtime and ends it with weir_runtime_destroy().
 * Refused with BUSY inside a kernel, callback or stage of a pipeline, which cannot wait for its
 * end.
 */
WEIR_API weir_status weir_runtime_create(const weir_runtime_options* options,
                                         weir_runtime** out_runtime);

/**
 * Waits for all enqueued work (see shutdown_timeout_ns), cancels what remains, joins every thread
 * and frees every object of the runtime, whose handles are invalid afterwards. Unreported failures
 * are logged as warnings, also when the program exits without this call. NULL is ignored. Must not
 * be called from a kernel or a callback.
 */
WEIR_API void weir_runtime_destroy(weir_runtime* runtime);

/**
 * Waits until everything enqueued so far in all streams is complete.
 * Reports the first failure of each stream like weir_stream_synchronize(); with several failing
 * streams, that of the stream created first. After TIMEOUT the failures of streams that were
 * complete no longer poison later actions; the next synchronise returns them.
 */
WEIR_API weir_status weir_runtime_synchronize(weir_runtime* runtime, int64_t timeout_ns);

/** Returns the number of domains, at least 1; 0 for NULL. */
WEIR_API size_t weir_runtime_domain_count(const weir_runtime* runtime);

/** Returns the domain at index (in the order of weir_runtime_options::domains), NULL beyond the
 * last. */
WEIR_API weir_domain* weir_runtime_get_domain(const weir_runtime* runtime, size_t index);

/** Finds a domain by its name ("sim:0"), or by its backend when only one domain has it ("host"). */
WEIR_API weir_status weir_runtime_find_domain(const weir_runtime* runtime, const char* name,
                                              weir_domain** out_domain);

/**
 * Returns the platform's clock in nanoseconds. Simulated time when the domains run in virtual time,
 * a monotonic clock of the machine otherwise; only differences are meaningful.
 */
WEIR_API int64_t weir_runtime_now(const weir_runtime* runtime);

/**
 * In virtual time: lets `ns` nanoseconds pass, as if the calling thread worked for so long, while
 * kernels and copies go on. Without virtual time it does nothing. BUSY inside a kernel or a
 * callback.
 */
WEIR_API weir_status weir_runtime_pass_time(weir_runtime* runtime, int64_t ns);

/** Work done since the runtime was created. */
typedef struct weir_stats {
  size_t struct_size;
  uint64_t actions_enqueued;
  uint64_t actions_completed; /**< in any final state */
  uint64_t actions_failed;    /**< failed, poisoned or cancelled */
  uint64_t bytes_h2d;         /**< moved from host memory into a domain's memory */
  uint64_t bytes_d2h;         /**< moved from a domain's memory into host memory */
  uint64_t bytes_d2d;         /**< moved between two domains' memories */
  uint64_t bytes_evicted;     /**< moved because a domain's memory was full */
  uint64_t transfers_elided;  /**< transfers between instances that share their memory */
} weir_stats;
#define WEIR_STATS_INIT \
  { sizeof(weir_stats), 0, 0, 0, 0, 0, 0, 0, 0 }

/** Fills out_stats; exact when nothing is in flight. */
WEIR_API weir_status weir_runtime_get_stats(const weir_runtime* runtime, weir_stats* out_stats);

/**
 * Writes a description of machine, domains, libraries and kernels as one JSON object.
 * out_json receives at most capacity bytes including the final NUL; *out_size (may be NULL) the
 * size needed. Call with capacity 0 to get the size; it may be larger in the next call.
 */
WEIR_API weir_status weir_runtime_describe(const weir_runtime* runtime, char* out_json,
                                           size_t capacity, size_t* out_size);

#ifdef __cplusplus
}
#endif
