#include "laplacian/jacobi_native.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/past_cache.hpp"

namespace weir::apps {

namespace {

template <class T>
struct Box {
  T* next;
  const T* now;  ///< one cell before in each dimension
  std::ptrdiff_t width, rows, planes, row, plane;
  T rate;
  bool stream;
};

/// Cells of a row and their neighbours in the other dimensions.
template <class T>
struct Rows {
  const T *here, *south, *north, *below, *above;  ///< in two dimensions the last two do not count

  [[gnu::always_inline]] Rows from(std::ptrdiff_t x) const {
    return {here + x, south + x, north + x, below + x, above + x};
  }
};

template <int dimensions, class T>
[[gnu::always_inline]] inline T relaxed(const T* u, T south, T north, T below, T above, T rate) {
  if constexpr (dimensions == 2) {
    return u[0] + rate * (((u[-1] + u[1]) + (south + north)) - T(4) * u[0]);
  } else {
    return u[0] + rate * ((((u[-1] + u[1]) + (south + north)) + (below + above)) - T(6) * u[0]);
  }
}

template <int dimensions, class T>
[[gnu::always_inline]] inline void sweep_plainly(T* __restrict next, const Rows<T> u,
                                                 std::ptrdiff_t count, T rate) {
#pragma omp simd
  for (std::ptrdiff_t x = 0; x < count; ++x) {
    next[x] =
        relaxed<dimensions>(u.here + x, u.south[x], u.north[x], dimensions == 3 ? u.below[x] : T(0),
                            dimensions == 3 ? u.above[x] : T(0), rate);
  }
}

/// Makes a row of cells; with `stream` past the cache.
template <int dimensions, class T>
[[gnu::always_inline]] inline void make_row(T* next, const Rows<T> u, std::ptrdiff_t width, T rate,
                                            bool stream) {
  constexpr std::ptrdiff_t kLine = kLineOf<T>, kPiece = 8 * kLine;
  if (stream && width >= 2 * kLine) {
    const std::ptrdiff_t head = (kLine - past_line(next)) % kLine;
    const std::ptrdiff_t end = head + (width - head) / kLine * kLine;
    sweep_plainly<dimensions>(next, u, head, rate);
    alignas(64) T piece[kPiece];
    for (std::ptrdiff_t x = head; x < end; x += kPiece) {
      const std::ptrdiff_t count = std::min(kPiece, end - x);
      sweep_plainly<dimensions>(piece, u.from(x), count, rate);
      stream_lines(next + x, piece, count);
    }
    sweep_plainly<dimensions>(next + end, u.from(end), width - end, rate);
    return;
  }
  sweep_plainly<dimensions>(next, u, width, rate);
}

template <int dimensions, class T>
[[gnu::always_inline]] inline void sweep_row(const Box<T>& box, std::ptrdiff_t y,
                                             std::ptrdiff_t z) {
  const std::ptrdiff_t line = z * box.plane + y * box.row;
  const T* const u = box.now + line + (dimensions == 3 ? box.plane : 0) + box.row + 1;
  const std::ptrdiff_t plane = dimensions == 3 ? box.plane : 0;
  make_row<dimensions, T>(box.next + line, {u, u - box.row, u + box.row, u - plane, u + plane},
                          box.width, box.rate, box.stream);
}

/// Rows of which the planes around them stay in a core's cache.
template <class T>
std::ptrdiff_t rows_in_cache(const Box<T>& box) {
  constexpr std::ptrdiff_t kCacheBytes = 512 * 1024, kPlanes = 4, kFewest = 8;
  const std::ptrdiff_t bytes = kPlanes * box.row * static_cast<std::ptrdiff_t>(sizeof(T));
  return std::max(kFewest, kCacheBytes / bytes - 2);
}

template <int dimensions, class T>
[[gnu::always_inline]] inline void sweep(const Box<T>& box) {
  const std::ptrdiff_t rows = dimensions == 2 ? box.rows : rows_in_cache(box);
  for (std::ptrdiff_t top = 0; top < box.rows; top += rows) {
    const std::ptrdiff_t bottom = std::min(top + rows, box.rows);
    for (std::ptrdiff_t z = 0; z < box.planes; ++z) {
      for (std::ptrdiff_t y = top; y < bottom; ++y) sweep_row<dimensions>(box, y, z);
    }
  }
  if (box.stream) end_stream();
}

/// Several steps of a part of the grid, which is cut along its slowest dimension into slices:
/// planes, or lines in two dimensions.
template <class T>
struct Steps {
  T* next;
  const T* now;  ///< `before` slices before the part, one cell before in the other dimensions
  std::ptrdiff_t width, rows, slices;
  std::ptrdiff_t row, slice;  ///< from one to the next, in elements
  T rate;
  bool stream;
  std::ptrdiff_t count, before;
  std::ptrdiff_t first, last;  ///< slices of the grid, counted from the part's first one
};

/// One band of rows of such a part, through all of its slices. Step k of a slice follows step k - 1
/// of the next one, so that three slices of each step between are enough. Bands and parts recompute
/// the cells of their neighbours that they need.
template <int dimensions, class T>
class Wavefront {
 public:
  Wavefront(const Steps<T>& steps, std::ptrdiff_t top, std::ptrdiff_t bottom, T* scratch)
      : s_(steps),
        top_(top),
        bottom_(bottom),
        scratch_(scratch),
        slot_(scratch_rows(steps, bottom - top) * steps.row) {}

