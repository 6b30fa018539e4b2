// The host's part of <weir/portable.h>, which includes it.
#pragma once

#if defined(__cplusplus) && __cplusplus <= 201703L
// A missing file ends the compilation with one line; #error would go on to hundreds.
#include "<weir/portable.h> needs C++20: compile with -std=c++20, or in CMake with the feature cxx_std_20"
#endif

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <weir/kernel.h>

using weir_i8 = std::int8_t;
using weir_u8 = std::uint8_t;
using weir_i16 = std::int16_t;
using weir_u16 = std::uint16_t;
using weir_i32 = std::int32_t;
using weir_u32 = std::uint32_t;
using weir_i64 = std::int64_t;
using weir_u64 = std::uint64_t;

// As <math.h> of the C++ library has them: without these, sqrt() of a float is that of a double.
using std::acos;
using std::asin;
using std::atan;
using std::atan2;
using std::cbrt;
using std::ceil;
using std::cos;
using std::cosh;
using std::exp;
using std::exp2;
using std::expm1;
using std::fabs;
using std::floor;
using std::fma;
using std::fmax;
using std::fmin;
using std::fmod;
using std::hypot;
using std::log;
using std::log10;
using std::log1p;
using std::log2;
using std::pow;
using std::round;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;
using std::trunc;

namespace weir::portable {

/// How many items a group has.
template <int x, int y, int z>
struct Group {
  static_assert(x > 0 && y > 0 && z > 0, "a group has at least one item in each direction");
  static constexpr int weir_items_x = x, weir_items_y = y, weir_items_z = z;
};

/// Which group runs, of how many.
struct Position {
  int x, y, z, groups_x, groups_y, groups_z;

  Position(const std::uint32_t groups[3], std::uint64_t index)
      : x(static_cast<int>(index % groups[0])),
        y(static_cast<int>(index / groups[0] % groups[1])),
        z(static_cast<int>(index / groups[0] / groups[1])),
        groups_x(static_cast<int>(groups[0])),
        groups_y(static_cast<int>(groups[1])),
        groups_z(static_cast<int>(groups[2])) {}

  void advance() noexcept {
    if (++x < groups_x) return;
    x = 0;
    if (++y < groups_y) return;
    y = 0;
    ++z;
  }
  void retreat() noexcept {
    if (--x >= 0) return;
    x = groups_x - 1;
    if (--y >= 0) return;
    y = groups_y - 1;
    --z;
  }
};

/// How many of the items of a group in one direction come before item `end` of all groups.
constexpr int items_below(std::int64_t end, int group, int items) noexcept {
  const std::int64_t left = end - static_cast<std::int64_t>(group) * items;
  return left <= 0 ? 0 : left < items ? static_cast<int>(left) : items;
}

/// The letter of a parameter's type, as in weir_portable_kernel::parameters.
template <class T>
constexpr char letter_of() {
  using Plain = std::remove_cv_t<T>;
  constexpr bool wide = sizeof(Plain) == 8;
  if constexpr (std::is_pointer_v<Plain>) {
    return 'p';
  } else if constexpr (std::is_same_v<Plain, float>) {
    return 'f';
  } else if constexpr (std::is_same_v<Plain, double>) {
    return 'd';
  } else {
    static_assert(std::is_integral_v<Plain> && (sizeof(Plain) == 4 || wide),
                  "a parameter of a portable kernel is a pointer, an integer of 32 or 64 bits, a "
                  "float or a double");
    if constexpr (std::is_signed_v<Plain>) return wide ? 'l' : 'i';
    return wide ? 'm' : 'u';
  }
}

template <class Run>
struct Signature;
template <class... Parameters>
struct Signature<void (*)(const Position&, Parameters...)> {
  static constexpr char letters[] = {letter_of<Parameters>()..., '\0'};

