#include "base/utf8.hpp"

#include <cstddef>

namespace weir::rt {

namespace {

unsigned byte_at(std::string_view text, std::size_t index) noexcept {
  return index < text.size() ? static_cast<unsigned char>(text[index]) : 0;
}

bool continues(std::string_view text, std::size_t first, std::size_t count) noexcept {
  for (std::size_t index = first; index < first + count; ++index) {
    if ((byte_at(text, index) & 0xC0) != 0x80) return false;
  }
  return true;
}

/// Returns the bytes of the character at the start of a text, 0 when it is not a valid one.
std::size_t character_length(std::string_view text) noexcept {
  const unsigned lead = byte_at(text, 0), second = byte_at(text, 1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (!continues(text, 1, length - 1)) return 0;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  const bool forbidden = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                         (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return forbidden ? 0 : length;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    valid += length ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(length ? length : 1);
  }
  return valid;
}

}  // namespace weir::rt