  /// Rows of a slice between two steps.
  static std::ptrdiff_t scratch_rows(const Steps<T>& steps, std::ptrdiff_t rows) {
    return rows + 2 * steps.count;
  }
  /// Elements of the scratch memory.
  static std::size_t scratch_size(const Steps<T>& steps, std::ptrdiff_t rows) {
    return static_cast<std::size_t>((steps.count - 1) * kSlots * scratch_rows(steps, rows) *
                                    steps.row);
  }

  [[gnu::always_inline]] void run() const {
    const std::ptrdiff_t lag = s_.count - 1;
    for (std::ptrdiff_t front = -lag; front < s_.slices + lag; ++front) {
      for (std::ptrdiff_t step = 1; step <= s_.count; ++step) make_slice(step, front - step + 1);
    }
  }

 private:
  static constexpr std::ptrdiff_t kSlots = 3;
  static constexpr std::ptrdiff_t kLead = 16;  ///< elements before the first cell of a row

  [[gnu::always_inline]] void make_slice(std::ptrdiff_t step, std::ptrdiff_t z) const {
    const std::ptrdiff_t more = s_.count - step;
    if (z < std::max(s_.first, -more) || z >= std::min(s_.last, s_.slices + more)) return;
    const std::ptrdiff_t begin = std::max<std::ptrdiff_t>(top_ - more, 0);
    const std::ptrdiff_t end = std::min(bottom_ + more, s_.rows);
    for (std::ptrdiff_t y = begin; y < end; ++y) {
      const bool last = step == s_.count;
      T* const next =
          last ? s_.next + z * s_.slice + (dimensions == 3 ? y * s_.row : 0) : between(step, y, z);
      make_row<dimensions, T>(next, around(step - 1, y, z), s_.width, s_.rate, last && s_.stream);
      if (last) continue;
      const T* const border = given(y, z);
      next[-1] = border[-1];
      next[s_.width] = border[s_.width];
    }
  }

  Rows<T> around(std::ptrdiff_t step, std::ptrdiff_t y, std::ptrdiff_t z) const {
    const T *const below = row(step, y, z - 1), *const above = row(step, y, z + 1);
    const T* const here = row(step, y, z);
    if constexpr (dimensions == 2) return {here, below, above, here, here};
    return {here, row(step, y - 1, z), row(step, y + 1, z), below, above};
  }

  /// A row after so many steps; of the border, which stays.
  const T* row(std::ptrdiff_t step, std::ptrdiff_t y, std::ptrdiff_t z) const {
    const bool inside = y >= 0 && y < s_.rows && z >= s_.first && z < s_.last;
    return step == 0 || !inside ? given(y, z) : between(step, y, z);
  }
  const T* given(std::ptrdiff_t y, std::ptrdiff_t z) const {
    return s_.now + (z + s_.before) * s_.slice + (dimensions == 3 ? (y + 1) * s_.row : 0) + 1;
  }
  T* between(std::ptrdiff_t step, std::ptrdiff_t y, std::ptrdiff_t z) const {
    const std::ptrdiff_t slot = (z + s_.before + kSlots) % kSlots;
    return scratch_ + ((step - 1) * kSlots + slot) * slot_ + (y - top_ + s_.count) * s_.row + kLead;
  }

