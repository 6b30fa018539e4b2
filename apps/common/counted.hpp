// Numbers in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weir::apps {

/// Returns "1 core", "2 cores": of a noun whose plural ends in s.
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Returns a number with two digits, of a large one all before the point: "0.15", "1.5", "150".
inline std::string two_digits(double value) {
  constexpr double kLarge = 99.5;  // from here on {:.2g} writes an exponent
  return value < kLarge ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

}  // namespace weir::apps
