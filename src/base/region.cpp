#include "base/region.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace weir::rt {

namespace {

/// `count` items of `length` bytes that start `stride` bytes apart.
struct Comb {
  std::uint64_t start, length, stride;
  std::uint32_t count;
};

/// Calls visit(start of item) for the fewest items of comb that decide whether one shares a byte
/// with [begin, end). Stops when visit returns true, and returns whether it did.
template <class Visit>
bool any_item(const Comb& comb, std::uint64_t begin, std::uint64_t end, Visit&& visit) {
  if (end <= comb.start) return false;
  std::uint64_t first = 0, last = 0;
  if (comb.count > 1) {
    first = begin <= comb.start ? 0 : (begin - comb.start) / comb.stride;
    last = std::min<std::uint64_t>((end - 1 - comb.start) / comb.stride, comb.count - 1);
  }
  // An item strictly between the outer ones starts inside [begin, end): two steps decide.
  for (std::uint64_t item = first; item <= last && item <= first + 1; ++item) {
    if (visit(comb.start + item * comb.stride)) return true;
  }
  return false;
}

bool touches(const Region& region, std::uint64_t begin, std::uint64_t end) {
  const Comb planes{region.offset, region.plane_span(), region.plane_stride, region.planes};
  return any_item(planes, begin, end, [&](std::uint64_t plane) {
    const Comb rows{plane, region.row, region.row_stride, region.rows};
    return any_item(rows, begin, end,
                    [&](std::uint64_t row) { return row < end && begin < row + region.row; });
  });
}

bool same_comb_overlap(const Region& low, const Region& high) {
  const std::uint64_t distance = high.offset - low.offset;
  const std::uint64_t row = distance / low.row_stride;
  const std::uint64_t column = distance % low.row_stride;
  const bool meets = column < low.row && row < low.rows;
  const bool meets_next = column + high.row > low.row_stride && row + 1 < low.rows;
  return meets || meets_next;
}

bool product_fits(std::uint64_t a, std::uint64_t b, std::uint64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}

[[noreturn, gnu::cold]] void fail_outside(const weir_region& region, std::uint64_t bytes,
                                          const char* buffer) {
  const auto as_given = [](std::size_t number) { return static_cast<std::ptrdiff_t>(number); };
  fail_argument(
      "region (offset {}, extent {}x{}x{}, stride {}/{}) reaches outside buffer '{}' of {} bytes",
      as_given(region.offset), as_given(region.extent[0]), as_given(region.extent[1]),
      as_given(region.extent[2]), as_given(region.stride[0]), as_given(region.stride[1]), buffer,
      bytes);
}

}  // namespace

Region check_region(const weir_region& region, std::uint64_t bytes, const char* buffer) {
  if (region.extent[0] == 0) fail_argument("region of {} is empty: extent[0] is 0", buffer);
  Region normal{.offset = region.offset, .row = region.extent[0]};
  const std::uint64_t rows = std::max<std::size_t>(region.extent[1], 1);
  const std::uint64_t planes = std::max<std::size_t>(region.extent[2], 1);
  constexpr std::uint64_t most_rows = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t most_planes = std::numeric_limits<std::uint16_t>::max();
  if (rows > most_rows || planes > most_planes) {
    fail_argument("a region of {} rows and {} planes of {} is too large: at most {} and {}", rows,
                  planes, buffer, most_rows, most_planes);
  }
  if (rows > 1 && region.stride[0] < region.extent[0]) {
    fail_argument("rows of the region of {} overlap: stride[0] {} is below extent[0] {}", buffer,
                  region.stride[0], region.extent[0]);
  }
  std::uint64_t span = 0, total = 0;
  if (!product_fits(rows - 1, rows > 1 ? region.stride[0] : 0, span) ||
      __builtin_add_overflow(span, normal.row, &span)) {
    fail_outside(region, bytes, buffer);
  }
  if (planes > 1 && region.stride[1] < span) {
    fail_argument(
        "planes of the region of {} overlap: stride[1] {} is below the span {} of a plane", buffer,
        region.stride[1], span);
  }
  if (!product_fits(planes - 1, planes > 1 ? region.stride[1] : 0, total) ||
      __builtin_add_overflow(total, span, &total) ||
      __builtin_add_overflow(total, normal.offset, &total) || total > bytes) {
    fail_outside(region, bytes, buffer);
  }
  normal.rows = static_cast<std::uint32_t>(rows);
  normal.planes = static_cast<std::uint16_t>(planes);
  normal.row_stride = rows > 1 ? region.stride[0] : 0;
  normal.plane_stride = planes > 1 ? region.stride[1] : 0;
  return normal;
}

weir_region packed(const Region& region) noexcept {
  return {0, {region.row, region.rows, region.planes}, {region.row, region.row * region.rows}};
}

bool contains(const Region& outer, const Region& inner) noexcept {
  const bool within = inner.offset >= outer.offset && inner.end() <= outer.end();
  return outer == inner || (outer.contiguous() && within);
}

bool overlap(const Region& a, const Region& b) noexcept {
  if (a.end() <= b.offset || b.end() <= a.offset) return false;
  if (a.contiguous() && b.contiguous()) return true;
  const bool flat = a.planes == 1 && b.planes == 1;
  if (flat && a.rows > 1 && b.rows > 1 && a.row_stride == b.row_stride) {
    return a.offset <= b.offset ? same_comb_overlap(a, b) : same_comb_overlap(b, a);
  }
  const auto pieces = [](const Region& r) { return std::uint64_t{r.rows} * r.planes; };
  const Region& few = pieces(a) <= pieces(b) ? a : b;
  const Region& many = &few == &a ? b : a;
  for (std::uint64_t plane = 0; plane < few.planes; ++plane) {
    for (std::uint64_t row = 0; row < few.rows; ++row) {
      const std::uint64_t begin = few.offset + plane * few.plane_stride + row * few.row_stride;
      if (touches(many, begin, begin + few.row)) return true;
    }
  }
  return false;
}

}  // namespace weir::rt
