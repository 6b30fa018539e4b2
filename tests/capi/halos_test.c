/* Grids and halos in C: an exchange, and handles of destroyed objects or of something else. */
#include "check.h"

enum { RANKS = 2, CELLS = 6, ROW = CELLS / RANKS + 2 };

static weir_grid* make_grid(void) {
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  weir_grid* grid = NULL;
  options.dimensions = 2;
  options.cells[0] = CELLS;
  options.cells[1] = 1;
  options.ranks = RANKS;
  options.blocks[0] = RANKS;
  CHECK_OK(weir_grid_create(&options, &grid));
  return grid;
}

static weir_status make_halo(weir_fabric* fabric, const weir_grid* grid, int64_t* row,
                             weir_halo** out_halo) {
  const weir_halo_field field = {sizeof *row, "int64"};
  const weir_grid_array array = {row + 1, ROW * sizeof *row, 0};
  weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
  options.width[1] = 0;
  options.width[2] = 0;
  options.fields = &field;
  options.field_count = 1;
  options.arrays = &array;
  options.array_count = 1;
  options.timeout_ns = SOON;
  return weir_halo_create(fabric, grid, &options, out_halo);
}

/* Destroys the grid before the exchange, and the halo after it. */
static weir_status gone(weir_fabric* fabric, void* payload) {
  const unsigned rank = weir_fabric_rank(fabric);
  weir_halo_info info = WEIR_HALO_INFO_INIT;
  weir_grid_info grid_info = WEIR_GRID_INFO_INIT;
  weir_grid* const grid = make_grid();
  int64_t row[ROW];
  weir_halo* halo = NULL;
  (void)payload;
  for (int i = 0; i < ROW; ++i) row[i] = 10 * (int64_t)rank + i;
  CHECK_OK(make_halo(fabric, grid, row, &halo));
  weir_grid_destroy(grid);
  CHECK_REFUSED(weir_grid_get_info(grid, &grid_info, NULL, 0), "grid 'grid' has been destroyed");
  weir_grid_destroy(grid);
  CHECK_CONTAINS(weir_last_error(), "has been destroyed");

  CHECK_REFUSED(weir_halo_finish(halo, SOON), "weir_halo_start()");
  CHECK_OK(weir_halo_start(halo));
  CHECK_OK(weir_halo_finish(halo, SOON));
  CHECK(rank == 0 ? row[ROW - 1] == 11 : row[0] == ROW - 2);
  CHECK_OK(weir_fabric_barrier(fabric, SOON));
  weir_halo_destroy(halo);
  CHECK_REFUSED(weir_halo_start(halo), "halo 'halo' has been destroyed");
  CHECK_REFUSED(weir_halo_finish(halo, SOON), "has been destroyed");
  CHECK_REFUSED(weir_halo_get_info(halo, &info), "has been destroyed");
  weir_halo_destroy(halo);
  CHECK_CONTAINS(weir_last_error(), "has been destroyed");

  CHECK_REFUSED(make_halo(fabric, grid, row, &halo), "grid 'grid' has been destroyed");
  CHECK_REFUSED(weir_halo_start((weir_halo*)grid), "halo");
  CHECK_REFUSED(weir_grid_get_info((weir_grid*)fabric, &grid_info, NULL, 0), "is not a grid");
  return WEIR_STATUS_OK;
}

static int64_t left_rows[RANKS][ROW];
static weir_halo* left_halos[RANKS];

static weir_status left_open(weir_fabric* fabric, void* payload) {
  const unsigned rank = weir_fabric_rank(fabric);
  weir_grid* const grid = make_grid();
  (void)payload;
  CHECK_OK(make_halo(fabric, grid, left_rows[rank], &left_halos[rank]));
  weir_grid_destroy(grid);
  return WEIR_STATUS_OK;
}

static void handles_of_what_is_gone(void) {
  CHECK_OK(weir_fabric_simulate(NULL, RANKS, gone, NULL));
}

static void halos_end_with_the_fabric(void) {
  CHECK_OK(weir_fabric_simulate(NULL, RANKS, left_open, NULL));
  for (int rank = 0; rank < RANKS; ++rank) {
    CHECK_REFUSED(weir_halo_start(left_halos[rank]), "has been destroyed");
    CHECK_REFUSED(weir_halo_finish(left_halos[rank], 0), "has been destroyed");
  }
}

static void nothing_at_all(void) {
  weir_halo* halo = NULL;
  weir_grid* grid = NULL;
  CHECK_REFUSED(weir_grid_create(NULL, &grid), "options");
  CHECK_REFUSED(weir_halo_create(NULL, NULL, NULL, &halo), "NULL");
  CHECK_REFUSED(weir_halo_start(NULL), "the halo is NULL");
  CHECK_REFUSED(weir_grid_get_info(NULL, NULL, NULL, 0), "the grid is NULL");
  weir_halo_destroy(NULL);
  weir_grid_destroy(NULL);
}

int main(void) {
  RUN(handles_of_what_is_gone);
  RUN(halos_end_with_the_fabric);
  RUN(nothing_at_all);
  return check_failures != 0;
}
