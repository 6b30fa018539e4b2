#include "laplacian/jacobi_native.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

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

template <int dimensions, class T>
[[gnu::always_inline]] inline T relaxed(const T* u, std::ptrdiff_t row, std::ptrdiff_t plane,
                                        T rate) {
  if constexpr (dimensions == 2) {
    return u[0] + rate * (((u[-1] + u[1]) + (u[-row] + u[row])) - T(4) * u[0]);
  } else {
    return u[0] +
           rate * ((((u[-1] + u[1]) + (u[-row] + u[row])) + (u[-plane] + u[plane])) - T(6) * u[0]);
  }
}

#if defined(__x86_64__)
/// Writes aligned lines of memory without reading them first.
template <class T>
[[gnu::always_inline]] inline void stream_lines(T* to, const T* from, std::ptrdiff_t count) {
  constexpr std::ptrdiff_t kStep = 16 / sizeof(T);
  for (std::ptrdiff_t i = 0; i < count; i += kStep) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}
#endif

template <int dimensions, class T>
[[gnu::always_inline]] inline void sweep_plainly(T* __restrict next, const T* __restrict u,
                                                 std::ptrdiff_t count, const Box<T>& box) {
#pragma omp simd
  for (std::ptrdiff_t x = 0; x < count; ++x) {
    next[x] = relaxed<dimensions>(u + x, box.row, box.plane, box.rate);
  }
}

template <int dimensions, class T>
[[gnu::always_inline]] inline void sweep_row(const Box<T>& box, std::ptrdiff_t y,
                                             std::ptrdiff_t z) {
  const std::ptrdiff_t line = z * box.plane + y * box.row;
  T* const next = box.next + line;
  const T* const u = box.now + line + (dimensions == 3 ? box.plane : 0) + box.row + 1;
#if defined(__x86_64__)
  constexpr std::ptrdiff_t kLine = 64 / sizeof(T), kPiece = 8 * kLine;
  if (box.stream && box.width >= 2 * kLine) {
    const auto past =
        static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(next) % 64 / sizeof(T));
    const std::ptrdiff_t head = (kLine - past) % kLine;
    const std::ptrdiff_t end = head + (box.width - head) / kLine * kLine;
    sweep_plainly<dimensions>(next, u, head, box);
    alignas(64) T piece[kPiece];
    for (std::ptrdiff_t x = head; x < end; x += kPiece) {
      const std::ptrdiff_t count = std::min(kPiece, end - x);
      sweep_plainly<dimensions>(piece, u + x, count, box);
      stream_lines(next + x, piece, count);
    }
    sweep_plainly<dimensions>(next + end, u + end, box.width - end, box);
    return;
  }
#endif
  sweep_plainly<dimensions>(next, u, box.width, box);
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
#if defined(__x86_64__)
  if (box.stream) _mm_sfence();
#endif
}

#if defined(__x86_64__)
template <int dimensions, class T>
[[gnu::target("avx512f,avx512vl,avx512dq")]] void sweep_avx512(const Box<T>& box) {
  sweep<dimensions>(box);
}

template <int dimensions, class T>
[[gnu::target("avx2")]] void sweep_avx2(const Box<T>& box) {
  sweep<dimensions>(box);
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

template weir_status native_jacobi<float, 2>(const weir_call* call);
template weir_status native_jacobi<float, 3>(const weir_call* call);
template weir_status native_jacobi<double, 2>(const weir_call* call);
template weir_status native_jacobi<double, 3>(const weir_call* call);

}  // namespace weir::apps
