/* Buffers: named ranges of bytes with an instance in each domain that uses them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/region.h>
#include <weir/runtime.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A named range of bytes. The host instance is the program's memory; every other domain gets an
 * instance of its own on first use (zero-filled), or shares the host's where it can (aliasing).
 * Contents move between instances only by transfers.
 */
typedef struct weir_buffer weir_buffer;

/** Kind of memory of the host instance that weir_buffer_create() allocates. */
typedef enum weir_memory_kind {
  WEIR_MEMORY_KIND_NORMAL = 0,
  WEIR_MEMORY_KIND_PINNED = 1,        /**< page-locked: devices copy it by DMA */
  WEIR_MEMORY_KIND_HUGE_PAGE = 2,     /**< backed by large pages */
  WEIR_MEMORY_KIND_HIGH_BANDWIDTH = 3 /**< HBM or MCDRAM beside the normal memory */
} weir_memory_kind;

typedef struct weir_buffer_options {
  size_t struct_size;
  const char* name; /**< for messages and traces; NULL: "buffer N" */
  /** Kind of new host memory. For wrapped memory with the kind PINNED, the driver of a device that
   * benefits, such as a CUDA device, page-locks it until the buffer is destroyed: this takes time
   * and pays off for memory that is copied several times. Without such a device it has no effect.
   */
  weir_memory_kind kind;
  bool strict;      /**< fail when kind is not available; otherwise take normal memory */
  bool no_alias;    /**< separate instances also where a domain could share the host's */
  bool prefault;    /**< touch the memory now; otherwise the place that first uses it does */
  size_t alignment; /**< bytes, a power of two; 0: 64 for new memory, 8 for wrapped */
} weir_buffer_options;
#define WEIR_BUFFER_OPTIONS_INIT \
  { sizeof(weir_buffer_options), NULL, WEIR_MEMORY_KIND_NORMAL, false, false, false, 0 }

/** Makes a buffer of new zero-filled host memory. bytes > 0. The caller owns *out_buffer. */
WEIR_API weir_status weir_buffer_create(weir_runtime* runtime, size_t bytes,
                                        const weir_buffer_options* options,
                                        weir_buffer** out_buffer);

/**
 * Makes a buffer of the program's memory [address, address + bytes), which must stay valid until
 * the buffer is destroyed and must not overlap another buffer. The memory is not freed.
 */
WEIR_API weir_status weir_buffer_wrap(weir_runtime* runtime, void* address, size_t bytes,
                                      const weir_buffer_options* options, weir_buffer** out_buffer);

/**
 * Makes a buffer whose instance in a domain is the program's memory [address, address + bytes)
 * there, with its contents: an allocation of the CUDA driver on the device of a "cuda" domain, or a
 * part of one; host memory for domains whose own memory is host memory, such as "sim". It must stay
 * valid until the buffer is destroyed and must not overlap another instance there. It is neither
 * freed nor evicted, and does not count as used memory of the domain.
 *
 * The host instance is the program's memory at host_address, as with weir_buffer_wrap(), or with
 * NULL new zero-filled memory, which the system allocates on first access. Only transfers copy
 * contents to it. Task queues name host memory, so download the contents first. In a domain that
 * shares the host's memory, both instances are the same unless the option no_alias is set.
 *
 * UNSUPPORTED for domains of other ranks, which cannot use the program's memory. NOT_FOUND: the
 * memory does not belong to the domain.
 */
WEIR_API weir_status weir_buffer_adopt(weir_domain* domain, void* address, void* host_address,
                                       size_t bytes, const weir_buffer_options* options,
                                       weir_buffer** out_buffer);

/**
 * Waits for the actions that use the buffer, then frees its instances. NULL is ignored. Inside a
 * kernel, callback or stage of a pipeline a thread of the runtime destroys the buffer later: memory
 * that the buffer wraps must stay valid until the runtime is destroyed.
 */
WEIR_API void weir_buffer_destroy(weir_buffer* buffer);

typedef struct weir_buffer_info {
  size_t struct_size;
  const char* name; /**< lives as long as the buffer */
  void* address;    /**< address of the host instance */
  size_t bytes;
  weir_memory_kind kind; /**< the kind that was available */
} weir_buffer_info;
#define WEIR_BUFFER_INFO_INIT \
  { sizeof(weir_buffer_info), NULL, NULL, 0, WEIR_MEMORY_KIND_NORMAL }

/** Fills out_info. */
WEIR_API weir_status weir_buffer_get_info(const weir_buffer* buffer, weir_buffer_info* out_info);

/**
 * Finds the buffer that holds a host address, and the offset of the address in it. So programs can
 * identify data by one address, which weir translates.
 */
WEIR_API weir_status weir_buffer_find(const weir_runtime* runtime, const void* address,
                                      weir_buffer** out_buffer, size_t* out_offset);

#ifdef __cplusplus
}
#endif
