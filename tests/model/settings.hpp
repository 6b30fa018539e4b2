// What the environment asks of a test of random programs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace weir::model {

inline std::string setting(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? text : "";
}

inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const std::string text = setting(name);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}

/// 1234567 as 1,234,567.
inline std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace weir::model
