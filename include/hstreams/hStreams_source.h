/* The core interface of hStreams, on weir.
 *
 * A program makes logical domains of the processors of physical ones, streams in them, and buffers
 * of its own memory, which get an instance in each logical domain. It names data by its own
 * addresses and sink functions by their names. Any thread may call anything between hStreams_Init()
 * and hStreams_Fini().
 *
 * Every function returns HSTR_RESULT_SUCCESS or says why it changed nothing; before hStreams_Init()
 * all that follow it return NOT_INITIALIZED.
 */
#ifndef __HSTR_SOURCE_H__
#define __HSTR_SOURCE_H__

#include <assert.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "hStreams_common.h"
#include "hStreams_types.h"
#include "hStreams_version.h"

/** Returns from the calling function with the result of a call that failed, and prints it. */
#define CHECK_HSTR_RESULT(func)                                         \
  {                                                                     \
    HSTR_RESULT hret = func;                                            \
    if (hret != HSTR_RESULT_SUCCESS) {                                  \
      printf("%s returned %s.\n", #func, hStreams_ResultGetName(hret)); \
      return hret;                                                      \
    }                                                                   \
  }

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Beginning, end and configuration ------------------------------------------------------- */

/**
 * Opens the machine for a program written for "pre1.0.0", "1.0", "1.1", "1.2" or "1.3"; NULL is the
 * newest. Any other version is OUT_OF_RANGE. Already open: SUCCESS. BAD_NAME when no list of sink
 * libraries for devices can be satisfied, DEVICE_NOT_INITIALIZED without a device.
 */
DllAccess HSTR_RESULT hStreams_InitInVersion(const char* interface_version);
static inline HSTR_RESULT hStreams_Init(void) {
  return hStreams_InitInVersion(HSTR_VERSION_STRING);
}
/** SUCCESS or NOT_INITIALIZED. */
DllAccess HSTR_RESULT hStreams_IsInitialized(void);
/** Waits for all enqueued actions, frees all objects, and resets options and libraries. */
DllAccess HSTR_RESULT hStreams_Fini(void);

/** Checks and copies options; those of sink libraries and phys_domains_limit matter to the next
 * hStreams_Init(). */
DllAccess HSTR_RESULT hStreams_SetOptions(const HSTR_OPTIONS* in_options);
/** Copies the options; their pointers are valid until they change. */
DllAccess HSTR_RESULT hStreams_GetCurrentOptions(HSTR_OPTIONS* pCurrentOptions, uint64_t buffSize);
/** Replaces the list of sink libraries for devices of a kind (KNC, KNL) or for the host (x86_64).
 */
DllAccess HSTR_RESULT hStreams_SetLibrariesToLoad(HSTR_ISA_TYPE isa, uint32_t numLibNames,
                                                  char** ppLibNames, int* pLibFlags);
/** Selects the messages to print, like the next two; only before hStreams_Init(). */
DllAccess HSTR_RESULT hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL level);
DllAccess HSTR_RESULT hStreams_Cfg_SetLogInfoType(uint64_t info_type_mask);
DllAccess HSTR_RESULT hStreams_Cfg_SetMKLInterface(HSTR_MKL_INTERFACE mkl);

/** Bytes of the version, with the final NUL. */
DllAccess HSTR_RESULT hStreams_GetVersionStringLen(uint32_t* pVersionStringLen);
DllAccess HSTR_RESULT hStreams_Version(char* buff, uint32_t buffLength);
/** Returns the name of the enumerator. */
DllAccess const char* hStreams_ResultGetName(HSTR_RESULT result);
/** Returns the last result of any call of any thread that was not SUCCESS. */
DllAccess HSTR_RESULT hStreams_GetLastError(void);
DllAccess void hStreams_ClearLastError(void);

DllAccess uint32_t hStreams_GetVerbose(void) HSTR_DEPRECATED("always 0");
DllAccess HSTR_RESULT hStreams_SetVerbose(int value)
    HSTR_DEPRECATED("no effect: use hStreams_Cfg_SetLogLevel()");
DllAccess int _hStreams_EmitMessage(HSTR_SEVERITY severity, const char* function,
                                    const char* format, ...) HSTR_DEPRECATED("no effect");

