/* Events: each completes exactly once, with a status. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/runtime.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The completion of one action. A value: copy it, keep it, and wait for it as often as you like;
 * there is nothing to free. An event is valid until its runtime is destroyed, and only in that
 * runtime. The null event (all zero) is complete.
 */
typedef struct weir_event {
  uint64_t opaque[2];
} weir_event;
#define WEIR_EVENT_INIT \
  {                     \
    { 0, 0 }            \
  }

typedef enum weir_wait_mode {
  WEIR_WAIT_MODE_ALL = 0, /**< until every event is complete */
  WEIR_WAIT_MODE_ANY = 1  /**< until one is complete */
} weir_wait_mode;

/**
 * Waits for events on the calling thread.
 *
 * With MODE_ALL returns the status of the first event of the list that is not OK, with MODE_ANY the
 * status of the completed event of lowest index, which *out_index (may be NULL) receives.
 * TIMEOUT when the deadline passes first; a timeout of 0 polls. count 0 returns at once.
 * Refused with BUSY inside a kernel or a callback, which would block the place it runs on.
 */
WEIR_API weir_status weir_event_wait(weir_runtime* runtime, const weir_event* events, size_t count,
                                     weir_wait_mode mode, int64_t timeout_ns, size_t* out_index);

/** State of an event. */
typedef struct weir_event_info {
  size_t struct_size;
  bool complete;
  weir_status status; /**< final status; OK while not complete */
  char message[256];  /**< of a failure, naming the root action; "" otherwise */
} weir_event_info;
#define WEIR_EVENT_INFO_INIT \
  { sizeof(weir_event_info), false, WEIR_STATUS_OK, "" }

/** Reads the state of an event without waiting. weir keeps the last million failures; an event with
 * an older failure reports OK. */
WEIR_API weir_status weir_event_get_info(weir_runtime* runtime, const weir_event* event,
                                         weir_event_info* out_info);

/** Called once when an event is complete. message, "" when status is OK, is valid during the call.
 */
typedef void (*weir_event_callback)(weir_status status, const char* message, void* payload);

/**
 * Calls callback(status, message, payload) when the event is complete, at once if it already is. It
 * runs on the thread that completed the action, which may be one that waits for another event, and
 * holds no lock of weir; it may enqueue, but not wait.
 */
WEIR_API weir_status weir_event_on_complete(weir_runtime* runtime, const weir_event* event,
                                            weir_event_callback callback, void* payload);

#ifdef __cplusplus
}
#endif
