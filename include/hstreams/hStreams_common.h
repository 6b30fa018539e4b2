/* Limits and special values of the hStreams interface. */
#ifndef __HSTR_COMMON_H__
#define __HSTR_COMMON_H__

#include "hStreams_types.h"
#include "hStreams_version.h"

#define DllAccess

#define HSTR_WAIT_CONTROL 0 /* addresses of a stream wait: order everything */
#define HSTR_WAIT_NONE -1   /* order nothing, only make an event */
#define HSTR_TIME_INFINITE -1
#define HSTR_SRC_PHYS_DOMAIN -1
#define HSTR_SRC_LOG_DOMAIN 0

#define HSTR_RETURN_SIZE_LIMIT 64
#define HSTR_ARGS_IMPLEMENTED 19
#define HSTR_MAX_FUNC_NAME_SIZE 80
#define HSTR_MISC_DATA_SIZE 4096
#define HSTR_ARGS_SUPPORTED (HSTR_MISC_DATA_SIZE - HSTR_MAX_FUNC_NAME_SIZE) / sizeof(uint64_t)

/** An event that is complete. */
#define HSTR_EVENT_INITIALIZER \
  {                            \
    { 0, (uint64_t)-1 }        \
  }
/** What hStreams_Alloc1D() takes. */
#define HSTR_BUFFER_PROPS_INITIAL_VALUES \
  { HSTR_MEM_TYPE_NORMAL, HSTR_MEM_ALLOC_PREFERRED, HSTR_BUF_PROP_SRC_PINNED }
/** What hStreams_Alloc1DEx() takes without properties. */
#define HSTR_BUFFER_PROPS_INITIAL_VALUES_EX \
  { HSTR_MEM_TYPE_NORMAL, HSTR_MEM_ALLOC_PREFERRED, 0 }

#endif