/* ---- Physical domains ------------------------------------------------------------------------ */

/** Returns the number of devices, of those in use, and whether these are identical, without the
 * host. */
DllAccess HSTR_RESULT hStreams_GetNumPhysDomains(uint32_t* out_NumPhysDomains,
                                                 uint32_t* out_NumActivePhysDomains,
                                                 bool* out_Homogeneous);
/**
 * Describes a device, or the host. It may report more threads than the machine has: streams run on
 * the cores that their mask folds onto. The masks may be NULL. Bit t of the memory types is type t.
 */
DllAccess HSTR_RESULT hStreams_GetPhysDomainDetails(
    HSTR_PHYS_DOM in_PhysDomain, uint32_t* out_NumThreads, HSTR_ISA_TYPE* out_ISA,
    uint32_t* out_CoreMaxMHz, HSTR_CPU_MASK out_MaxCPUmask, HSTR_CPU_MASK out_AvoidCPUmask,
    uint64_t* out_SupportedMemTypes, uint64_t out_PhysicalBytesPerMemType[HSTR_MEM_TYPE_SIZE]);
/** Returns the threads that no stream uses. */
DllAccess HSTR_RESULT hStreams_GetAvailable(HSTR_PHYS_DOM in_PhysDomainID,
                                            HSTR_CPU_MASK out_AvailableCPUmask);
/** Returns the number of streams on each thread; streams with the same domain and mask count once.
 */
DllAccess HSTR_RESULT hStreams_GetOversubscriptionLevel(HSTR_PHYS_DOM in_PhysDomainID,
                                                        uint32_t in_NumThreads,
                                                        uint32_t* out_pOversubscriptionArray);

/* ---- Logical domains and streams ------------------------------------------------------------- */

/**
 * Creates a logical domain from threads of a physical domain. Its threads must be the same as those
 * of another logical domain there, or disjoint: otherwise OVERLAPPING_RESOURCES. Domains are
 * numbered from 1.
 */
DllAccess HSTR_RESULT hStreams_AddLogDomain(HSTR_PHYS_DOM in_PhysDomainID, HSTR_CPU_MASK in_CPUmask,
                                            HSTR_LOG_DOM* out_pLogDomainID,
                                            HSTR_OVERLAP_TYPE* out_pOverlap);
/** Waits for the streams of the domains, and destroys the domains with their instances. */
DllAccess HSTR_RESULT hStreams_RmLogDomains(uint32_t in_NumLogDomains,
                                            HSTR_LOG_DOM* in_pLogDomainIDs);
DllAccess HSTR_RESULT hStreams_GetNumLogDomains(HSTR_PHYS_DOM in_PhysDomainID,
                                                uint32_t* out_pNumLogDomains);
/** Writes as many ids as fit. Returns NOT_FOUND or INCONSISTENT_ARGS if there are fewer or more ids
 * than in_NumLogDomains. */
DllAccess HSTR_RESULT hStreams_GetLogDomainIDList(HSTR_PHYS_DOM in_PhysDomainID,
                                                  uint32_t in_NumLogDomains,
                                                  HSTR_LOG_DOM* out_pLogDomainIDs);
DllAccess HSTR_RESULT hStreams_GetLogDomainDetails(HSTR_LOG_DOM in_LogDomainID,
                                                   HSTR_PHYS_DOM* out_pPhysDomainID,
                                                   HSTR_CPU_MASK out_CPUmask);

/** Creates a stream under the program's number, and its OpenMP threads. Streams of one domain with
 * the same mask share a queue. */
DllAccess HSTR_RESULT hStreams_StreamCreate(HSTR_LOG_STR in_LogStreamID,
                                            HSTR_LOG_DOM in_LogDomainID,
                                            const HSTR_CPU_MASK in_CPUmask);
/** Destroys a stream; for the last stream of its queue, waits for the actions of the queue. */
DllAccess HSTR_RESULT hStreams_StreamDestroy(HSTR_LOG_STR in_LogStreamID);
DllAccess HSTR_RESULT hStreams_GetNumLogStreams(HSTR_LOG_DOM in_LogDomainID,
                                                uint32_t* out_pNumLogStreams);
