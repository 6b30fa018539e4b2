/* Grids: cells in blocks over the ranks of a fabric, and the halos between blocks (paper 003). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/fabric.h>
#include <weir/region.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A box of cells: the half-open range [begin, end) in x, y and z. Cells are numbered from 0 at the
 * corner of the grid; cells outside of it, as in halos at a border, have numbers below 0 or above.
 * A grid of two dimensions is one cell deep in z.
 */
typedef struct weir_grid_range {
  int64_t begin[3], end[3];
} weir_grid_range;

/** Returns whether a range is empty. */
static inline bool weir_grid_range_is_empty(weir_grid_range range) {
  return range.begin[0] >= range.end[0] || range.begin[1] >= range.end[1] ||
         range.begin[2] >= range.end[2];
}

/** Returns the number of cells in a range. */
static inline uint64_t weir_grid_range_cells(weir_grid_range range) {
  if (weir_grid_range_is_empty(range)) return 0;
  return (uint64_t)(range.end[0] - range.begin[0]) * (uint64_t)(range.end[1] - range.begin[1]) *
         (uint64_t)(range.end[2] - range.begin[2]);
}

/** Returns the intersection of two ranges. */
static inline weir_grid_range weir_grid_range_intersect(weir_grid_range a, weir_grid_range b) {
  for (int d = 0; d < 3; ++d) {
    if (b.begin[d] > a.begin[d]) a.begin[d] = b.begin[d];
    if (b.end[d] < a.end[d]) a.end[d] = b.end[d];
  }
  return a;
}

/** Returns a range without its outermost `width` cells at both ends; a negative width enlarges the
 * range. */
static inline weir_grid_range weir_grid_range_shrink(weir_grid_range range,
                                                     const int64_t width[3]) {
  for (int d = 0; d < 3; ++d) {
    range.begin[d] += width[d];
    range.end[d] -= width[d];
  }
  return range;
}

/** Returns a range moved by `by` cells. */
static inline weir_grid_range weir_grid_range_shift(weir_grid_range range, const int64_t by[3]) {
  for (int d = 0; d < 3; ++d) {
    range.begin[d] += by[d];
    range.end[d] += by[d];
  }
  return range;
}

/** Returns the outermost cells of a range at its low end (side < 0) or its high end in a dimension.
 */
static inline weir_grid_range weir_grid_range_face(weir_grid_range range, int dimension, int side,
                                                   int64_t width) {
  if (side < 0) {
    range.end[dimension] = range.begin[dimension] + width;
  } else {
    range.begin[dimension] = range.end[dimension] - width;
  }
  return range;
}

/** Returns the cells behind a face, outside of the range. */
static inline weir_grid_range weir_grid_range_halo(weir_grid_range range, int dimension, int side,
                                                   int64_t width) {
  if (side < 0) {
    range.end[dimension] = range.begin[dimension];
    range.begin[dimension] -= width;
  } else {
    range.begin[dimension] = range.end[dimension];
    range.end[dimension] += width;
  }
  return range;
}

/** Cells that belong to one rank. */
typedef struct weir_grid_block {
  weir_grid_range cells;
  unsigned rank;
} weir_grid_block;

/** A grid and its blocks: pure geometry, the same on each rank. Does not change. */
typedef struct weir_grid weir_grid;

typedef struct weir_grid_options {
  size_t struct_size;
  unsigned dimensions; /**< 2 or 3 */
  size_t cells[3];     /**< of the grid; in 2 dimensions the third is ignored */
  bool periodic[3];    /**< whether cells at one end are neighbours of cells at the other */
  unsigned ranks;      /**< that have blocks */
  /** Number of blocks in each dimension. All 0: `ranks` blocks with the smallest faces. */
  size_t blocks[3];
  /** For each dimension NULL, or a weight for each of its blocks, which get cells in proportion. */
  const double* weights[3];
  /** Rank of each block, in the order x, y, z; NULL: consecutive blocks, equally many per rank. */
  const unsigned* owners;
  /** Blocks of any shape instead of cuts. They must tile the grid. NULL: cuts. */
  const weir_grid_block* list;
  size_t list_count;
} weir_grid_options;
#define WEIR_GRID_OPTIONS_INIT                                                    \
  {                                                                               \
    sizeof(weir_grid_options), 3, {0, 0, 0}, {false, false, false}, 1, {0, 0, 0}, \
        {NULL, NULL, NULL}, NULL, NULL, 0                                         \
  }

