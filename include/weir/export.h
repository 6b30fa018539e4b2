/* Visibility of the public symbols: everything else in the library is hidden. */
#pragma once

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(format_index, first_argument) \
  __attribute__((format(printf, format_index, first_argument)))
#else
#define WEIR_API
#define WEIR_PRINTF(format_index, first_argument)
#endif
