// Converts names, which hold any bytes, to UTF-8 for files.
#pragma once

#include <string>
#include <string_view>

namespace weir::rt {

/// Returns the text with U+FFFD in place of every byte that is not part of valid UTF-8. A name that
/// was cut inside a character ends with U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace weir::rt
