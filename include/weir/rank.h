/* Ranks as domains: rank 0 runs the program, and the other ranks provide domains. */
#pragma once

#include <stdbool.h>

#include <weir/runtime.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes the domains of this rank available to rank 0. Every rank calls it once, with a runtime that
 * has weir_runtime_options::fabric and the same kernels, registered in any order.
 *
 * Rank 0, and a runtime without a fabric: *out_served is false, and the program continues with the
 * domains of all ranks. NOT_FOUND: a kernel of this runtime is not registered on a rank whose
 * domains it has; the message names both.
 *
 * Other ranks: opens the domains that rank 0 requests, runs its actions with kernels of the same
 * name, and returns when rank 0 closes its fabric, after any number of runtimes of rank 0.
 * *out_served is true; the program then only destroys the runtime and closes the fabric. "rank:"
 * domains of their runtimes are empty. NETWORK_ERROR: rank 0 has left without closing its fabric.
 *
 * Kernels are found by name. If rank 0 registers a kernel later that another rank lacks, its
 * actions there fail; the messages name both. All ranks have to run the same build of program and
 * library, or the domains of a rank cannot be opened. Must not be called from a kernel or a
 * callback.
 */
WEIR_API weir_status weir_rank_serve(weir_runtime* runtime, bool* out_served);

#ifdef __cplusplus
}
#endif
