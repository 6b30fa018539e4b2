#include "prefixsum/scan_native.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

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

/// What is done with each part; those beyond the end have nothing to add up.
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
[[gnu::target("avx512f,avx512vl,avx512dq")]] void make_avx512(const Work& work, std::size_t begin,
                                                              std::size_t end) {
  make_all(work, begin, end);
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