  const Steps<T> s_;
  const std::ptrdiff_t top_, bottom_;
  T* const scratch_;
  const std::ptrdiff_t slot_;  ///< elements of a slice between two steps
};

/// Rows of a band, so that its intermediate steps stay in a core's cache.
template <class T>
std::ptrdiff_t band_of(const Steps<T>& steps) {
  constexpr std::ptrdiff_t kCacheBytes = 1 << 20, kSlices = 3, kFewest = 8;
  const auto bytes = static_cast<std::ptrdiff_t>(sizeof(T)) * steps.row * kSlices * steps.count;
  return std::min(steps.rows, std::max(kFewest, kCacheBytes / bytes - 2 * steps.count));
}

template <int dimensions, class T>
[[gnu::always_inline]] inline void advance(const Steps<T>& steps, T* scratch) {
  const std::ptrdiff_t band = band_of(steps);
  for (std::ptrdiff_t top = 0; top < steps.rows; top += band) {
    Wavefront<dimensions, T>(steps, top, std::min(top + band, steps.rows), scratch).run();
  }
  if (steps.stream) end_stream();
}

#if defined(__x86_64__)
template <int dimensions, class T>
[[gnu::target("avx512f,avx512vl,avx512dq")]] void sweep_avx512(const Box<T>& box) {
  sweep<dimensions>(box);
}
template <int dimensions, class T>
[[gnu::target("avx512f,avx512vl,avx512dq")]] void advance_avx512(const Steps<T>& steps,
                                                                 T* scratch) {
  advance<dimensions>(steps, scratch);
}

template <int dimensions, class T>
[[gnu::target("avx2")]] void sweep_avx2(const Box<T>& box) {
  sweep<dimensions>(box);
}
template <int dimensions, class T>
[[gnu::target("avx2")]] void advance_avx2(const Steps<T>& steps, T* scratch) {
  advance<dimensions>(steps, scratch);
}
#endif

template <int dimensions, class T>
void sweep_best(const Box<T>& box) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return sweep_avx512<dimensions>(box);
  }
  if (__builtin_cpu_supports("avx2")) return sweep_avx2<dimensions>(box);
#endif
  sweep<dimensions>(box);
}

template <int dimensions, class T>
void advance_best(const Steps<T>& steps, T* scratch) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return advance_avx512<dimensions>(steps, scratch);
  }
  if (__builtin_cpu_supports("avx2")) return advance_avx2<dimensions>(steps, scratch);
#endif
  advance<dimensions>(steps, scratch);
}

/// The calling thread's, which stays for the next part; it begins a line of the cache.
template <class T>
T* scratch_of(std::size_t size) {
  static thread_local std::vector<T> memory;
  const std::size_t needed = size + static_cast<std::size_t>(kLineOf<T>);
  if (memory.size() < needed) memory.resize(needed);
  return memory.data() + (kLineOf<T> - past_line(memory.data())) % kLineOf<T>;
}

}  // namespace

template <class T, int dimensions>
weir_status native_jacobi(const weir_call* arguments) {
  const weir::Call call(arguments);
  const weir_view& next = call.operand(0);
  const auto count = [&](int d) {
    return static_cast<std::ptrdiff_t>(std::max<std::size_t>(next.extent[d], 1));
  };
  sweep_best<dimensions, T>(
      {static_cast<T*>(next.address), static_cast<const T*>(call.operand(1).address),
       call.scalar<std::ptrdiff_t>(0), count(1), count(2), call.scalar<std::ptrdiff_t>(1),
       call.scalar<std::ptrdiff_t>(2), call.scalar<T>(3), call.scalar<bool>(4)});
  return WEIR_STATUS_OK;
}

template <class T, int dimensions>
weir_status native_jacobi_steps(const weir_call* arguments) {
  const weir::Call call(arguments);
  const weir_view& next = call.operand(0);
  const auto count = [&](int d) {
    return static_cast<std::ptrdiff_t>(std::max<std::size_t>(next.extent[d], 1));
  };
  const auto scalar = [&](std::size_t i) { return call.scalar<std::ptrdiff_t>(i); };
  constexpr bool deep = dimensions == 3;
  const Steps<T> steps{static_cast<T*>(next.address),
                       static_cast<const T*>(call.operand(1).address),
                       scalar(0),
                       deep ? count(1) : 1,
                       deep ? count(2) : count(1),
                       scalar(1),
                       deep ? scalar(2) : scalar(1),
                       call.scalar<T>(3),
                       call.scalar<bool>(4),
                       scalar(5),
                       scalar(6),
                       scalar(7),
                       scalar(8)};
  const std::size_t size = Wavefront<dimensions, T>::scratch_size(steps, band_of(steps));
  advance_best<dimensions>(steps, scratch_of<T>(size));
  return WEIR_STATUS_OK;
}

template weir_status native_jacobi_steps<float, 2>(const weir_call* call);
template weir_status native_jacobi_steps<float, 3>(const weir_call* call);
template weir_status native_jacobi_steps<double, 2>(const weir_call* call);
template weir_status native_jacobi_steps<double, 3>(const weir_call* call);
template weir_status native_jacobi<float, 2>(const weir_call* call);
template weir_status native_jacobi<float, 3>(const weir_call* call);
template weir_status native_jacobi<double, 2>(const weir_call* call);
template weir_status native_jacobi<double, 3>(const weir_call* call);

}  // namespace weir::apps