/** Makes a grid. The caller owns *out_grid. INVALID_ARGUMENT for blocks that do not tile it. */
WEIR_API weir_status weir_grid_create(const weir_grid_options* options, weir_grid** out_grid);

/** Frees a grid; halos created with it remain valid. NULL is ignored. */
WEIR_API void weir_grid_destroy(weir_grid* grid);

typedef struct weir_grid_info {
  size_t struct_size;
  unsigned dimensions, ranks;
  size_t cells[3];
  bool periodic[3];
  size_t block_count;
} weir_grid_info;
#define WEIR_GRID_INFO_INIT \
  { sizeof(weir_grid_info), 0, 0, {0, 0, 0}, {false, false, false}, 0 }

/** Fills out_info, and the first block_count of the blocks. blocks may be NULL. */
WEIR_API weir_status weir_grid_get_info(const weir_grid* grid, weir_grid_info* out_info,
                                        weir_grid_block* blocks, size_t block_count);

/**
 * One field of one block in the program's memory: cells along x follow one another. Around the
 * block there is its halo, as wide as that of the weir_halo, with the same strides.
 */
typedef struct weir_grid_array {
  void* first;       /**< the block's first cell, behind the halo */
  size_t row, plane; /**< bytes from a cell to the next in y, in z (ignored in 2 dimensions) */
} weir_grid_array;

/**
 * Returns the region of a buffer that holds some cells of a block, or of its halo; `first` is the
 * offset of the block's first cell in the buffer. For blocks in the memory of a device, a stream of
 * the device downloads faces to the program's memory before weir_halo_start(), and uploads halos
 * after weir_halo_finish().
 */
static inline weir_region weir_grid_region(weir_grid_range cells, weir_grid_range block,
                                           size_t element_bytes, size_t first, size_t row,
                                           size_t plane) {
  const int64_t offset = (cells.begin[0] - block.begin[0]) * (int64_t)element_bytes +
                         (cells.begin[1] - block.begin[1]) * (int64_t)row +
                         (cells.begin[2] - block.begin[2]) * (int64_t)plane;
  weir_region region = {
      (size_t)((int64_t)first + offset),
      {(size_t)(cells.end[0] - cells.begin[0]) * element_bytes,
       (size_t)(cells.end[1] - cells.begin[1]), (size_t)(cells.end[2] - cells.begin[2])},
      {row, plane}};
  return region;
}

/**
 * A plan for the exchange of halos: created once, used in each step. One thread at a time.
 *
 * A step: start, compute the cells that need no halo, finish, compute the rest. Each rank sends all
 * fields and faces for another rank in one message, or in several of about 60 KB; faces that are
 * not contiguous are packed. Between blocks of one rank they are copied. Cells of a halo outside of
 * a grid that is not periodic do not change.
 */
typedef struct weir_halo weir_halo;

/** The type of the cells of a field. */
typedef struct weir_halo_field {
  size_t element_bytes; /**< of a cell */
  const char* type; /**< any name, "float", the same on all ranks; NULL: compare only the size */
} weir_halo_field;

/** Cells of one block that are copied into the halo of another or the same. */
typedef struct weir_halo_transfer {
  size_t from, to;        /**< numbers of blocks */
  weir_grid_range source; /**< in block `from` */
  int64_t target[3];      /**< first cell of the copy, in the halo of block `to` */
} weir_halo_transfer;

/**
 * Returns the address of a cell of a block of this rank, or of its halo, as the program's own code
 * computes it.
 */
