/* Types of the hStreams interface: handles are numbers, enumerations are int. */
#ifndef __HSTR_TYPES_H__
#define __HSTR_TYPES_H__

#include <stdint.h>
#include <wchar.h>

#include "hStreams_version.h"

#define HSTR_DEPRECATED(message) __attribute__((deprecated(message)))

/** A stream, under the number that the program gave it. */
typedef uint64_t HSTR_LOG_STR;
/** A logical domain: processors of a physical domain, with an instance of each buffer. */
typedef uint32_t HSTR_LOG_DOM;
/** A physical domain: HSTR_SRC_PHYS_DOMAIN is the host, 0 and up are devices. */
typedef int32_t HSTR_PHYS_DOM;
/** A set of the numbers 0 to 1023 of hardware threads. */
typedef uint64_t HSTR_CPU_MASK[16];

/** How the processors of two domains or streams meet. */
typedef int HSTR_OVERLAP_TYPE;
typedef enum {
  HSTR_NO_OVERLAP = 0,
  HSTR_EXACT_OVERLAP = 1,
  HSTR_PARTIAL_OVERLAP = 2
} HSTR_OVERLAP_TYPE_VALUES;

/** What every function returns. */
typedef int HSTR_RESULT;
typedef enum {
  HSTR_RESULT_SUCCESS = 0,
  HSTR_RESULT_REMOTE_ERROR = 1, /**< a domain, its driver or a sink function failed */
  HSTR_RESULT_NOT_INITIALIZED = 2,
  HSTR_RESULT_NOT_FOUND = 3,
  HSTR_RESULT_ALREADY_FOUND = 4,
  HSTR_RESULT_OUT_OF_RANGE = 5,
  HSTR_RESULT_DOMAIN_OUT_OF_RANGE = 6,
  HSTR_RESULT_CPU_MASK_OUT_OF_RANGE = 7,
  HSTR_RESULT_OUT_OF_MEMORY = 8,
  HSTR_RESULT_INVALID_STREAM_TYPE = 9, /**< never returned */
  HSTR_RESULT_OVERLAPPING_RESOURCES = 10,
  HSTR_RESULT_DEVICE_NOT_INITIALIZED = 11, /**< no device, or no device can be opened */
  HSTR_RESULT_BAD_NAME = 12,
  HSTR_RESULT_TOO_MANY_ARGS = 13,
  HSTR_RESULT_TIME_OUT_REACHED = 14,
  HSTR_RESULT_EVENT_CANCELED = 15, /**< the action depends on one that failed, and never ran */
  HSTR_RESULT_INCONSISTENT_ARGS = 16,
  HSTR_RESULT_BUFF_TOO_SMALL = 17,
  HSTR_RESULT_MEMORY_OPERAND_INCONSISTENT = 18, /**< never returned */
  HSTR_RESULT_NULL_PTR = 19,
  HSTR_RESULT_INTERNAL_ERROR = 20, /**< a bug in weir */
  HSTR_RESULT_RESOURCE_EXHAUSTED = 21,
  HSTR_RESULT_NOT_IMPLEMENTED = 22,
  HSTR_RESULT_NOT_PERMITTED = 23,
  HSTR_RESULT_SIZE = 24
} HSTR_RESULT_VALUES;

/** Kinds of messages, for the mask of hStreams_Cfg_SetLogInfoType(). */
typedef int64_t HSTR_INFO_TYPE;
typedef enum {
  DEPRECATED_HSTR_INFO_TYPE_ALWAYSEMIT = 0,
  DEPRECATED_HSTR_INFO_TYPE_TRACE = 1,
  DEPRECATED_HSTR_INFO_TYPE_INVOKE = 2,
  DEPRECATED_HSTR_INFO_TYPE_DEPS = 4,
  DEPRECATED_HSTR_INFO_TYPE_GENERAL = 7,
  DEPRECATED_HSTR_INFO_TYPE_AND16 = 16,
  HSTR_INFO_TYPE_TRACE = 32,       /**< calls and their arguments */
  HSTR_INFO_TYPE_SINK_INVOKE = 64, /**< sink functions */
  HSTR_INFO_TYPE_MEM = 128,        /**< buffers and transfers */
  HSTR_INFO_TYPE_SYNC = 256,       /**< events and waits */
  HSTR_INFO_TYPE_MISC = 512        /**< everything else */
} HSTR_INFO_TYPE_VALUES;

