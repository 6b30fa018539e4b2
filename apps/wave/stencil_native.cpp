#include "wave/stencil_native.hpp"

#include <unistd.h>

#include <cstddef>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <weir/weir.hpp>

#include "wave/grid_shape.hpp"

namespace weir::apps {

namespace {

constexpr std::ptrdiff_t reach = kReach, lead = kLead;

template <class T>
struct Planes {
  T* next;
  const T *now, *speed, *kept;
  std::ptrdiff_t n, row, plane, first, count;
};

template <class T>
[[gnu::always_inline]] inline T laplacian(const T* u, std::ptrdiff_t row, std::ptrdiff_t plane) {
  const auto ring = [=](std::ptrdiff_t k) __attribute__((always_inline)) {
    return (u[-k] + u[k]) + (u[-k * row] + u[k * row]) + (u[-k * plane] + u[k * plane]);
  };
  return T(-205.0 / 24) * u[0] + T(8.0 / 5) * ring(1) - T(1.0 / 5) * ring(2) +
         T(8.0 / 315) * ring(3) - T(1.0 / 560) * ring(4);
}

/// Makes cells of the same row of some planes at once, which have most of their neighbours in
/// common.
template <std::ptrdiff_t planes, class T>
[[gnu::always_inline]] inline void make_cells(const Planes<T>& p, std::ptrdiff_t y,
                                              std::ptrdiff_t z, std::ptrdiff_t first_x,
                                              std::ptrdiff_t count) {
  const std::ptrdiff_t plane = p.plane;
  const std::ptrdiff_t line = z * plane + (y + reach) * p.row + lead + first_x;
  T* const __restrict next = p.next + line;
  const T* const __restrict u = p.now + line + reach * plane;
  const T* const __restrict speed = p.speed + line;
  const T* const __restrict kept = p.kept;
#pragma omp simd
  for (std::ptrdiff_t x = 0; x < count; ++x) {
    T curvature[planes];
#pragma GCC unroll 8
    for (std::ptrdiff_t k = 0; k < planes; ++k)
      curvature[k] = laplacian(u + x + k * plane, p.row, plane);
#pragma GCC unroll 8
    for (std::ptrdiff_t k = 0; k < planes; ++k) {
      const std::ptrdiff_t i = x + k * plane;
      const T g = kept[p.first + z + k] * kept[y] * kept[first_x + x];
      next[i] = g * (2 * u[i] - g * next[i] + speed[i] * curvature[k]);
    }
  }
}

/// Asks for what the next row needs from memory: its planes are too many for the processor to see.
template <std::ptrdiff_t planes, class T>
[[gnu::always_inline]] inline void prefetch_row(const Planes<T>& p, std::ptrdiff_t y,
                                                std::ptrdiff_t z, std::ptrdiff_t x) {
  for (std::ptrdiff_t k = z; k < z + planes; ++k) {
    const std::ptrdiff_t i = k * p.plane + (y + 1 + reach) * p.row + lead + x;
    __builtin_prefetch(p.now + i + 2 * reach * p.plane);
    __builtin_prefetch(p.next + i);
    __builtin_prefetch(p.speed + i);
  }
}

template <std::ptrdiff_t planes, class T>
[[gnu::always_inline]] inline void sweep_row(const Planes<T>& p, std::ptrdiff_t y,
                                             std::ptrdiff_t z) {
  constexpr std::ptrdiff_t kLine = 64 / sizeof(T);
  std::ptrdiff_t x = 0;
  for (; x + kLine <= p.n; x += kLine) {
    prefetch_row<planes>(p, y, z, x);
    make_cells<planes>(p, y, z, x, kLine);
  }
  make_cells<planes>(p, y, z, x, p.n - x);
}

constexpr std::ptrdiff_t kTogether = 2;  ///< planes that are made at once

/// Rows of which all planes that a row of the next planes needs stay in half of a core's cache.
template <class T>
std::ptrdiff_t rows_in_cache(const Planes<T>& p) {
  constexpr std::ptrdiff_t kUsualBytes = 1024 * 1024, kPlanes = kTogether + 2 * reach, kFewest = 8;
  static const std::ptrdiff_t known_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::ptrdiff_t bytes = (known_bytes > 0 ? known_bytes : kUsualBytes) / 2;
  const std::ptrdiff_t rows =
      bytes / (kPlanes * p.row * static_cast<std::ptrdiff_t>(sizeof(T))) - 2 * reach;
  return rows < kFewest ? kFewest : rows;
}

template <class T>
[[gnu::always_inline]] inline void sweep(const Planes<T>& p) {
  const std::ptrdiff_t rows = rows_in_cache(p), together = p.count - p.count % kTogether;
  for (std::ptrdiff_t top = 0; top < p.n; top += rows) {
    const std::ptrdiff_t bottom = top + rows < p.n ? top + rows : p.n;
    for (std::ptrdiff_t z = 0; z < together; z += kTogether) {
      for (std::ptrdiff_t y = top; y < bottom; ++y) sweep_row<kTogether>(p, y, z);
    }
    for (std::ptrdiff_t z = together; z < p.count; ++z) {
      for (std::ptrdiff_t y = top; y < bottom; ++y) sweep_row<1>(p, y, z);
    }
  }
}

#if defined(__x86_64__)
/// Flushes denormal numbers to zero on this thread: far ahead of a wave they would take most of the
/// processor's time.
class FlushToZero {
 public:
  FlushToZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushResults | kFlushOperands); }
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kFlushResults = 0x8000, kFlushOperands = 0x0040;
  unsigned before_;
};

template <class T>
[[gnu::target("avx512f,avx512vl,avx512dq,fma")]] void sweep_avx512(const Planes<T>& planes) {
  sweep(planes);
}

template <class T>
[[gnu::target("avx2,fma")]] void sweep_avx2(const Planes<T>& planes) {
  sweep(planes);
}

template <class T>
void sweep_best(const Planes<T>& planes) {
  const FlushToZero flush;
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sweep_avx512(planes);
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    sweep_avx2(planes);
  } else {
    sweep(planes);
  }
}
#else
template <class T>
void sweep_best(const Planes<T>& planes) {
  sweep(planes);
}
#endif

}  // namespace

template <class T>
weir_status native_wave_step(const weir_call* arguments) {
  const weir::Call call(arguments);
  const auto scalar = [&](std::size_t index) { return call.scalar<std::ptrdiff_t>(index); };
  const auto plane_bytes = call.scalar<std::size_t>(2) * sizeof(T);
  sweep_best<T>({call.span<T>(0).data(), call.span<T>(1).data(), call.span<T>(2).data(),
                 call.span<T>(3).data(), scalar(0), scalar(1), scalar(2), scalar(3),
                 static_cast<std::ptrdiff_t>(call.operand(0).extent[0] / plane_bytes)});
  return WEIR_STATUS_OK;
}

template weir_status native_wave_step<float>(const weir_call* call);
template weir_status native_wave_step<double>(const weir_call* call);

}  // namespace weir::apps
