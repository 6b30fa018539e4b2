// Parses text that users write: sizes, numbers, names with typing errors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rt {

/// Splits at a separator; an empty text gives no parts.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Parses a whole text as a number; nullopt when it is not a number or does not fit.
std::optional<std::uint64_t> parse_unsigned(std::string_view text);
std::optional<double> parse_real(std::string_view text);

/// Reads a size in bytes with an optional unit: "4096", "64MiB", "1.5GiB", "2GB", "1k".
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Formats a size: "1.5 GiB".
std::string format_size(std::uint64_t bytes);

/// Returns a text as one line that is safe for a terminal: a blank for each control character.
std::string one_line(std::string text);
/// The same in place.
void make_one_line(std::span<char> text) noexcept;

/// Returns " (did you mean 'x'?)" for the nearest candidate, "" when none is near.
std::string did_you_mean(std::string_view wrong, std::span<const std::string> candidates);

}  // namespace weir::rt