#define HSTR_DEPRECATED_INFO_TYPE_(name)                                                      \
  static const HSTR_INFO_TYPE_VALUES HSTR_INFO_TYPE_##name HSTR_DEPRECATED(                   \
      "weir ignores it: use TRACE, SINK_INVOKE, MEM, SYNC or MISC") __attribute__((unused)) = \
      DEPRECATED_HSTR_INFO_TYPE_##name
HSTR_DEPRECATED_INFO_TYPE_(ALWAYSEMIT);
HSTR_DEPRECATED_INFO_TYPE_(INVOKE);
HSTR_DEPRECATED_INFO_TYPE_(DEPS);
HSTR_DEPRECATED_INFO_TYPE_(GENERAL);
HSTR_DEPRECATED_INFO_TYPE_(AND16);
#undef HSTR_DEPRECATED_INFO_TYPE_

/** Deprecated: messages have an HSTR_LOG_LEVEL. */
typedef enum {
  HSTR_SEVERITY_INFO = 0,
  HSTR_SEVERITY_WARNING = 1,
  HSTR_SEVERITY_ERROR = 2,
  HSTR_SEVERITY_FATAL_ERROR = 3
} HSTR_SEVERITY;

/** Messages of this level and of those below are printed: up to WARN on stderr, others on stdout.
 */
typedef int32_t HSTR_LOG_LEVEL;
typedef enum {
  HSTR_LOG_LEVEL_NO_LOGGING = 0,
  HSTR_LOG_LEVEL_FATAL_ERROR = 1,
  HSTR_LOG_LEVEL_ERROR = 2, /**< every call that fails (default) */
  HSTR_LOG_LEVEL_WARN = 3,
  HSTR_LOG_LEVEL_LOG = 4,    /**< beginning and end */
  HSTR_LOG_LEVEL_DEBUG1 = 5, /**< every call */
  HSTR_LOG_LEVEL_DEBUG2 = 6, /**< with its arguments */
  HSTR_LOG_LEVEL_DEBUG3 = 7, /**< domains, streams, libraries and functions found */
  HSTR_LOG_LEVEL_DEBUG4 = 8
} HSTR_LOG_LEVEL_VALUES;

/** What orders the actions of a stream. */
typedef int HSTR_DEP_POLICY;
typedef enum {
  HSTR_DEP_POLICY_CONSERVATIVE = 0, /**< each waits for the one before it */
  HSTR_DEP_POLICY_BUFFERS = 1,      /**< computes run in order, transfers where buffers allow */
  HSTR_DEP_POLICY_NONE = 2,         /**< nothing, and waits do not wait: to find bugs only */
  HSTR_DEP_POLICY_SIZE = 3
} HSTR_DEP_POLICY_VALUES;

/** Checked, otherwise ignored: threads of OpenMP are bound compactly. */
typedef int HSTR_KMP_AFFINITY;
typedef enum {
  HSTR_KMP_AFFINITY_BALANCED = 0,
  HSTR_KMP_AFFINITY_COMPACT = 1,
  HSTR_KMP_AFFINITY_SCATTER = 2,
  HSTR_KMP_AFFINITY_SIZE = 3
} HSTR_KMP_AFFINITY_VALUES;

/** How many OpenMP threads a sink function gets. */
typedef int HSTR_OPENMP_POLICY;
typedef enum {
  HSTR_OPENMP_ON_DEMAND = 0, /**< as many as OpenMP takes in this program */
  HSTR_OPENMP_PRE_SETUP = 1, /**< one for each core of the stream (default) */
  HSTR_OPENMP_POLICY_SIZE = 2
} HSTR_OPENMP_POLICY_VALUES;

