/* A rank that starts and ends MPI itself, and does not close the fabric. */
#include <stdio.h>

#ifndef WEIR_MPI_HEADER
#define WEIR_MPI_HEADER <mpi.h>
#endif
#include WEIR_MPI_HEADER
#include <weir/weir.h>

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  weir_fabric* fabric = NULL;
  int64_t sum = 1;
  if (weir_fabric_open(NULL, &fabric) != WEIR_STATUS_OK ||
      weir_fabric_reduce_int64(fabric, &sum, 1, WEIR_FABRIC_OP_SUM, WEIR_FOREVER) !=
          WEIR_STATUS_OK) {
    fprintf(stderr, "%s\n", weir_last_error());
    return 1;
  }
  MPI_Finalize();
  if (weir_fabric_is_alive(fabric, 1 - weir_fabric_rank(fabric))) return 2;
  if (weir_fabric_send(fabric, 1 - weir_fabric_rank(fabric), "x", 1) != WEIR_STATUS_NETWORK_ERROR) {
    return 3;
  }
  weir_fabric_close(fabric);
  return sum == 2 ? 0 : 4;
}
