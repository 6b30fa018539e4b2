#include "backend/launch_arguments.hpp"

#include "base/counted.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace weir::rt {

namespace {

struct Integers {
  const char* name;
  std::int64_t least;
  std::uint64_t most;
};

template <class T>
constexpr Integers integers(const char* name) {
  return {name, static_cast<std::int64_t>(std::numeric_limits<T>::min()),
          static_cast<std::uint64_t>(std::numeric_limits<T>::max())};
}

Integers integers_of(char letter) noexcept {
  switch (letter) {
    case 'i': return integers<std::int32_t>("a signed 32-bit integer");
    case 'u': return integers<std::uint32_t>("an unsigned 32-bit integer");
    case 'l': return integers<std::int64_t>("a signed 64-bit integer");
    default: return integers<std::uint64_t>("an unsigned 64-bit integer");
  }
}

bool is_fraction(const weir_scalar& scalar) noexcept {
  return scalar.type == WEIR_SCALAR_TYPE_F32 || scalar.type == WEIR_SCALAR_TYPE_F64;
}

/// Returns the value of a scalar in the type of a parameter.
template <class T>
T value_of(const weir_scalar& scalar) noexcept {
  switch (scalar.type) {
    case WEIR_SCALAR_TYPE_U64: return static_cast<T>(scalar.value.u64);
    case WEIR_SCALAR_TYPE_F32: return static_cast<T>(scalar.value.f32);
    case WEIR_SCALAR_TYPE_F64: return static_cast<T>(scalar.value.f64);
    default: return static_cast<T>(scalar.value.i64);
  }
}

std::string text_of(const weir_scalar& scalar) {
  switch (scalar.type) {
    case WEIR_SCALAR_TYPE_U64: return fmt::format("{}", scalar.value.u64);
    case WEIR_SCALAR_TYPE_F32: return fmt::format("{}", scalar.value.f32);
    case WEIR_SCALAR_TYPE_F64: return fmt::format("{}", scalar.value.f64);
    default: return fmt::format("{}", scalar.value.i64);
  }
}

bool fits(const Integers& range, const weir_scalar& scalar) noexcept {
  if (scalar.type == WEIR_SCALAR_TYPE_U64) return scalar.value.u64 <= range.most;
  const std::int64_t value = scalar.value.i64;
  return value >= range.least && (value < 0 || static_cast<std::uint64_t>(value) <= range.most);
}

bool fits_float(const weir_scalar& scalar) noexcept {
  const auto value = value_of<double>(scalar);
  return !std::isfinite(value) || std::abs(value) <= double{std::numeric_limits<float>::max()};
}

std::string scalar_complaint(char letter, const weir_scalar& scalar) {
  if (scalar.type < WEIR_SCALAR_TYPE_I64 || scalar.type > WEIR_SCALAR_TYPE_F64) {
    return fmt::format("is a scalar of unknown type {}", static_cast<int>(scalar.type));
  }
  if (letter == 'd') return {};
  if (letter == 'f') {
    return fits_float(scalar) ? ""
                              : fmt::format("is a float, which cannot hold {}", text_of(scalar));
  }
  const Integers range = integers_of(letter);
  if (is_fraction(scalar)) {
    return fmt::format("is {}, but {} was given as a floating-point number; give an integer",
                       range.name, text_of(scalar));
  }
  if (fits(range, scalar)) return {};
  return fmt::format("is {}, which cannot hold {}", range.name, text_of(scalar));
}

}  // namespace

std::string launch_complaint(std::string_view parameters, std::size_t operands,
                             std::span<const weir_scalar> scalars) {
  const auto pointers =
      static_cast<std::size_t>(std::count(parameters.begin(), parameters.end(), 'p'));
  if (operands != pointers || scalars.size() != parameters.size() - pointers) {
    return fmt::format("it has {} and {}, but was given {} and {}", counted(pointers, "pointer"),
                       counted(parameters.size() - pointers, "value"), counted(operands, "operand"),
                       counted(scalars.size(), "scalar"));
  }
  std::size_t scalar = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == 'p') continue;
    const std::string complaint = scalar_complaint(parameters[i], scalars[scalar]);
    if (!complaint.empty()) {
      return fmt::format("parameter {} (scalar {}) {}", i, scalar, complaint);
    }
    ++scalar;
  }
  return {};
}

LaunchArguments::LaunchArguments(std::string_view parameters, const weir_call& call) noexcept
    : letters_(parameters) {
  const weir_view* operand = call.operands;
  const weir_scalar* scalar = call.scalars;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == 'p') {
      values_[i].address = (operand++)->address;
    } else {
      values_[i] = converted(parameters[i], *scalar++);
    }
    addresses_[i] = &values_[i];
  }
}

LaunchArguments::Value LaunchArguments::converted(char letter, const weir_scalar& scalar) noexcept {
  switch (letter) {
    case 'i': return {.i = value_of<std::int32_t>(scalar)};
    case 'u': return {.u = value_of<std::uint32_t>(scalar)};
    case 'l': return {.l = value_of<std::int64_t>(scalar)};
    case 'm': return {.m = value_of<std::uint64_t>(scalar)};
    case 'f': return {.f = value_of<float>(scalar)};
    default: return {.d = value_of<double>(scalar)};
  }
}

std::size_t LaunchArguments::size(std::size_t index) const noexcept {
  switch (letters_[index]) {
    case 'p': return sizeof(void*);
    case 'i':
    case 'u':
    case 'f': return 4;
    default: return 8;
  }
}

}  // namespace weir::rt
