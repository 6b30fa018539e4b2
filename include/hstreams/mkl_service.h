/* Memory and threads as MKL's header of this name has them: MKL's own where it is found, otherwise
   functions for the BLAS of the program. */
#ifndef HSTREAMS_MKL_SERVICE_H
#define HSTREAMS_MKL_SERVICE_H

#pragma GCC system_header /* #include_next is an extension */

#if defined(__has_include_next)
#if __has_include_next(<mkl_service.h>)
#define HSTREAMS_MKL_SERVICE_IS_THERE
#endif
#endif

#ifdef HSTREAMS_MKL_SERVICE_IS_THERE

#include_next <mkl_service.h>

#else

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Allocates bytes at a multiple of alignment, a power of two; NULL when there is no memory. */
static inline void* mkl_malloc(size_t bytes, int alignment) {
  return memalign(alignment < (int)sizeof(void*) ? sizeof(void*) : (size_t)alignment, bytes);
}
/** The same for count elements, set to zero. */
static inline void* mkl_calloc(size_t count, size_t bytes, int alignment) {
  if (bytes != 0 && count > (size_t)-1 / bytes) return NULL;
  void* const memory = mkl_malloc(count * bytes, alignment);
  return memory == NULL ? NULL : memset(memory, 0, count * bytes);
}
static inline void mkl_free(void* memory) { free(memory); }
/** Do nothing: no work is offloaded behind the program's back. Return 0. */
static inline int mkl_mic_enable(void) { return 0; }
static inline int mkl_mic_disable(void) { return 0; }

/* NULL where the program's BLAS is not OpenBLAS. */
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int) __attribute__((weak));

/** Threads that a call of the program's BLAS takes; 1 with another BLAS than OpenBLAS. */
static inline int mkl_get_max_threads(void) {
  return openblas_get_num_threads != NULL ? openblas_get_num_threads() : 1;
}
/** Sets them, from 1. */
static inline void mkl_set_num_threads(int count) {
  if (openblas_set_num_threads != NULL && count > 0) openblas_set_num_threads(count);
}
/** Does nothing: the BLAS takes the threads that are set, never fewer. */
static inline void mkl_set_dynamic(int dynamic) { (void)dynamic; }

#define MKL_Get_Max_Threads mkl_get_max_threads
#define MKL_Set_Num_Threads mkl_set_num_threads
#define MKL_Set_Dynamic mkl_set_dynamic

#ifdef __cplusplus
}
#endif

#endif
#endif
