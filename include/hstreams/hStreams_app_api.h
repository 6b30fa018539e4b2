/* The app interface of hStreams: domains and streams in one call, and common actions. */
#ifndef __HSTR_APP_API_H__
#define __HSTR_APP_API_H__

#include <mkl.h>
#include <stdint.h>

#include "hStreams_common.h"
#include "hStreams_source.h"
#include "hStreams_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens the machine if it is not open, and divides each device into one logical domain of
 * streams_per_domain places with oversubscription streams each. Streams are numbered from 0: first
 * one for each place, then the streams that share a place with an earlier one.
 */
DllAccess HSTR_RESULT hStreams_app_init_in_version(uint32_t in_StreamsPerDomain,
                                                   uint32_t in_LogStreamOversubscription,
                                                   const char* interface_version);
static inline HSTR_RESULT hStreams_app_init(uint32_t in_StreamsPerDomain,
                                            uint32_t in_LogStreamOversubscription) {
  return hStreams_app_init_in_version(in_StreamsPerDomain, in_LogStreamOversubscription,
                                      HSTR_VERSION_STRING);
}
/** hStreams_app_init() for a number of logical domains, distributed over the devices, each with its
 * own number of places. Later calls add streams to these domains, whose number must be the same. */
DllAccess HSTR_RESULT hStreams_app_init_domains_in_version(uint32_t in_NumLogDomains,
                                                           uint32_t* in_pStreamsPerDomain,
                                                           uint32_t in_LogStreamOversubscription,
                                                           const char* interface_version);
static inline HSTR_RESULT hStreams_app_init_domains(uint32_t in_NumLogDomains,
                                                    uint32_t* in_pStreamsPerDomain,
                                                    uint32_t in_LogStreamOversubscription) {
  return hStreams_app_init_domains_in_version(in_NumLogDomains, in_pStreamsPerDomain,
                                              in_LogStreamOversubscription, HSTR_VERSION_STRING);
}
/** Is hStreams_Fini(). */
DllAccess HSTR_RESULT hStreams_app_fini(void);

/** Is hStreams_Alloc1D(). */
DllAccess HSTR_RESULT hStreams_app_create_buf(void* in_BufAddr, const uint64_t in_NumBytes);
/** Is hStreams_EnqueueData1D(). */
DllAccess HSTR_RESULT hStreams_app_xfer_memory(HSTR_LOG_STR in_LogStreamID, void* in_pWriteAddr,
                                               void* in_pReadAddr, uint64_t in_NumBytes,
                                               HSTR_XFER_DIRECTION in_XferDirection,
                                               HSTR_EVENT* out_pEvent);
/** Is hStreams_EnqueueCompute(). */
DllAccess HSTR_RESULT hStreams_app_invoke(HSTR_LOG_STR in_LogStreamID, const char* in_pFuncName,
                                          uint32_t in_NumScalarArgs, uint32_t in_NumHeapArgs,
                                          uint64_t* in_pArgs, HSTR_EVENT* out_pEvent,
                                          void* out_pReturnValue, uint16_t in_ReturnValueSize);
/** Is hStreams_StreamSynchronize(). */
DllAccess HSTR_RESULT hStreams_app_stream_sync(HSTR_LOG_STR in_LogStreamID);
/** Is hStreams_ThreadSynchronize(). */
DllAccess HSTR_RESULT hStreams_app_thread_sync(void);
/** Waits for all events as long as the options say. */
DllAccess HSTR_RESULT hStreams_app_event_wait(uint32_t in_NumEvents, HSTR_EVENT* in_pEvents);
/** Is hStreams_EventStreamWait(). */
DllAccess HSTR_RESULT hStreams_app_event_wait_in_stream(
    HSTR_LOG_STR in_LogStreamID, uint32_t in_NumEvents, HSTR_EVENT* in_pEvents,
    int32_t in_NumAddresses, void** in_pAddresses, HSTR_EVENT* out_pEvent);

