/* What sink code of the time takes from COI: the mark of a function that a stream can call, macros
   for parameters without a use, and the headers of the C library that COI's own includes. */
#ifndef COIMACROS_COMMON_H
#define COIMACROS_COMMON_H

#include <sched.h>
#include <string.h>

#include "COITypes_common.h"

#define COINATIVELIBEXPORT_VISIBILITY "default"
#ifdef __cplusplus
#define COINATIVELIBEXPORT extern "C" __attribute__((visibility(COINATIVELIBEXPORT_VISIBILITY)))
#else
#define COINATIVELIBEXPORT __attribute__((visibility(COINATIVELIBEXPORT_VISIBILITY)))
#endif

#define UNUSED_ATTR __attribute__((unused))
#ifndef UNREFERENCED_PARAM
#define UNREFERENCED_PARAM(parameter) ((void)(parameter))
#endif
#ifndef UNREFERENCED_CONST_PARAM
#define UNREFERENCED_CONST_PARAM(parameter) ((void)(parameter))
#endif

#endif
