#include "prefixsum/scan_native.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "common/past_cache.hpp"

namespace weir::apps {

namespace {

// Clang 16 knows the directives, but makes no vectors of them and warns of that.
#if defined(__clang__)
#define SCAN_LOOP
#define SCAN_SUM
#else
#define SCAN_LOOP _Pragma("omp simd reduction(inscan, + : running)")
#define SCAN_SUM _Pragma("omp scan inclusive(running)")
#endif

template <class T>
[[gnu::always_inline]] inline void scan(T* __restrict y, const T* __restrict x,
                                        std::ptrdiff_t count, T running) {
  SCAN_LOOP
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    running += x[i];
    SCAN_SUM
    y[i] = running;
  }
}

template <class T>
[[gnu::always_inline]] inline T sum(const T* x, std::ptrdiff_t count) {
  T all = 0;
#pragma omp simd reduction(+ : all)
  for (std::ptrdiff_t i = 0; i < count; ++i) all += x[i];
  return all;
}

/// The operation on each part; parts beyond the end are empty.
template <class T>
struct Sums {
  const T* x;
  T* sums;
  std::ptrdiff_t n;

  [[gnu::always_inline]] void make(std::ptrdiff_t part) const {
    const std::ptrdiff_t first = part * kScanChunk, end = std::min(n, first + kScanChunk);
    T all = 0;
    for (std::ptrdiff_t i = first; i < end; i += kScanPiece) {
      all += sum(x + i, std::min(kScanPiece, end - i));
    }
    sums[part] = all;
  }
  void end() const {}
};

template <class T, bool past_cache>
struct Scans {
  const T *x, *offsets;
  T* y;
  std::ptrdiff_t n;

  [[gnu::always_inline]] void make(std::ptrdiff_t part) const {
    alignas(64) T memory[kScanPiece + kLineOf<T>];
    const std::ptrdiff_t first = part * kScanChunk, end = std::min(n, first + kScanChunk);
    T* const piece = memory + past_line(y);
    T before = 0;  // the piece, in the part
    for (std::ptrdiff_t i = first; i < end; i += kScanPiece) {
      const std::ptrdiff_t count = std::min(kScanPiece, end - i);
      scan(past_cache ? piece : y + i, x + i, count, offsets[part] + before);
      before += sum(x + i, count);
      if (past_cache) stream_copy(y + i, piece, count);
    }
  }
  void end() const {
    if (past_cache) end_stream();
  }
};

#if defined(__x86_64__)
#define AVX512 [[gnu::target("avx512f,avx512vl,avx512dq")]]

/// The same in registers, from where it goes past the cache: nothing is stored in between.
template <class T>
struct WideScans : Scans<T, true> {
  AVX512 void make(std::ptrdiff_t part) const {
    const T* const x = this->x;
    T* const y = this->y;
    const std::ptrdiff_t first = part * kScanChunk, end = std::min(this->n, first + kScanChunk);
    std::ptrdiff_t i = std::min(first + (kWidth - past_line(y + first)) % kWidth, end);
    Wide running = Wide{} + add_up(first, i, this->offsets[part]);
    for (; i + 2 * kWidth <= end; i += 2 * kWidth) {
      Wide low, high;
      std::memcpy(&low, x + i, sizeof(Wide));
      std::memcpy(&high, x + i + kWidth, sizeof(Wide));
      scan(low, kEach);
      scan(high, kEach);
      high += last(low, kEach);
      stream(y + i, running + low);
      stream(y + i + kWidth, running + high);
      running += last(high, kEach);
    }
    add_up(i, end, running[0]);
  }

 private:
  using Wide [[gnu::vector_size(64)]] = T;
  static constexpr int kWidth = kLineOf<T>;
  static constexpr auto kEach = std::make_integer_sequence<int, kWidth>();

  T add_up(std::ptrdiff_t begin, std::ptrdiff_t end, T running) const {
    for (std::ptrdiff_t i = begin; i < end; ++i) this->y[i] = running += this->x[i];
    return running;
  }
  template <int... index>
  [[gnu::always_inline]] AVX512 static void scan(Wide& v, std::integer_sequence<int, index...>) {
    v += __builtin_shufflevector(Wide{}, v, (index + kWidth - 1)...);
    v += __builtin_shufflevector(Wide{}, v, (index + kWidth - 2)...);
    v += __builtin_shufflevector(Wide{}, v, (index + kWidth - 4)...);
    if (kWidth > 8) v += __builtin_shufflevector(Wide{}, v, (index + kWidth - 8)...);
  }
  template <int... index>
  [[gnu::always_inline]] AVX512 static Wide last(const Wide& v,
                                                 std::integer_sequence<int, index...>) {
    return __builtin_shufflevector(v, v, (index * 0 + kWidth - 1)...);
  }
  [[gnu::always_inline]] AVX512 static void stream(T* to, const Wide& v) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(v));
  }
};

template <class Work>
const Work& in_wide(const Work& work) {
  return work;
}
template <class T>
WideScans<T> in_wide(const Scans<T, true>& work) {
  return {work};
}
#endif

template <class Work>
[[gnu::always_inline]] inline void make_all(const Work& work, std::size_t begin, std::size_t end) {
  for (std::size_t part = begin; part < end; ++part) work.make(static_cast<std::ptrdiff_t>(part));
  work.end();
}

template <class Work>
void make_plainly(const Work& work, std::size_t begin, std::size_t end) {
  make_all(work, begin, end);
}

#if defined(__x86_64__)
template <class Work>
AVX512 void make_avx512(const Work& work, std::size_t begin, std::size_t end) {
  make_all(in_wide(work), begin, end);
}
template <class Work>
[[gnu::target("avx2")]] void make_avx2(const Work& work, std::size_t begin, std::size_t end) {
  make_all(work, begin, end);
}
#endif

template <class Work>
auto best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return make_avx512<Work>;
  }
  if (__builtin_cpu_supports("avx2")) return make_avx2<Work>;
#endif
  return make_plainly<Work>;
}

template <class Work>
void make_parts(const weir::Call& call, std::size_t parts, const Work& work) {
  constexpr std::size_t kGrain = 4;
  const auto make = best<Work>();
  call.parallel_for(parts, kGrain,
                    [&](std::size_t begin, std::size_t end) { make(work, begin, end); });
}

}  // namespace

template <class T>
weir_status native_scan_sums(const weir_call* arguments) {
  const weir::Call call(arguments);
  const std::span<T> sums = call.span<T>(1);
  make_parts(call, sums.size(),
             Sums<T>{call.span<T>(0).data(), sums.data(), call.scalar<std::ptrdiff_t>(0)});
  return WEIR_STATUS_OK;
}

template <class T, bool past_cache>
weir_status native_scan_write(const weir_call* arguments) {
  const weir::Call call(arguments);
  const std::span<T> y = call.span<T>(2);
  make_parts(call, weir::group_count(y.size(), static_cast<std::size_t>(kScanChunk)),
             Scans<T, past_cache>{call.span<T>(0).data(), call.span<T>(1).data(), y.data(),
                                  call.scalar<std::ptrdiff_t>(0)});
  return WEIR_STATUS_OK;
}

template weir_status native_scan_sums<float>(const weir_call* call);
template weir_status native_scan_sums<double>(const weir_call* call);
template weir_status native_scan_write<float, false>(const weir_call* call);
template weir_status native_scan_write<float, true>(const weir_call* call);
template weir_status native_scan_write<double, false>(const weir_call* call);
template weir_status native_scan_write<double, true>(const weir_call* call);

}  // namespace weir::apps
