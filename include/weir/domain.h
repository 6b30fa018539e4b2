/* Domains: one memory space with its compute resources. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One memory space with its compute resources. Borrowed from the runtime, never destroyed. */
typedef struct weir_domain weir_domain;

/** Facts about a domain. All strings live as long as the runtime. */
typedef struct weir_domain_info {
  size_t struct_size;
  const char* name;        /**< unique in the runtime: "host", "sim:0" */
  const char* backend;     /**< "host", "sim", "opencl", "cuda", "rank", "null" */
  const char* description; /**< processor or device in words */
  size_t index;            /**< position in the runtime's list */
  size_t cores;            /**< cores that places can be made of */
  uint64_t memory_bytes;   /**< capacity for buffer instances */
  uint64_t memory_used;    /**< bytes of instances there now */
  bool aliases_host;       /**< shares memory with the host: transfers cost nothing */
  bool virtual_time;       /**< its clock is simulated: time passes only while a thread waits */
  double link_gbps;        /**< modelled link bandwidth in GB/s, 0 when it is not modelled */
  double link_latency_us;  /**< modelled link latency in microseconds, 0 when not modelled */
  const char* link_duplex; /**< "half", "full", or "none" without a link */
  size_t threads_per_core; /**< number of consecutive cores that are hardware threads of one
                              physical core */
  bool skips_kernels;      /**< simulated with kernels=skip: only modelled time passes, results are
                              invalid */
} weir_domain_info;
#define WEIR_DOMAIN_INFO_INIT \
  { sizeof(weir_domain_info), NULL, NULL, NULL, 0, 0, 0, 0, false, false, 0, 0, NULL, 1, false }

/** Fills out_info, whose struct_size must be set. */
WEIR_API weir_status weir_domain_get_info(const weir_domain* domain, weir_domain_info* out_info);

#ifdef __cplusplus
}
#endif
