/* Halos as actions of streams: a ring of blocks that kernels smooth, beside the sequential result;
 * failures. */
#include "ranks.h"

enum { CELLS = 8, WIDTH = 1, STEPS = 12, ALL = CELLS + 2 * WIDTH };

/* What a rank has of its own: its cells with a halo on each side, and room for the next ones. */
typedef struct rank {
  weir_fabric* fabric;
  unsigned rank;
  weir_runtime* runtime;
  weir_stream* stream;
  weir_buffer *cells, *next;
  double *cells_data, *next_data;
  weir_grid* grid;
  weir_halo* halo;
} rank;

static weir_status smooth_kernel(const weir_call* call) {
  const double* cells = call->operands[0].address;
  double* next = call->operands[1].address;
  const size_t count = call->operands[1].extent[0] / sizeof *next;
  for (size_t i = 0; i < count; ++i) next[i] = (cells[i] + cells[i + 2]) / 2;
  return WEIR_STATUS_OK;
}

static weir_status copy_kernel(const weir_call* call) {
  memcpy(call->operands[1].address, call->operands[0].address, call->operands[0].extent[0]);
  return WEIR_STATUS_OK;
}

static weir_region cells_from(size_t first, size_t count) {
  return weir_region_range(8 * first, 8 * count);
}

static rank join(weir_fabric* fabric) {
  rank own;
  weir_grid_options grid_options = WEIR_GRID_OPTIONS_INIT;
  weir_halo_options halo_options = WEIR_HALO_OPTIONS_INIT;
  memset(&own, 0, sizeof own);
  own.fabric = fabric;
  own.rank = weir_fabric_rank(fabric);
  open_runtime(fabric, &own.runtime, &own.stream);
  own.cells = make_buffer(own.runtime, "cells", &own.cells_data);
  own.next = make_buffer(own.runtime, "next", &own.next_data);
  register_kernel(own.runtime, "smooth", smooth_kernel, NULL);
  register_kernel(own.runtime, "copy", copy_kernel, NULL);
  register_kernel(own.runtime, "fail", fail_kernel, NULL);
  grid_options.dimensions = 2;
  grid_options.cells[0] = RANKS * CELLS;
  grid_options.cells[1] = grid_options.cells[2] = 1;
  grid_options.periodic[0] = true;
  grid_options.ranks = RANKS;
  grid_options.blocks[0] = RANKS;
  grid_options.blocks[1] = grid_options.blocks[2] = 1;
  require(weir_grid_create(&grid_options, &own.grid));
  const weir_halo_field field = {sizeof(double), "double"};
  const weir_grid_array array = {own.cells_data + WIDTH, ALL * sizeof(double), 0};
  halo_options.width[0] = WIDTH;
  halo_options.fields = &field;
  halo_options.field_count = 1;
  halo_options.arrays = &array;
  halo_options.array_count = 1;
  halo_options.timeout_ns = SOON;
  require(weir_halo_create(fabric, own.grid, &halo_options, &own.halo));
  return own;
}

static void leave(rank* own) {
  CHECK_OK(weir_fabric_barrier(own->fabric, SOON));
  weir_runtime_destroy(own->runtime);
  weir_halo_destroy(own->halo);
  weir_grid_destroy(own->grid);
}

static weir_status call_kernel(const rank* own, const char* name, weir_buffer* from, size_t first,
                               weir_buffer* to, size_t at, size_t reads, size_t writes) {
  const weir_operand operands[] = {{from, cells_from(first, reads), WEIR_ACCESS_READ},
                                   {to, cells_from(at, writes), WEIR_ACCESS_WRITE}};
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = name;
  compute.operands = operands;
  compute.operand_count = 2;
  return weir_stream_compute(own->stream, &compute, NULL);
}

/* The faces are downloaded before a step and the halos uploaded after it. */
static void enqueue_step(const rank* own) {
  const size_t faces[] = {WIDTH, CELLS}, halos[] = {0, CELLS + WIDTH};
  weir_operand operands[4];
  for (int i = 0; i < 2; ++i) {
    operands[i] = (weir_operand){own->cells, cells_from(faces[i], WIDTH), WEIR_ACCESS_READ};
    operands[2 + i] = (weir_operand){own->cells, cells_from(halos[i], WIDTH), WEIR_ACCESS_WRITE};
    CHECK_OK(weir_stream_download(own->stream, own->cells, operands[i].region, NULL));
  }
  CHECK_OK(weir_stream_halo(own->stream, own->halo, operands, 4, NULL));
  /* Meanwhile the inner cells, then the outer ones. */
  CHECK_OK(call_kernel(own, "smooth", own->cells, WIDTH, own->next, 2, CELLS, CELLS - 2));
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(weir_stream_upload(own->stream, own->cells, operands[2 + i].region, NULL));
  }
  CHECK_OK(call_kernel(own, "smooth", own->cells, 0, own->next, 1, 3, 1));
  CHECK_OK(call_kernel(own, "smooth", own->cells, CELLS - 1, own->next, CELLS, 3, 1));
  CHECK_OK(call_kernel(own, "copy", own->next, 1, own->cells, WIDTH, CELLS, CELLS));
}