typedef const void* (*weir_halo_locate)(size_t block, size_t field, const int64_t cell[3],
                                        void* payload);

typedef struct weir_halo_options {
  size_t struct_size;
  size_t width[3]; /**< of the halo in cells, in each dimension, at both ends */
  bool corners;    /**< halos have edges and corners; otherwise only cells behind faces */
  const weir_halo_field* fields;
  size_t field_count;
  /** All fields of each block of this rank, block after block, in the order of the grid. */
  const weir_grid_array* arrays;
  size_t array_count;
  /** The program's own plan, the same on all ranks, in place of the one from width and corners. */
  const weir_halo_transfer* transfers;
  size_t transfer_count;
  /**
   * Tags each cell that is sent with its rank, coordinates, destination and step, derived from the
   * address that it is read from, and checks the tag where the cell is written; also enabled by
   * WEIR_CHECK=halo. The first misplaced cell ends the exchange on all ranks, and the message names
   * both cells. Slow: for debugging.
   */
  bool check;
  int64_t timeout_ns; /**< how long creation waits for the other ranks; negative: forever */
  /**
   * With `check`, weir_halo_create() calls it for each cell of this rank that is sent or filled. If
   * an array has another address for the cell, for example because `first` is off by a row,
   * creation fails on all ranks; the message names the rank, the cell, and the cell that the
   * program has there. NULL: arrays are not checked.
   */
  weir_halo_locate locate;
  void* payload; /**< passed to locate */
} weir_halo_options;
#define WEIR_HALO_OPTIONS_INIT \
  { sizeof(weir_halo_options), {1, 1, 1}, false, NULL, 0, NULL, 0, NULL, 0, false, -1, NULL, NULL }

/**
 * Creates a halo. Collective: all ranks of the fabric create halos in the same order. If a rank
 * fails, or has another grid or other fields, the call fails on all ranks, and each message names
 * the difference. The arrays must live as long as the halo. INVALID_ARGUMENT for a halo that is
 * wider than a block. The caller owns *out_halo.
 */
WEIR_API weir_status weir_halo_create(weir_fabric* fabric, const weir_grid* grid,
                                      const weir_halo_options* options, weir_halo** out_halo);

/**
 * Sends the cells of this rank's blocks that other blocks need. Halos may change at any time until
 * weir_halo_finish() returns; the program may write the blocks themselves when this call returns.
 * BUSY when the step before is not finished; in a handler also when there is no room to send, after
 * which the halo is unusable.
 */
WEIR_API weir_status weir_halo_start(weir_halo* halo);

/**
 * Waits until all halos of this rank are filled. NETWORK_ERROR when a rank that sends them is lost,
 * has destroyed its halo or has failed; the halo is then unusable. TIMEOUT: call it again.
 */
WEIR_API weir_status weir_halo_finish(weir_halo* halo, int64_t timeout_ns);

typedef struct weir_halo_info {
  size_t struct_size;
  uint64_t steps;        /**< finished */
  size_t neighbours;     /**< ranks that get a message in each step */
  uint64_t bytes_sent;   /**< to other ranks in a step, without headers */
  uint64_t bytes_packed; /**< of these: copied because they are not contiguous */
  uint64_t bytes_copied; /**< between blocks of this rank in a step */
  int64_t send_ns;       /**< in weir_halo_start(), of all steps */
  int64_t wait_ns;       /**< in weir_halo_finish(), of all steps */
  bool checked;
} weir_halo_info;
#define WEIR_HALO_INFO_INIT \
  { sizeof(weir_halo_info), 0, 0, 0, 0, 0, 0, 0, false }

WEIR_API weir_status weir_halo_get_info(const weir_halo* halo, weir_halo_info* out_info);

/**
 * Frees a halo. Calls of other ranks that still wait for its messages fail, and so do steps in
 * streams (weir_stream_halo()) that are not complete. NULL is ignored.
 */
WEIR_API void weir_halo_destroy(weir_halo* halo);

#ifdef __cplusplus
}
#endif