  template <class Body, bool backwards>
  static void run(const std::uint32_t groups[3], std::uint64_t begin, std::uint64_t end,
                  void* const* arguments) {
    run<Body, backwards>(groups, begin, end, arguments, std::index_sequence_for<Parameters...>());
  }

 private:
  template <class Body, bool backwards, std::size_t... index>
  static void run(const std::uint32_t groups[3], std::uint64_t begin, std::uint64_t end,
                  void* const* arguments, std::index_sequence<index...>) {
    Position at(groups, backwards ? end - 1 : begin);
    for (std::uint64_t count = end - begin; count > 0; --count) {
      Body::template run<backwards>(
          at, *static_cast<const std::remove_cv_t<Parameters>*>(arguments[index])...);
      backwards ? at.retreat() : at.advance();
    }
  }
};

/// The description of a kernel by WEIR_KERNEL().
template <class Body>
constexpr weir_portable_kernel describe(const char* name) {
  using Its = Signature<decltype(&Body::template run<false>)>;
  return {name,
          {Body::weir_items_x, Body::weir_items_y, Body::weir_items_z},
          Its::letters,
          Its::template run<Body, false>,
          Its::template run<Body, true>};
}

/// Four values, as the vectors of OpenCL.
template <class T>
struct alignas(16) Vector4 {
  T x, y, z, w;

  friend Vector4 operator+(Vector4 a, Vector4 b) noexcept {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  }
  friend Vector4 operator-(Vector4 a, Vector4 b) noexcept {
    return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
  }
  friend Vector4 operator*(Vector4 a, Vector4 b) noexcept {
    return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
  }
  friend Vector4 operator*(Vector4 a, T b) noexcept { return {a.x * b, a.y * b, a.z * b, a.w * b}; }
  friend Vector4 operator*(T a, Vector4 b) noexcept { return b * a; }
};

}  // namespace weir::portable

using weir_float4 = weir::portable::Vector4<float>;
using weir_double4 = weir::portable::Vector4<double>;

inline weir_float4 weir_make_float4(float x, float y, float z, float w) noexcept {
  return {x, y, z, w};
}
inline weir_double4 weir_make_double4(double x, double y, double z, double w) noexcept {
  return {x, y, z, w};
}
template <class T>
weir::portable::Vector4<T> weir_load4(const T* p) noexcept {
  return {p[0], p[1], p[2], p[3]};
}
template <class T>
void weir_store4(weir::portable::Vector4<T> v, T* p) noexcept {
  p[0] = v.x;
  p[1] = v.y;
  p[2] = v.z;
  p[3] = v.w;
}

template <class T>
T weir_atomic_add(T* p, std::type_identity_t<T> v) noexcept {
  return std::atomic_ref<T>(*p).fetch_add(v, std::memory_order_relaxed);
}
template <class T>
T weir_atomic_exchange(T* p, std::type_identity_t<T> v) noexcept {
  return std::atomic_ref<T>(*p).exchange(v, std::memory_order_relaxed);
}
template <class T>
T weir_atomic_compare(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) noexcept {
  std::atomic_ref<T>(*p).compare_exchange_strong(expected, v, std::memory_order_relaxed);
  return expected;
}
template <class T>
T weir_atomic_min(T* p, std::type_identity_t<T> v) noexcept {
  T seen = std::atomic_ref<T>(*p).load(std::memory_order_relaxed);
  while (v < seen &&
         !std::atomic_ref<T>(*p).compare_exchange_weak(seen, v, std::memory_order_relaxed)) {
  }
  return seen;
}
template <class T>
T weir_atomic_max(T* p, std::type_identity_t<T> v) noexcept {
  T seen = std::atomic_ref<T>(*p).load(std::memory_order_relaxed);
  while (seen < v &&
         !std::atomic_ref<T>(*p).compare_exchange_weak(seen, v, std::memory_order_relaxed)) {
  }
  return seen;
}

