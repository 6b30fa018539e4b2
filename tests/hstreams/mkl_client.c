/* Threads of the program's BLAS by MKL's names. */
#include <mkl_service.h>

#include <hStreams_app_api.h>

#include "check.h"

int main(void) {
  MKL_INT n = 3;
  double x[3] = {1, 2, 3};
  mkl_set_dynamic(0);
  mkl_set_num_threads(1);
  CHECK(mkl_get_max_threads() == 1);
  MKL_Set_Num_Threads(3);
  CHECK(mkl_get_max_threads() == (openblas_set_num_threads != NULL ? 3 : 1));
  mkl_set_num_threads(0);
  CHECK(MKL_Get_Max_Threads() == (openblas_set_num_threads != NULL ? 3 : 1));
  CHECK(cblas_ddot(n, x, 1, x, 1) == 14);
  return 0;
}
