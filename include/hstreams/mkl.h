/* MKL's names for clients of the hStreams app API: MKL itself where its header is found, otherwise
   CBLAS and LAPACKE of another library, and what little else programs of the time use. */
#ifndef HSTREAMS_MKL_H
#define HSTREAMS_MKL_H

#pragma GCC system_header /* #include_next is an extension */

#if defined(__has_include_next)
#if __has_include_next(<mkl.h>)
#define HSTREAMS_MKL_IS_THERE
#endif
#endif

#ifdef HSTREAMS_MKL_IS_THERE

#include_next <mkl.h>

#else

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SSE__)
#include <mm_malloc.h>
#else
#define _mm_malloc(bytes, alignment) memalign(alignment, bytes)
#define _mm_free free
#endif

#define MKL_INT int
#define MKL_UINT unsigned int
typedef struct MKL_Complex8 {
  float real, imag;
} MKL_Complex8;
typedef struct MKL_Complex16 {
  double real, imag;
} MKL_Complex16;

/* Structures for complex numbers: <complex.h> would take the name I from programs. */
#define FORCE_OPENBLAS_COMPLEX_STRUCT
#include <cblas.h>

#if __has_include(<lapacke.h>)
#ifndef LAPACK_COMPLEX_CUSTOM
#define LAPACK_COMPLEX_CUSTOM
#define lapack_complex_float MKL_Complex8
#define lapack_complex_double MKL_Complex16
#endif
#include <lapacke.h>
#endif

#endif

#include <mkl_service.h>

#endif