#define WEIR_KERNEL(name, X, Y, Z, ...)                                                      \
  namespace {                                                                                \
  struct weir_body_of_##name : ::weir::portable::Group<(X), (Y), (Z)> {                      \
    template <bool weir_backwards_>                                                          \
    static void run(const ::weir::portable::Position& weir_at_, __VA_ARGS__);                \
  };                                                                                         \
  }                                                                                          \
  [[maybe_unused]] static constexpr ::weir_portable_kernel name =                            \
      ::weir::portable::describe<weir_body_of_##name>(#name);                                \
  template <bool weir_backwards_>                                                            \
  void weir_body_of_##name::run([[maybe_unused]] const ::weir::portable::Position& weir_at_, \
                                __VA_ARGS__)
#define WEIR_GLOBAL
#define WEIR_LOCAL
#define WEIR_RESTRICT __restrict__
#define WEIR_FUNCTION [[maybe_unused]] static inline
#define WEIR_CONSTANT [[maybe_unused]] static const

#if defined(__clang__)
#define WEIR_FREE_LOOP
#else
#define WEIR_FREE_LOOP _Pragma("GCC ivdep")
#endif
#define WEIR_ITEMS                                           \
  for (int weir_z_ = 0; weir_z_ < weir_items_z; ++weir_z_)   \
    for (int weir_y_ = 0; weir_y_ < weir_items_y; ++weir_y_) \
  WEIR_FREE_LOOP for (int weir_x_ = 0; weir_x_ < weir_items_x; ++weir_x_)
#define WEIR_ITEMS_LAST WEIR_ITEMS
// The bound limits the loop: a condition inside would keep GCC from vectorising it.
#define WEIR_ITEMS_BELOW(n)                                                              \
  for (int weir_z_ = 0; weir_z_ < weir_items_z; ++weir_z_)                               \
    for (int weir_y_ = 0; weir_y_ < weir_items_y; ++weir_y_)                             \
      for (int weir_m_ = ::weir::portable::items_below((n), WEIR_GROUP_X, weir_items_x), \
               weir_e_ = weir_backwards_ ? weir_items_x : weir_m_, weir_once_ = 1;       \
           weir_once_; weir_once_ = 0)                                                   \
  WEIR_FREE_LOOP for (int weir_x_ = weir_backwards_ ? weir_items_x - weir_m_ : 0;        \
                      weir_x_ < weir_e_; ++weir_x_)
#define WEIR_ITEMS_LAST_BELOW(n) WEIR_ITEMS_BELOW(n)
#define WEIR_SHARED(T, v, n) alignas(64) T v[n]
#define WEIR_PRIVATE(T, v) alignas(64) T v[weir_items_z][weir_items_y][weir_items_x]
#define WEIR_PRIVATE_ARRAY(T, v, n) alignas(64) T v[weir_items_z][weir_items_y][weir_items_x][n]
#define WEIR_V(v) v[WEIR_LOCAL_Z][WEIR_LOCAL_Y][WEIR_LOCAL_X]

#define WEIR_LOCAL_X (weir_backwards_ ? weir_items_x - 1 - weir_x_ : weir_x_)
#define WEIR_LOCAL_Y (weir_backwards_ ? weir_items_y - 1 - weir_y_ : weir_y_)
#define WEIR_LOCAL_Z (weir_backwards_ ? weir_items_z - 1 - weir_z_ : weir_z_)
#define WEIR_GROUP_X (weir_at_.x)
#define WEIR_GROUP_Y (weir_at_.y)
#define WEIR_GROUP_Z (weir_at_.z)
#define WEIR_GROUPS_X (weir_at_.groups_x)
#define WEIR_GROUPS_Y (weir_at_.groups_y)
#define WEIR_GROUPS_Z (weir_at_.groups_z)
#define WEIR_SIZE_X weir_items_x
#define WEIR_SIZE_Y weir_items_y
#define WEIR_SIZE_Z weir_items_z
