/* Checks for the C tests: a failed one is printed and counted, and the test goes on. */
#pragma once

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

/** Ends a wait that should have ended long before, in nanoseconds. */
#define SOON INT64_C(20000000000)

static int check_failures;

#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ++check_failures;                                                \
    }                                                                  \
  } while (0)

/** The call succeeds. */
#define CHECK_OK(call) check_status(__FILE__, __LINE__, #call, (call), WEIR_STATUS_OK, NULL)

/** The call fails with this status and a message that names the object. */
#define CHECK_FAILS(call, status, object) \
  check_status(__FILE__, __LINE__, #call, (call), (status), (object))

/** The call fails as an invalid argument and names the object. */
#define CHECK_REFUSED(call, object) CHECK_FAILS(call, WEIR_STATUS_INVALID_ARGUMENT, object)

/** The text holds the words. */
#define CHECK_CONTAINS(text, words) check_contains(__FILE__, __LINE__, (text), (words))

/** Runs a test function and says its name. */
#define RUN(test)                                                             \
  do {                                                                        \
    const int before = check_failures;                                        \
    (test)();                                                                 \
    printf("%s %s\n", check_failures == before ? "ok    " : "FAILED", #test); \
    fflush(stdout);                                                           \
  } while (0)

static inline void check_contains(const char* file, int line, const char* text, const char* words) {
  if (strstr(text, words) != NULL) return;
  printf("%s:%d: \"%s\" does not name \"%s\"\n", file, line, text, words);
  ++check_failures;
}

/** A message is one line that does not start like a sentence. */
static inline void check_message(const char* file, int line, const char* message) {
  const bool good = *message != '\0' && strchr(message, '\n') == NULL &&
                    !isupper((unsigned char)*message) && message[strlen(message) - 1] != '.';
  if (good) return;
  printf("%s:%d: not one lower-case line: \"%s\"\n", file, line, message);
  ++check_failures;
}

static inline void check_status(const char* file, int line, const char* call, weir_status status,
                                weir_status wanted, const char* object) {
  if (status != wanted) {
    printf("%s:%d: %s is %s, not %s (%s)\n", file, line, call, weir_status_name(status),
           weir_status_name(wanted), weir_last_error());
    ++check_failures;
    return;
  }
  if (wanted == WEIR_STATUS_OK) return;
  check_message(file, line, weir_last_error());
  if (object != NULL) check_contains(file, line, weir_last_error(), object);
}