/** Enqueues hStreams_memset_sink(): sets bytes at an address to a value. */
DllAccess HSTR_RESULT hStreams_app_memset(HSTR_LOG_STR in_LogStreamID, void* in_pWriteAddr,
                                          int in_Val, uint64_t in_NumBytes, HSTR_EVENT* out_pEvent);
/** Enqueues hStreams_memcpy_sink(): copies from the second argument to the third, as the library
 * of the time did. */
DllAccess HSTR_RESULT hStreams_app_memcpy(HSTR_LOG_STR in_LogStreamID, void* in_pReadAddr,
                                          void* in_pWriteAddr, uint64_t in_NumBytes,
                                          HSTR_EVENT* out_pEvent);

/** Enqueue C = alpha op(A) op(B) + beta C. alpha and beta are copied. */
DllAccess HSTR_RESULT hStreams_app_sgemm(HSTR_LOG_STR LogStream, const CBLAS_ORDER Order,
                                         const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB,
                                         const int64_t M, const int64_t N, const int64_t K,
                                         const float alpha, const float* A, const int64_t ldA,
                                         const float* B, const int64_t ldB, const float beta,
                                         float* C, const int64_t ldC, HSTR_EVENT* pEvent);
DllAccess HSTR_RESULT hStreams_app_dgemm(HSTR_LOG_STR LogStream, const CBLAS_ORDER Order,
                                         const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB,
                                         const int64_t M, const int64_t N, const int64_t K,
                                         const double alpha, const double* A, const int64_t ldA,
                                         const double* B, const int64_t ldB, const double beta,
                                         double* C, const int64_t ldC, HSTR_EVENT* pEvent);
DllAccess HSTR_RESULT hStreams_app_cgemm(HSTR_LOG_STR LogStream, const CBLAS_ORDER Order,
                                         const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB,
                                         const int64_t M, const int64_t N, const int64_t K,
                                         const void* alpha, const void* A, const int64_t ldA,
                                         const void* B, const int64_t ldB, const void* beta,
                                         void* C, const int64_t ldC, HSTR_EVENT* pEvent);
DllAccess HSTR_RESULT hStreams_app_zgemm(HSTR_LOG_STR LogStream, const CBLAS_ORDER Order,
                                         const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB,
                                         const int64_t M, const int64_t N, const int64_t K,
                                         const void* alpha, const void* A, const int64_t ldA,
                                         const void* B, const int64_t ldB, const void* beta,
                                         void* C, const int64_t ldC, HSTR_EVENT* pEvent);

#ifdef __cplusplus
}