/** As hStreams_GetLogDomainIDList(). */
DllAccess HSTR_RESULT hStreams_GetLogStreamIDList(HSTR_LOG_DOM in_LogDomainID,
                                                  uint32_t in_NumLogStreams,
                                                  HSTR_LOG_STR* out_pLogStreamIDs);
/** The domain is ignored. */
DllAccess HSTR_RESULT hStreams_GetLogStreamDetails(HSTR_LOG_STR in_LogStreamID,
                                                   HSTR_LOG_DOM in_LogDomainID,
                                                   HSTR_CPU_MASK out_CPUmask);

/* ---- Actions --------------------------------------------------------------------------------- */

/**
 * Enqueues a call of a sink function with scalars, then addresses, HSTR_ARGS_SUPPORTED at most.
 * Addresses are translated to the instances of the stream's domain. The function is looked up now
 * (BAD_NAME): in the sink libraries, in the program, then among the built-in ones. A return value
 * of the function is written to out_ReturnValue; it is valid when the event is complete.
 */
DllAccess HSTR_RESULT hStreams_EnqueueCompute(HSTR_LOG_STR in_LogStreamID,
                                              const char* in_pFunctionName,
                                              uint32_t in_NumScalarArgs, uint32_t in_NumHeapArgs,
                                              uint64_t* in_pArgs, HSTR_EVENT* out_pEvent,
                                              void* out_ReturnValue, uint16_t in_ReturnValueSize);
/** Enqueues a copy between the program's memory and the instance of the stream's domain. */
DllAccess HSTR_RESULT hStreams_EnqueueData1D(HSTR_LOG_STR in_LogStreamID, void* in_pWriteAddr,
                                             void* in_pReadAddr, uint64_t in_size,
                                             HSTR_XFER_DIRECTION in_XferDirection,
                                             HSTR_EVENT* out_pEvent);
/** Enqueues a copy between two domains, one of them that of the stream. Between devices without a
 * link it is staged through host memory. */
DllAccess HSTR_RESULT hStreams_EnqueueDataXDomain1D(HSTR_LOG_STR in_LogStreamID,
                                                    void* in_pWriteAddr, void* in_pReadAddr,
                                                    uint64_t in_size, HSTR_LOG_DOM in_destLogDomain,
                                                    HSTR_LOG_DOM in_srcLogDomain,
                                                    HSTR_EVENT* out_pEvent);
/**
 * Enqueues a wait, in the stream, for events, and makes later actions wait for it: all of them with
 * HSTR_WAIT_CONTROL and no addresses, none with HSTR_WAIT_NONE, or those that access the buffers of
 * the addresses. Without events it waits for all earlier actions.
 */
DllAccess HSTR_RESULT hStreams_EventStreamWait(HSTR_LOG_STR in_LogStreamID, uint32_t in_NumEvents,
                                               HSTR_EVENT* in_pEvents, int32_t in_NumAddresses,
                                               void** in_pAddresses, HSTR_EVENT* out_pEvent);

/* ---- Waits ----------------------------------------------------------------------------------- */

/** Waits for a stream, or for all, up to the timeout of the options (TIME_OUT_REACHED). */
DllAccess HSTR_RESULT hStreams_StreamSynchronize(HSTR_LOG_STR in_LogStreamID);
DllAccess HSTR_RESULT hStreams_ThreadSynchronize(void);
/**
 * Waits for all events, or for one; 0 ms polls, -1 waits for ever. The last two arguments, if not
 * NULL, receive the number of complete events and their indices in ascending order, also when the
 * wait ends with TIME_OUT_REACHED or because an action failed. An unknown event counts as complete.
 */
DllAccess HSTR_RESULT hStreams_EventWait(uint32_t in_NumEvents, HSTR_EVENT* in_pEvents,
                                         bool in_WaitForAll, int32_t in_TimeOutMilliSeconds,
                                         uint32_t* out_pNumSignaled,
                                         uint32_t* out_pSignaledIndices);

/* ---- Buffers --------------------------------------------------------------------------------- */

/** Wraps the program's memory in a buffer with an instance in every logical domain; the call
 * allocates the memory of the instances as far as there is room. */
DllAccess HSTR_RESULT hStreams_Alloc1D(void* in_BaseAddress, uint64_t in_Size);
/** hStreams_Alloc1D() with properties, in the listed domains; -1: in all, 0: only in the program's.
 */
