/* A tiled Cholesky factorisation: the diagonal on the host by LAPACKE, the rest in streams of the
   devices, ordered by events; checked with LAPACKE on the whole matrix. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

enum { TILES = 4, TILE = 16, N = TILES * TILE, BYTES = TILE * TILE * (int)sizeof(double) };

static double tiles[TILES][TILES][TILE * TILE]; /* column-major, tile (row, column) */
static HSTR_EVENT done[TILES][TILES];           /* of the latest action on a tile */
static uint32_t domains;

HSTREAMS_EXPORT void panel(double* diagonal, double* x) {
  cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, TILE, TILE, 1,
              diagonal, TILE, x, TILE);
}

HSTREAMS_EXPORT void update(double* x, double* y, double* z) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, TILE, TILE, TILE, -1, x, TILE, y, TILE, 1, z,
              TILE);
}

static HSTR_LOG_STR owner(int row) { return (HSTR_LOG_STR)row % domains; }

static void send(HSTR_LOG_STR stream, int row, int column) {
  double* const tile = tiles[row][column];
  void* addresses[1];
  addresses[0] = tile;
  OK(hStreams_app_event_wait_in_stream(stream, 1, &done[row][column], 1, addresses, NULL));
  OK(hStreams_app_xfer_memory(stream, tile, tile, BYTES, HSTR_SRC_TO_SINK, NULL));
}

static void fetch(HSTR_LOG_STR stream, int row, int column) {
  double* const tile = tiles[row][column];
  OK(hStreams_app_xfer_memory(stream, tile, tile, BYTES, HSTR_SINK_TO_SRC, &done[row][column]));
}

static void call(HSTR_LOG_STR stream, const char* function, uint32_t count, double* x, double* y,
                 double* z) {
  uint64_t args[3];
  args[0] = (uint64_t)x;
  args[1] = (uint64_t)y;
  args[2] = (uint64_t)z;
  OK(hStreams_app_invoke(stream, function, 0, count, args, NULL, NULL, 0));
}

static void factor(void) {
  for (int k = 0; k < TILES; ++k) {
    OK(hStreams_app_event_wait(1, &done[k][k]));
    CHECK(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', TILE, tiles[k][k], TILE) == 0);
    for (int row = k + 1; row < TILES; ++row) {
      send(owner(row), k, k);
      send(owner(row), row, k);
      call(owner(row), "panel", 2, tiles[k][k], tiles[row][k], NULL);
      fetch(owner(row), row, k);
    }
    for (int row = k + 1; row < TILES; ++row) {
      for (int column = k + 1; column <= row; ++column) {
        send(owner(row), column, k);
        send(owner(row), row, column);
        call(owner(row), "update", 3, tiles[row][k], tiles[column][k], tiles[row][column]);
        fetch(owner(row), row, column);
      }
    }
  }
  OK(hStreams_app_thread_sync());
}

static double element(int i, int j) { return i == j ? (int)N + 1.0 : 1.0 / (1 + abs(i - j)); }

static void verify(void) {
  static double whole[N * N];
  double worst = 0;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) whole[j * N + i] = element(i, j);
  }
  CHECK(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', N, whole, N) == 0);
  for (int j = 0; j < N; ++j) {
    for (int i = j; i < N; ++i) {
      const double got = tiles[i / TILE][j / TILE][j % TILE * TILE + i % TILE];
      const double error = got > whole[j * N + i] ? got - whole[j * N + i] : whole[j * N + i] - got;
      worst = error > worst ? error : worst;
    }
  }
  CHECK(worst < 1e-12);
}

int main(void) {
  bool alike;
  uint32_t active;
  OK(hStreams_app_init(1, 1));
  OK(hStreams_GetNumPhysDomains(&domains, &active, &alike));
  for (int row = 0; row < TILES; ++row) {
    for (int column = 0; column <= row; ++column) {
      const HSTR_EVENT complete = HSTR_EVENT_INITIALIZER;
      double* const tile = tiles[row][column];
      done[row][column] = complete;
      OK(hStreams_app_create_buf(tile, BYTES));
      for (int i = 0; i < TILE * TILE; ++i) {
        tile[i] = element(row * TILE + i % TILE, column * TILE + i / TILE);
      }
    }
  }
  factor();
  verify();
  OK(hStreams_app_fini());
  return 0;
}
