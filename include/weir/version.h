/* Version of the library. */
#pragma once

#include <weir/export.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION_STRING "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the version of the loaded library, "MAJOR.MINOR.PATCH"; compare with
 * WEIR_VERSION_STRING. */
WEIR_API const char* weir_version(void);

#ifdef __cplusplus
}
#endif