typedef int HSTR_MEM_TYPE;
typedef enum {
  HSTR_MEM_TYPE_ANY = -1,
  HSTR_MEM_TYPE_NORMAL = 0,
  HSTR_MEM_TYPE_HBW = 1, /**< high bandwidth */
  HSTR_MEM_TYPE_SIZE = 2
} HSTR_MEM_TYPE_VALUES;

typedef int HSTR_XFER_DIRECTION;
typedef enum { HSTR_SINK_TO_SRC = 0, HSTR_SRC_TO_SINK = 1 } HSTR_XFER_DIRECTION_VALUES;

typedef int HSTR_ISA_TYPE;
typedef enum {
  HSTR_ISA_INVALID = 0,
  HSTR_ISA_x86_64 = 1,
  HSTR_ISA_MIC = 2,
  HSTR_ISA_KNF = 3,
  HSTR_ISA_KNC = 4,
  HSTR_ISA_KNL = 5
} HSTR_ISA_TYPE_VALUES;

/** Bits of HSTR_BUFFER_PROPS::flags. */
typedef int HSTR_BUFFER_PROP_FLAGS;
typedef enum {
  HSTR_BUF_PROP_ALIASED = 1,     /**< one instance for all logical domains of a physical one */
  HSTR_BUF_PROP_SRC_PINNED = 2,  /**< accepted; weir pins what a device needs */
  HSTR_BUF_PROP_INCREMENTAL = 4, /**< logical domains that are added later get an instance, too */
  HSTR_BUF_PROP_AFFINITIZED = 8, /**< memory appears near the cores that first use it */
  HSTR_BUF_PROP_INVALID_VALUE = 16
} HSTR_BUFFER_PROP_FLAGS_VALUES;

typedef int HSTR_MEM_ALLOC_POLICY;
typedef enum {
  HSTR_MEM_ALLOC_PREFERRED = 0, /**< other memory when the type cannot be had */
  HSTR_MEM_ALLOC_STRICT = 1,    /**< OUT_OF_MEMORY then */
  HSTR_MEM_ALLOC_POLICY_SIZE = 2
} HSTR_MEM_ALLOC_POLICY_VALUES;

/** Integers of the BLAS behind the built-in gemm functions. */
typedef int HSTR_MKL_INTERFACE;
typedef enum {
  HSTR_MKL_LP64 = 0,
  HSTR_MKL_ILP64 = 1,
  HSTR_MKL_NONE = 2, /**< there are no built-in gemm functions */
  HSTR_MKL_INTERFACE_SIZE = 3
} HSTR_MKL_INTERFACE_VALUES;

typedef void (*hStreams_FatalError_Prototype_Fptr)(int);

typedef struct HSTR_OPTIONS {
  /** Deprecated, never called. */
  int (*_hStreams_EmitMessage)(HSTR_SEVERITY, const char*, const char*, ...);
  hStreams_FatalError_Prototype_Fptr _hStreams_FatalError; /**< never called; must not be NULL */
  uint32_t verbose;                                        /**< deprecated, ignored */
  HSTR_KMP_AFFINITY kmp_affinity;
  HSTR_DEP_POLICY dep_policy;
  uint32_t phys_domains_limit; /**< devices to use at most */
  HSTR_OPENMP_POLICY openmp_policy;
  int time_out_ms_val; /**< of synchronisations, in ms; -1: none */
  uint16_t libNameCnt; /**< sink libraries for devices */
  int* libFlags;
  char** libNames;
  uint16_t libNameCntHost; /**< sink libraries for the host */
  char** libNamesHost;
} HSTR_OPTIONS;

typedef struct HSTR_BUFFER_PROPS {
  HSTR_MEM_TYPE mem_type;
  HSTR_MEM_ALLOC_POLICY mem_alloc_policy;
  uint64_t flags;
} HSTR_BUFFER_PROPS;

/** The completion of one action. A value: copy it, wait for it as often as you like. */
typedef struct HSTR_EVENT {
  uint64_t opaque[2];
} HSTR_EVENT;

#endif