/* The order of arguments before version 1.1. */
extern "C++" {

static inline HSTR_RESULT hStreams_app_xfer_memory(void* in_pReadAddr, void* in_pWriteAddr,
                                                   uint64_t in_NumBytes,
                                                   HSTR_LOG_STR in_LogStreamID,
                                                   HSTR_XFER_DIRECTION in_XferDirection,
                                                   HSTR_EVENT* out_pEvent) {
  return hStreams_app_xfer_memory(in_LogStreamID, in_pWriteAddr, in_pReadAddr, in_NumBytes,
                                  in_XferDirection, out_pEvent);
}
/* A template, so that the function above wins where a call suits both: when the last three
   arguments are NULL or 0, they mean the same in either order. */
template <class Char>
static inline HSTR_RESULT hStreams_app_invoke(HSTR_LOG_STR in_LogStreamID, const Char* in_pFuncName,
                                              uint32_t in_NumScalarArgs, uint32_t in_NumHeapArgs,
                                              uint64_t* in_pArgs, void* out_pReturnValue,
                                              uint32_t in_ReturnValueSize, HSTR_EVENT* out_pEvent) {
  return hStreams_EnqueueCompute(
      in_LogStreamID, in_pFuncName, in_NumScalarArgs, in_NumHeapArgs, in_pArgs, out_pEvent,
      out_pReturnValue,
      in_ReturnValueSize < UINT16_MAX ? (uint16_t)in_ReturnValueSize : (uint16_t)UINT16_MAX);
}
static inline HSTR_RESULT hStreams_app_memset(void* in_pWriteAddr, int in_Val, uint64_t in_NumBytes,
                                              HSTR_LOG_STR in_LogStreamID, HSTR_EVENT* out_pEvent) {
  return hStreams_app_memset(in_LogStreamID, in_pWriteAddr, in_Val, in_NumBytes, out_pEvent);
}
static inline HSTR_RESULT hStreams_app_memcpy(void* in_pReadAddr, void* in_pWriteAddr,
                                              uint64_t in_NumBytes, HSTR_LOG_STR in_LogStreamID,
                                              HSTR_EVENT* out_pEvent) {
  return hStreams_app_memcpy(in_LogStreamID, in_pReadAddr, in_pWriteAddr, in_NumBytes, out_pEvent);
}
static inline HSTR_RESULT hStreams_app_sgemm(const CBLAS_ORDER Order, const CBLAS_TRANSPOSE TransA,
                                             const CBLAS_TRANSPOSE TransB, const int32_t M,
                                             const int32_t N, const int32_t K, const float alpha,
                                             const float* A, const int32_t ldA, const float* B,
                                             const int32_t ldB, const float beta, float* C,
                                             const int32_t ldC, HSTR_LOG_STR LogStream,
                                             HSTR_EVENT* pEvent) {
  return hStreams_app_sgemm(LogStream, Order, TransA, TransB, (int64_t)M, (int64_t)N, (int64_t)K,
                            alpha, A, (int64_t)ldA, B, (int64_t)ldB, beta, C, (int64_t)ldC, pEvent);
}
static inline HSTR_RESULT hStreams_app_dgemm(const CBLAS_ORDER Order, const CBLAS_TRANSPOSE TransA,
                                             const CBLAS_TRANSPOSE TransB, const int32_t M,
                                             const int32_t N, const int32_t K, const double alpha,
                                             const double* A, const int32_t ldA, const double* B,
                                             const int32_t ldB, const double beta, double* C,
                                             const int32_t ldC, HSTR_LOG_STR LogStream,
                                             HSTR_EVENT* pEvent) {
  return hStreams_app_dgemm(LogStream, Order, TransA, TransB, (int64_t)M, (int64_t)N, (int64_t)K,
                            alpha, A, (int64_t)ldA, B, (int64_t)ldB, beta, C, (int64_t)ldC, pEvent);
}
static inline HSTR_RESULT hStreams_app_cgemm(const CBLAS_ORDER Order, const CBLAS_TRANSPOSE TransA,
                                             const CBLAS_TRANSPOSE TransB, const int32_t M,
                                             const int32_t N, const int32_t K, const void* alpha,
                                             const void* A, const int32_t ldA, const void* B,
                                             const int32_t ldB, const void* beta, void* C,
                                             const int32_t ldC, HSTR_LOG_STR LogStream,
                                             HSTR_EVENT* pEvent) {
  return hStreams_app_cgemm(LogStream, Order, TransA, TransB, (int64_t)M, (int64_t)N, (int64_t)K,
                            alpha, A, (int64_t)ldA, B, (int64_t)ldB, beta, C, (int64_t)ldC, pEvent);
}
static inline HSTR_RESULT hStreams_app_zgemm(const CBLAS_ORDER Order, const CBLAS_TRANSPOSE TransA,
                                             const CBLAS_TRANSPOSE TransB, const int32_t M,
                                             const int32_t N, const int32_t K, const void* alpha,
                                             const void* A, const int32_t ldA, const void* B,
                                             const int32_t ldB, const void* beta, void* C,
                                             const int32_t ldC, HSTR_LOG_STR LogStream,
                                             HSTR_EVENT* pEvent) {
  return hStreams_app_zgemm(LogStream, Order, TransA, TransB, (int64_t)M, (int64_t)N, (int64_t)K,
                            alpha, A, (int64_t)ldA, B, (int64_t)ldB, beta, C, (int64_t)ldC, pEvent);
}
}
#endif

#endif
