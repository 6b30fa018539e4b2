/* Sink functions that are always there. A function of the program with the same name goes first. */
#ifndef __HSTR_APP_API_SINK_H__
#define __HSTR_APP_API_SINK_H__

#include "hStreams_sink.h"

/** Copies bytes from source to target. */
HSTREAMS_EXPORT void hStreams_memcpy_sink(uint64_t bytes, uint64_t* source, uint64_t* target);
/** Sets bytes of target to the lowest byte of value. */
HSTREAMS_EXPORT void hStreams_memset_sink(uint64_t bytes, uint64_t value, uint64_t* target);
/** Does nothing. */
HSTREAMS_EXPORT void hStreams_null_func_1heap_arg(uint64_t address);

/**
 * C = alpha op(A) op(B) + beta C by CBLAS: order, transposition of A and of B, M, N, K, alpha, ldA,
 * ldB, beta, ldC, A, B, C. alpha and beta are the bits of their type.
 */
HSTREAMS_EXPORT void hStreams_sgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b,
                                         uint64_t m, uint64_t n, uint64_t k, uint64_t alpha,
                                         uint64_t ld_a, uint64_t ld_b, uint64_t beta, uint64_t ld_c,
                                         uint64_t a, uint64_t b, uint64_t c);
HSTREAMS_EXPORT void hStreams_dgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b,
                                         uint64_t m, uint64_t n, uint64_t k, uint64_t alpha,
                                         uint64_t ld_a, uint64_t ld_b, uint64_t beta, uint64_t ld_c,
                                         uint64_t a, uint64_t b, uint64_t c);
HSTREAMS_EXPORT void hStreams_cgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b,
                                         uint64_t m, uint64_t n, uint64_t k, uint64_t alpha,
                                         uint64_t ld_a, uint64_t ld_b, uint64_t beta, uint64_t ld_c,
                                         uint64_t a, uint64_t b, uint64_t c);
/** The same, alpha and beta taking two words each. */
HSTREAMS_EXPORT void hStreams_zgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b,
                                         uint64_t m, uint64_t n, uint64_t k, uint64_t alpha_real,
                                         uint64_t alpha_imag, uint64_t ld_a, uint64_t ld_b,
                                         uint64_t beta_real, uint64_t beta_imag, uint64_t ld_c,
                                         uint64_t a, uint64_t b, uint64_t c);

#endif
