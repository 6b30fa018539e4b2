/* Status codes and the message of the last failure. */
#pragma once

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Outcome of every fallible function, and final status of every action.
 *
 * A function that does not return WEIR_STATUS_OK changed nothing: nothing was enqueued, created or
 * freed. weir_last_error() then holds one line that names the object and the limit it broke.
 */
typedef enum weir_status {
  WEIR_STATUS_OK = 0,
  WEIR_STATUS_INVALID_ARGUMENT = 1, /**< an argument is wrong; the message says which and why */
  WEIR_STATUS_NOT_FOUND = 2,        /**< no kernel, domain, buffer or event of that name */
  WEIR_STATUS_UNSUPPORTED = 3,      /**< correct, but this domain or build cannot do it */
  WEIR_STATUS_UNAVAILABLE = 4,      /**< a device, driver, library or resource is missing */
  WEIR_STATUS_OUT_OF_MEMORY = 5,    /**< host or domain memory is exhausted */
  WEIR_STATUS_BUSY = 6,             /**< the object is in use in a way that forbids the call */
  WEIR_STATUS_TIMEOUT = 7,          /**< the deadline passed; the work continues */
  WEIR_STATUS_CANCELLED = 8,        /**< the action was cancelled before it started */
  WEIR_STATUS_POISONED = 9,         /**< the action depends on one that failed, and never ran */
  WEIR_STATUS_KERNEL_ERROR = 10,    /**< the kernel threw, or returned a failure of its own */
  WEIR_STATUS_DEVICE_ERROR = 11,    /**< a device failed */
  WEIR_STATUS_NETWORK_ERROR = 12,   /**< a link or a rank failed */
  WEIR_STATUS_INTERNAL = 13         /**< a bug in weir: please report it with the message */
} weir_status;

/** Returns the lower-case name of a status, "invalid_argument"; "unknown" for any other value. */
WEIR_API const char* weir_status_name(weir_status status);

/**
 * Returns the message of the last function that failed on the calling thread, "" when none has. The
 * text is valid until the next failing call on this thread; it is truncated to 2047 bytes.
 */
WEIR_API const char* weir_last_error(void);

#ifdef __cplusplus
}
#endif
