/* Regions: parts of a buffer. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A part of a buffer: `extent[2]` planes of `extent[1]` rows of `extent[0]` contiguous bytes.
 *
 * Rows start `stride[0]` bytes apart, planes `stride[1]`. An extent of 0 in [1] or [2] counts as 1,
 * and the stride of a dimension of extent 1 is ignored. Rows must not overlap:
 * stride[0] >= extent[0], stride[1] >= the span of one plane.
 */
typedef struct weir_region {
  size_t offset;    /**< bytes from the start of the buffer */
  size_t extent[3]; /**< bytes of a row, rows of a plane, planes */
  size_t stride[2]; /**< bytes between rows, bytes between planes */
} weir_region;

/** Returns the contiguous range [offset, offset + bytes). */
static inline weir_region weir_region_range(size_t offset, size_t bytes) {
  weir_region region = {offset, {bytes, 1, 1}, {0, 0}};
  return region;
}

/**
 * Returns the tile of rows x columns elements whose first element is (row, column) of a
 * column-major matrix with leading dimension ld (in elements).
 */
static inline weir_region weir_region_tile(size_t row, size_t column, size_t rows, size_t columns,
                                           size_t ld, size_t element_size) {
  weir_region region = {(column * ld + row) * element_size,
                        {rows * element_size, columns, 1},
                        {ld * element_size, 0}};
  return region;
}

#ifdef __cplusplus
}
#endif
