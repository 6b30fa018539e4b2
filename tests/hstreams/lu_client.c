/* A tiled LU factorisation without pivots, all of it in streams: of devices and of host threads.
   Tiles go through the program's memory, and waits name only the tiles they are for. */
#include <hStreams_sink.h>
#include <hStreams_source.h>

#include "check.h"

enum { TILES = 4, TILE = 12, N = TILES * TILE, BYTES = TILE * TILE * (int)sizeof(double) };

static double tiles[TILES][TILES][TILE * TILE]; /* row-major */
static HSTR_EVENT done[TILES][TILES];           /* not written at first, as programs leave them */
static int stream_count;

HSTREAMS_EXPORT void diagonal(uint64_t n, double* x) {
  for (uint64_t k = 0; k < n; ++k) {
    for (uint64_t i = k + 1; i < n; ++i) {
      x[i * n + k] /= x[k * n + k];
      for (uint64_t j = k + 1; j < n; ++j) x[i * n + j] -= x[i * n + k] * x[k * n + j];
    }
  }
}

/* Solves L Y = X in place. */
HSTREAMS_EXPORT void row_panel(uint64_t n, double* l, double* x) {
  for (uint64_t k = 0; k < n; ++k) {
    for (uint64_t i = k + 1; i < n; ++i) {
      for (uint64_t j = 0; j < n; ++j) x[i * n + j] -= l[i * n + k] * x[k * n + j];
    }
  }
}

/* Solves Y U = X in place. */
HSTREAMS_EXPORT void column_panel(uint64_t n, double* u, double* x) {
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t k = 0; k < n; ++k) {
      x[i * n + k] /= u[k * n + k];
      for (uint64_t j = k + 1; j < n; ++j) x[i * n + j] -= x[i * n + k] * u[k * n + j];
    }
  }
}

HSTREAMS_EXPORT void subtract_product(uint64_t n, double* x, double* y, double* z) {
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t k = 0; k < n; ++k) {
      for (uint64_t j = 0; j < n; ++j) z[i * n + j] -= x[i * n + k] * y[k * n + j];
    }
  }
}

static void make_streams(HSTR_PHYS_DOM where, int count) {
  for (int i = 0; i < count; ++i) {
    HSTR_CPU_MASK mask;
    HSTR_LOG_DOM domain;
    HSTR_OVERLAP_TYPE overlap;
    HSTR_CPU_MASK_ZERO(mask);
    HSTR_CPU_MASK_SET(2 + i, mask);
    OK(hStreams_AddLogDomain(where, mask, &domain, &overlap));
    OK(hStreams_StreamCreate((HSTR_LOG_STR)stream_count++, domain, mask));
  }
}

/* Calls a function on tiles (rows[i], columns[i]), the last of which it changes. */
static void call(const char* function, const int (*at)[2], uint32_t count) {
  const int row = at[count - 1][0], column = at[count - 1][1];
  const HSTR_LOG_STR stream = (HSTR_LOG_STR)((row + column) % stream_count);
  double* const target = tiles[row][column];
  uint64_t args[4] = {TILE};
  for (uint32_t i = 0; i < count; ++i) {
    double* const tile = tiles[at[i][0]][at[i][1]];
    void* address[1];
    address[0] = tile;
    OK(hStreams_EventStreamWait(stream, 1, &done[at[i][0]][at[i][1]], 1, address, NULL));
    OK(hStreams_EnqueueData1D(stream, tile, tile, BYTES, HSTR_SRC_TO_SINK, NULL));
    args[1 + i] = (uint64_t)tile;
  }
  OK(hStreams_EnqueueCompute(stream, function, 1, count, args, NULL, NULL, 0));
  OK(hStreams_EnqueueData1D(stream, target, target, BYTES, HSTR_SINK_TO_SRC, &done[row][column]));
}

static void factor(void) {
  for (int k = 0; k < TILES; ++k) {
    const int pivot[1][2] = {{k, k}};
    call("diagonal", pivot, 1);
    for (int i = k + 1; i < TILES; ++i) {
      const int right[2][2] = {{k, k}, {k, i}}, below[2][2] = {{k, k}, {i, k}};
      call("row_panel", right, 2);
      call("column_panel", below, 2);
    }
    for (int i = k + 1; i < TILES; ++i) {
      for (int j = k + 1; j < TILES; ++j) {
        const int product[3][2] = {{i, k}, {k, j}, {i, j}};
        call("subtract_product", product, 3);
      }
    }
  }
  OK(hStreams_ThreadSynchronize());
}

static double element(int i, int j) { return i == j ? 2 * N : (double)((i * 7 + j * 3) % 5); }
static double factored(int i, int j) {
  return tiles[i / TILE][j / TILE][i % TILE * TILE + j % TILE];
}

static void verify(void) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      double sum = i <= j ? factored(i, j) : 0;
      for (int k = 0; k < i && k <= j; ++k) sum += factored(i, k) * factored(k, j);
      CHECK(sum - element(i, j) < 1e-10 && element(i, j) - sum < 1e-10);
    }
  }
}

int main(void) {
  uint32_t cards, active;
  bool alike;
  OK(hStreams_Init());
  OK(hStreams_GetNumPhysDomains(&cards, &active, &alike));
  for (uint32_t card = 0; card < active; ++card) make_streams((HSTR_PHYS_DOM)card, 2);
  make_streams(HSTR_SRC_PHYS_DOMAIN, 2);
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      tiles[i / TILE][j / TILE][i % TILE * TILE + j % TILE] = element(i, j);
    }
  }
  for (int i = 0; i < TILES * TILES; ++i) {
    OK(hStreams_Alloc1D(tiles[i / TILES][i % TILES], BYTES));
  }
  factor();
  verify();
  OK(hStreams_Fini());
  return 0;
}
