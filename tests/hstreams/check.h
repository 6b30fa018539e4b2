/* How clients say that something is wrong: they print where and end with 1. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

#define EXPECT(call, wanted)                                                                    \
  do {                                                                                          \
    const HSTR_RESULT got_ = (call);                                                            \
    if (got_ != HSTR_RESULT_##wanted) {                                                         \
      fprintf(stderr, "%s:%d: %s returned %s, not HSTR_RESULT_%s\n", __FILE__, __LINE__, #call, \
              hStreams_ResultGetName(got_), #wanted);                                           \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

#define OK(call) EXPECT(call, SUCCESS)