static double first_value(size_t cell) { return (double)(cell * cell % 64); }

static weir_status smooth(weir_fabric* fabric, void* payload) {
  enum { RING = RANKS * CELLS };
  rank own = join(fabric);
  double ring[RING], before[RING];
  weir_halo_info info = WEIR_HALO_INFO_INIT;
  (void)payload;
  for (size_t i = 0; i < RING; ++i) ring[i] = first_value(i);
  for (size_t i = 0; i < CELLS; ++i) own.cells_data[WIDTH + i] = first_value(own.rank * CELLS + i);
  CHECK_OK(weir_stream_upload(own.stream, own.cells, cells_from(0, ALL), NULL));
  for (int step = 0; step < STEPS; ++step) {
    enqueue_step(&own);
    memcpy(before, ring, sizeof ring);
    for (size_t i = 0; i < RING; ++i) {
      ring[i] = (before[(i + RING - 1) % RING] + before[(i + 1) % RING]) / 2;
    }
  }
  CHECK_OK(weir_stream_download(own.stream, own.cells, cells_from(0, ALL), NULL));
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  for (size_t i = 0; i < CELLS; ++i) CHECK(own.cells_data[WIDTH + i] == ring[own.rank * CELLS + i]);
  CHECK_OK(weir_halo_get_info(own.halo, &info));
  CHECK(info.steps == STEPS);
  leave(&own);
  return WEIR_STATUS_OK;
}

/* Rank 0 fails before its second step: those of the others fail, and name it. */
static weir_status poisoned(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  (void)payload;
  CHECK_OK(weir_stream_upload(own.stream, own.cells, cells_from(0, ALL), NULL));
  enqueue_step(&own);
  CHECK_OK(weir_stream_synchronize(own.stream, SOON));
  if (own.rank == 0) CHECK_OK(enqueue(own.stream, "fail", own.cells, 0, NULL));
  enqueue_step(&own);
  CHECK_FAILS(weir_stream_synchronize(own.stream, SOON),
              own.rank == 0 ? WEIR_STATUS_KERNEL_ERROR : WEIR_STATUS_NETWORK_ERROR, "tile 7");
  enqueue_step(&own);
  CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_NETWORK_ERROR, "halo");
  leave(&own);
  return WEIR_STATUS_OK;
}

/* A step that waits for a rank ends when the halo does. */
static weir_status destroyed(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  (void)payload;
  if (own.rank == 0) {
    CHECK_OK(weir_stream_halo(own.stream, own.halo, NULL, 0, NULL));
    CHECK(weir_stream_synchronize(own.stream, 1000000) == WEIR_STATUS_TIMEOUT);
    weir_halo_destroy(own.halo);
    own.halo = NULL;
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_INVALID_ARGUMENT,
                "destroyed");
    CHECK_REFUSED(weir_stream_halo(own.stream, NULL, NULL, 0, NULL), "halo");
  }
  leave(&own);
  return WEIR_STATUS_OK;
}

static weir_status begin(const weir_external_call* call) {
  sem_post(call->payload);
  return WEIR_STATUS_OK;
}

/* The halo ends while an earlier action of the stream is in progress. */
static weir_status destroyed_before_start(weir_fabric* fabric, void* payload) {
  rank own = join(fabric);
  (void)payload;
  if (own.rank == 0) {
    sem_t started;
    weir_event event = WEIR_EVENT_INIT;
    weir_external external = WEIR_EXTERNAL_INIT;
    weir_sync barrier = WEIR_SYNC_INIT;
    sem_init(&started, 0, 0);
    external.start = begin;
    external.payload = &started;
    barrier.scope = WEIR_SYNC_SCOPE_STREAM;
    CHECK_OK(weir_stream_external(own.stream, &external, &event));
    CHECK_OK(weir_stream_sync(own.stream, &barrier, NULL));
    CHECK_OK(weir_stream_halo(own.stream, own.halo, NULL, 0, NULL));
    sem_wait(&started);
    weir_halo_destroy(own.halo);
    own.halo = NULL;
    CHECK_OK(weir_external_complete(own.runtime, &event, WEIR_STATUS_OK, NULL));
    CHECK_FAILS(weir_stream_synchronize(own.stream, SOON), WEIR_STATUS_INVALID_ARGUMENT,
                "destroyed");
    sem_destroy(&started);
  }
  leave(&own);
  return WEIR_STATUS_OK;
}

int main(void) {
  on_ranks("steps of a halo are ordered with kernels", smooth);
  on_ranks("a failure ends the halo on all ranks", poisoned);
  on_ranks("a halo ends before its step", destroyed);
  on_ranks("a halo ends before its step starts", destroyed_before_start);
  return check_failures > 0;
}
