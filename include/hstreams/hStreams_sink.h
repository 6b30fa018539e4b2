/* For code with sink functions: void f(uint64_t scalar, ..., T* data, ...). */
#ifndef __HSTR_SINK_H__
#define __HSTR_SINK_H__

#include "hStreams_common.h"
#include "hStreams_types.h"
#include "hStreams_version.h"

/**
 * Makes a function one that streams can call by its name. It gets scalars, then addresses, each a
 * 64-bit integer or a pointer. One that returns a value declares 19 words (or all it is given, if
 * more), then void* and uint16_t, and copies its result there.
 */
#define HSTREAMSNATIVELIBEXPORT_VISIBILITY "default"
#ifdef __cplusplus
#define HSTREAMSNATIVELIBEXPORT \
  extern "C" __attribute__((visibility(HSTREAMSNATIVELIBEXPORT_VISIBILITY)))
#else
#define HSTREAMSNATIVELIBEXPORT __attribute__((visibility(HSTREAMSNATIVELIBEXPORT_VISIBILITY)))
#endif
#define HSTREAMS_EXPORT HSTREAMSNATIVELIBEXPORT

#endif
