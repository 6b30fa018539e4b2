#include "runtime/reduction.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/error.hpp"

namespace weir::rt {

namespace {

/// Integers wrap, so they are added and multiplied without a sign, and at least as wide as an int.
template <class Number>
struct Wrapping {
  using Unsigned = std::conditional_t<std::is_integral_v<Number>, std::make_unsigned<Number>,
                                      std::type_identity<Number>>::type;
  using Wide = std::conditional_t<std::is_integral_v<Number>, std::common_type<Unsigned, unsigned>,
                                  std::type_identity<Number>>::type;
  static Number sum(Number a, Number b) {
    return static_cast<Number>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
  static Number product(Number a, Number b) {
    return static_cast<Number>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
};

template <class Number, class Combined>
Combine loop(Combined combined) {
  return [combined](std::byte* into, const std::byte* from, std::size_t count) {
    auto* const to = reinterpret_cast<Number*>(into);
    const auto* const more = reinterpret_cast<const Number*>(from);
    for (std::size_t i = 0; i < count; ++i) to[i] = combined(to[i], more[i]);
  };
}

template <class Number>
Combine combine_by(weir_fabric_op op) {
  switch (op) {
    case WEIR_FABRIC_OP_SUM: return loop<Number>(Wrapping<Number>::sum);
    case WEIR_FABRIC_OP_PRODUCT: return loop<Number>(Wrapping<Number>::product);
    case WEIR_FABRIC_OP_MIN: return loop<Number>([](Number a, Number b) { return std::min(a, b); });
    case WEIR_FABRIC_OP_MAX: return loop<Number>([](Number a, Number b) { return std::max(a, b); });
    default: break;
  }
  if constexpr (std::is_integral_v<Number>) {
    const auto bits = [](auto combined) {
      return loop<Number>(
          [combined](Number a, Number b) { return static_cast<Number>(combined(a, b)); });
    };
    switch (op) {
      case WEIR_FABRIC_OP_AND: return bits([](Number a, Number b) { return a & b; });
      case WEIR_FABRIC_OP_OR: return bits([](Number a, Number b) { return a | b; });
      case WEIR_FABRIC_OP_XOR: return bits([](Number a, Number b) { return a ^ b; });
      default: break;
    }
  } else if (op >= WEIR_FABRIC_OP_AND && op <= WEIR_FABRIC_OP_XOR) {
    fail_argument("and, or and xor are for integers, not for floating-point numbers");
  }
  fail_argument(
      "the operation of a reduction is {}: choose from sum, min, max, product, and, or, xor",
      static_cast<int>(op));
}

template <class Number>
Numbers numbers_of(void* values, std::size_t count, const weir_reduction& reduction) {
  if (reinterpret_cast<std::uintptr_t>(values) % alignof(Number) != 0) {
    fail_argument("the numbers of a reduction are not aligned to {} bytes", alignof(Number));
  }
  return {.bytes = {static_cast<std::byte*>(values), count * sizeof(Number)},
          .size = sizeof(Number),
          .type = static_cast<std::uint8_t>(reduction.type),
          .operation = static_cast<std::uint8_t>(reduction.op),
          .combine = combine_by<Number>(reduction.op)};
}

}  // namespace

Numbers numbers_at(void* values, std::size_t count, const weir_reduction& reduction) {
  if (values == nullptr && count > 0) fail_argument("the memory for {} numbers is NULL", count);
  if (reduction.combine != nullptr) {
    if (reduction.size == 0) fail_argument("the values of a reduction by a function have 0 bytes");
    constexpr std::uint8_t kByFunction = 7;
    return {.bytes = {static_cast<std::byte*>(values), count * reduction.size},
            .size = reduction.size,
            .type = UINT8_MAX,
            .operation = kByFunction,
            .combine = [combine = reduction.combine, payload = reduction.payload](
                           std::byte* into, const std::byte* from, std::size_t some) {
              combine(into, from, some, payload);
            }};
  }
  switch (reduction.type) {
    case WEIR_NUMBER_INT8: return numbers_of<std::int8_t>(values, count, reduction);
    case WEIR_NUMBER_INT16: return numbers_of<std::int16_t>(values, count, reduction);
    case WEIR_NUMBER_INT32: return numbers_of<std::int32_t>(values, count, reduction);
    case WEIR_NUMBER_INT64: return numbers_of<std::int64_t>(values, count, reduction);
    case WEIR_NUMBER_UINT8: return numbers_of<std::uint8_t>(values, count, reduction);
    case WEIR_NUMBER_UINT16: return numbers_of<std::uint16_t>(values, count, reduction);
    case WEIR_NUMBER_UINT32: return numbers_of<std::uint32_t>(values, count, reduction);
    case WEIR_NUMBER_UINT64: return numbers_of<std::uint64_t>(values, count, reduction);
    case WEIR_NUMBER_FLOAT: return numbers_of<float>(values, count, reduction);
    case WEIR_NUMBER_DOUBLE: return numbers_of<double>(values, count, reduction);
  }
  fail_argument("the type of the numbers of a reduction is {}: choose one of weir_number",
                static_cast<int>(reduction.type));
}

}  // namespace weir::rt