DllAccess HSTR_RESULT hStreams_Alloc1DEx(void* in_BaseAddress, uint64_t in_Size,
                                         HSTR_BUFFER_PROPS* in_pBufferProps,
                                         int64_t in_NumLogDomains, HSTR_LOG_DOM* in_pLogDomainIDs);
DllAccess HSTR_RESULT hStreams_AddBufferLogDomains(void* in_Address, uint64_t in_NumLogDomains,
                                                   HSTR_LOG_DOM* in_pLogDomainIDs);
/** Waits for the actions on the instances, then removes them; -1: all, also the program's. */
DllAccess HSTR_RESULT hStreams_RmBufferLogDomains(void* in_Address, int64_t in_NumLogDomains,
                                                  HSTR_LOG_DOM* in_pLogDomainIDs);
/** Waits for the actions on a buffer and destroys it. The program's memory does not change. */
DllAccess HSTR_RESULT hStreams_DeAlloc(void* in_Address);
/** Number of domains with an instance, except the program's own. */
DllAccess HSTR_RESULT hStreams_GetBufferNumLogDomains(void* in_Address,
                                                      uint64_t* out_NumLogDomains);
DllAccess HSTR_RESULT hStreams_GetBufferLogDomains(void* in_Address, uint64_t in_NumLogDomains,
                                                   HSTR_LOG_DOM* out_pLogDomains,
                                                   uint64_t* out_pNumLogDomains);
DllAccess HSTR_RESULT hStreams_GetBufferProps(void* in_Address, HSTR_BUFFER_PROPS* out_pProps);

/* ---- Masks ----------------------------------------------------------------------------------- */

/** Non-zero when the bit is set; bits from 1024 on are not. */
static inline uint64_t HSTR_CPU_MASK_ISSET(int bit, const HSTR_CPU_MASK mask) {
  if (bit < 0 || bit >= 1024) return 0;
  return mask[bit / 64] & ((uint64_t)1 << (bit % 64));
}
/** Sets a bit, of which there are 1024. */
static inline void HSTR_CPU_MASK_SET(int bit, HSTR_CPU_MASK mask) {
  if (bit >= 0 && bit < 1024) mask[bit / 64] |= (uint64_t)1 << (bit % 64);
}
static inline void HSTR_CPU_MASK_ZERO(HSTR_CPU_MASK mask) {
  for (int i = 0; i < 16; ++i) mask[i] = 0;
}
static inline void HSTR_CPU_MASK_AND(HSTR_CPU_MASK dst, const HSTR_CPU_MASK a,
                                     const HSTR_CPU_MASK b) {
  for (int i = 0; i < 16; ++i) dst[i] = a[i] & b[i];
}
static inline void HSTR_CPU_MASK_OR(HSTR_CPU_MASK dst, const HSTR_CPU_MASK a,
                                    const HSTR_CPU_MASK b) {
  for (int i = 0; i < 16; ++i) dst[i] = a[i] | b[i];
}
static inline void HSTR_CPU_MASK_XOR(HSTR_CPU_MASK dst, const HSTR_CPU_MASK a,
                                     const HSTR_CPU_MASK b) {
  for (int i = 0; i < 16; ++i) dst[i] = a[i] ^ b[i];
}
static inline int HSTR_CPU_MASK_COUNT(const HSTR_CPU_MASK mask) {
  int count = 0;
  for (int i = 0; i < 16; ++i) count += __builtin_popcountll(mask[i]);
  return count;
}
static inline int HSTR_CPU_MASK_EQUAL(const HSTR_CPU_MASK a, const HSTR_CPU_MASK b) {
  return memcmp(a, b, sizeof(HSTR_CPU_MASK)) == 0;
}
/** Converts from and to the system's sets. */
static inline void HSTR_CPU_MASK_XLATE(HSTR_CPU_MASK dest, const cpu_set_t* src) {
  memcpy(dest, src, sizeof(HSTR_CPU_MASK));
}
static inline void HSTR_CPU_MASK_XLATE_EX(cpu_set_t* dest, const HSTR_CPU_MASK src) {
  memcpy(dest, src, sizeof(HSTR_CPU_MASK));
}

#ifdef __cplusplus
}
#endif

#endif
