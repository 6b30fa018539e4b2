/* A tiled product on all devices and on the host: each computes some of the columns of tiles. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

enum { TILES = 4, TILE = 24, BYTES = TILE * TILE * (int)sizeof(double), MOST_STREAMS = 8 };

/* Column-major tiles, each a buffer. */
static double a[TILES][TILES][TILE * TILE];
static double b[TILES][TILES][TILE * TILE];
static double c[TILES][TILES][TILE * TILE];

HSTREAMS_EXPORT void multiply(uint64_t n, double* x, double* y, double* z) {
  for (uint64_t j = 0; j < n; ++j) {
    for (uint64_t k = 0; k < n; ++k) {
      for (uint64_t i = 0; i < n; ++i) z[j * n + i] += x[k * n + i] * y[j * n + k];
    }
  }
}

static HSTR_LOG_STR streams[MOST_STREAMS];
static int stream_count;

/* One stream in each domain that app_init() made, and two on the host. */
static void find_streams(void) {
  uint32_t cards, active, host_threads, mhz;
  bool alike;
  HSTR_ISA_TYPE isa;
  HSTR_CPU_MASK max, avoid, mask;
  uint64_t types, bytes[HSTR_MEM_TYPE_SIZE];
  OK(hStreams_GetNumPhysDomains(&cards, &active, &alike));
  for (uint32_t card = 0; card < active; ++card) streams[stream_count++] = card;
  OK(hStreams_GetPhysDomainDetails(HSTR_SRC_PHYS_DOMAIN, &host_threads, &isa, &mhz, max, avoid,
                                   &types, bytes));
  CHECK(host_threads >= 4);
  for (int part = 0; part < 2; ++part) { /* threads 0 and 1 are the program's */
    HSTR_LOG_DOM domain;
    HSTR_OVERLAP_TYPE overlap;
    HSTR_CPU_MASK_ZERO(mask);
    HSTR_CPU_MASK_SET(2 + part, mask);
    OK(hStreams_AddLogDomain(HSTR_SRC_PHYS_DOMAIN, mask, &domain, &overlap));
    OK(hStreams_StreamCreate((HSTR_LOG_STR)(1000 + part), domain, mask));
    streams[stream_count++] = (HSTR_LOG_STR)(1000 + part);
  }
}

static void fill(double* tile, int seed) {
  for (int i = 0; i < TILE * TILE; ++i) tile[i] = (double)((i * seed) % 11 - 5);
}

static void send(HSTR_LOG_STR stream, double* tile) {
  OK(hStreams_app_xfer_memory(stream, tile, tile, BYTES, HSTR_SRC_TO_SINK, NULL));
}

static void enqueue(void) {
  for (int column = 0; column < TILES; ++column) {
    const HSTR_LOG_STR stream = streams[column % stream_count];
    for (int k = 0; k < TILES; ++k) send(stream, b[k][column]);
    for (int row = 0; row < TILES; ++row) {
      for (int k = 0; k < TILES; ++k) {
        uint64_t args[4];
        args[0] = TILE;
        args[1] = (uint64_t)a[row][k];
        args[2] = (uint64_t)b[k][column];
        args[3] = (uint64_t)c[row][column];
        if (column < stream_count) send(stream, a[row][k]);
        OK(hStreams_app_invoke(stream, "multiply", 1, 3, args, NULL, NULL, 0));
      }
      OK(hStreams_app_xfer_memory(stream, c[row][column], c[row][column], BYTES, HSTR_SINK_TO_SRC,
                                  NULL));
    }
  }
}

static void verify(void) {
  static double expected[TILE * TILE];
  for (int row = 0; row < TILES; ++row) {
    for (int column = 0; column < TILES; ++column) {
      memset(expected, 0, sizeof expected);
      for (int k = 0; k < TILES; ++k) multiply(TILE, a[row][k], b[k][column], expected);
      CHECK(memcmp(expected, c[row][column], sizeof expected) == 0);
    }
  }
}

int main(void) {
  OK(hStreams_app_init(1, 1));
  find_streams();
  for (int i = 0; i < TILES; ++i) {
    for (int j = 0; j < TILES; ++j) {
      fill(a[i][j], 3 + i + j);
      fill(b[i][j], 5 + i * j);
      OK(hStreams_app_create_buf(a[i][j], BYTES));
      OK(hStreams_app_create_buf(b[i][j], BYTES));
      OK(hStreams_app_create_buf(c[i][j], BYTES));
    }
  }
  enqueue();
  OK(hStreams_app_thread_sync());
  verify();
  OK(hStreams_app_fini());
  return 0;
}
