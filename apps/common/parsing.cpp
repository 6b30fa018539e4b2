#include "common/parsing.hpp"

#include <cstdint>

namespace weir::apps {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t shown = 32;
  std::string result = "'";
  for (const char c : text.substr(0, shown)) {
    const bool plain = c >= ' ' && c <= '~';
    result += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return result + (text.size() > shown ? "...'" : "'");
}

void check_size(const std::string& where, Shape shape, std::size_t element_bytes,
                const ReadLimits& limits) {
  std::uint64_t bytes = 0;
  const std::uint64_t rows = std::max<std::uint64_t>(shape.rows, 1);
  const std::uint64_t columns = std::max<std::uint64_t>(shape.columns, 1);
  const bool overflows = __builtin_mul_overflow(rows, columns, &bytes) ||
                         __builtin_mul_overflow(bytes, element_bytes, &bytes);
  if (!overflows && bytes <= limits.bytes) return;
  fail_input("{}: found a matrix of {} x {}, which takes {} bytes, expected at most {} bytes",
             where, shape.rows, shape.columns, overflows ? "over 2^64" : std::to_string(bytes),
             limits.bytes);
}

}  // namespace weir::apps
