// Numbers of things in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weir::rt {

/// Returns "1 core", "2 cores": of a noun whose plural ends in s.
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// The verb for a number of things.
inline const char* is_or_are(std::uint64_t count) noexcept { return count == 1 ? "is" : "are"; }

}  // namespace weir::rt
