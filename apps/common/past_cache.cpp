#include "common/past_cache.hpp"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::apps {

namespace {

constexpr std::size_t kMostParameters = 16;

using StreamLines = void (*)(std::byte* to, const std::byte* from, std::ptrdiff_t bytes);

void stream_by_16(std::byte* to, const std::byte* from, std::ptrdiff_t bytes) {
  stream_lines(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from),
               bytes / static_cast<std::ptrdiff_t>(sizeof(float)));
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void stream_by_64(std::byte* to, const std::byte* from,
                                             std::ptrdiff_t bytes) {
  for (std::ptrdiff_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(from + i));
  }
}
#endif

StreamLines best_stream() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return stream_by_64;
#endif
  return stream_by_16;
}

/// The arguments of a portable kernel, of which the first can be another one.
class Arguments {
 public:
  Arguments(const weir::Call& call, const weir_portable_kernel& kernel) {
    std::size_t operand = 0, scalar = 0, index = 0;
    for (const char* letter = kernel.parameters; *letter != '\0'; ++letter, ++index) {
      Value& value = values_.at(index);
      switch (*letter) {
        case 'p': value.p = call.operand(operand++).address; break;
        case 'i': value.i = call.scalar<std::int32_t>(scalar++); break;
        case 'u': value.u = call.scalar<std::uint32_t>(scalar++); break;
        case 'f': value.f = call.scalar<float>(scalar++); break;
        case 'd': value.d = call.scalar<double>(scalar++); break;
        default: value.l = call.scalar<std::int64_t>(scalar++); break;
      }
      addresses_[index] = &value;
    }
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void set_first(void* operand) noexcept { values_[0].p = operand; }
  void* const* addresses() const noexcept { return addresses_.data(); }

 private:
  union Value {
    void* p;
    std::int32_t i;
    std::uint32_t u;
    std::int64_t l;
    float f;
    double d;
  };
  std::array<Value, kMostParameters> values_;
  std::array<void*, kMostParameters> addresses_;
};

/// Makes each row by pieces in the cache, from where they go to memory.
template <class T>
class RowMaker {
 public:
  RowMaker(const weir::Call& call, const weir_portable_kernel& kernel)
      : call_(call),
        kernel_(kernel),
        next_(static_cast<T*>(call.operand(0).address)),
        width_(call.scalar<std::ptrdiff_t>(0)),
        row_(call.scalar<std::ptrdiff_t>(2)),
        pieces_(static_cast<std::uint32_t>((width_ + kPiece - 1) / kPiece)),
        groups_(static_cast<std::uint32_t>(kPiece) / kernel.group[0]) {}

  void make(std::size_t begin, std::size_t end) const {
    Arguments arguments(call_, kernel_);
    alignas(64) T memory[kPiece + kLineOf<T>];
    const std::uint32_t groups[3] = {pieces_ * groups_, static_cast<std::uint32_t>(end), 1};
    for (std::size_t y = begin; y < end; ++y) {
      for (std::uint32_t piece = 0; piece < pieces_; ++piece) {
        const std::ptrdiff_t x = piece * kPiece;
        const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(y) * row_ + x;
        T* const made = memory + past_line(next_ + first);
        arguments.set_first(before(made, first));
        const std::uint64_t group = y * groups[0] + std::uint64_t{piece} * groups_;
        kernel_.run(groups, group, group + groups_, arguments.addresses());
        stream_copy(next_ + first, made, std::min(kPiece, width_ - x));
      }
    }
    end_stream();
  }

 private:
  static constexpr std::ptrdiff_t kPiece = 256;  ///< cells: more would fill the buffer of stores

  /// Where the operand begins when one of its elements is elsewhere.
  static void* before(T* element, std::ptrdiff_t index) noexcept {
    const auto bytes = static_cast<std::uintptr_t>(index) * sizeof(T);
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(element) - bytes);
  }

  const weir::Call& call_;
  const weir_portable_kernel& kernel_;
  T* const next_;
  const std::ptrdiff_t width_, row_;
  const std::uint32_t pieces_, groups_;  ///< of a row, and of a piece
};

}  // namespace

template <class T>
void stream_copy(T* to, const T* from, std::ptrdiff_t count) noexcept {
  static const StreamLines stream = best_stream();
  constexpr std::ptrdiff_t kBytes = sizeof(T);
  const std::ptrdiff_t head = std::min((kLineOf<T> - past_line(to)) % kLineOf<T>, count);
  const std::ptrdiff_t end = head + (count - head) / kLineOf<T> * kLineOf<T>;
  std::copy_n(from, head, to);
  stream(reinterpret_cast<std::byte*>(to + head), reinterpret_cast<const std::byte*>(from + head),
         (end - head) * kBytes);
  std::copy_n(from + end, count - end, to + end);
}

template void stream_copy<float>(float* to, const float* from, std::ptrdiff_t count) noexcept;
template void stream_copy<double>(double* to, const double* from, std::ptrdiff_t count) noexcept;

template <class T>
weir_status make_rows_past_cache(const weir_call* arguments) {
  const weir::Call call(arguments);
  const RowMaker<T> rows(call, *static_cast<const weir_portable_kernel*>(arguments->payload));
  constexpr std::size_t kGrain = 8;
  call.parallel_for(call.scalar<std::size_t>(1), kGrain,
                    [&](std::size_t begin, std::size_t end) { rows.make(begin, end); });
  return WEIR_STATUS_OK;
}

template weir_status make_rows_past_cache<float>(const weir_call* call);
template weir_status make_rows_past_cache<double>(const weir_call* call);

}  // namespace weir::apps
