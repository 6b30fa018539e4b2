// Failures inside the layer, on their way to an HSTR_RESULT.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include <hstreams/hStreams_types.h>
#include <weir/weir.h>

namespace weir::hs {

/// The result of a call, its reason, and the source line that detected it.
class Error : public std::runtime_error {
 public:
  Error(HSTR_RESULT result, const std::string& message, std::source_location where)
      : std::runtime_error(message), result_(result), where_(where) {}
  HSTR_RESULT result() const noexcept { return result_; }
  const std::source_location& where() const noexcept { return where_; }

 private:
  HSTR_RESULT result_;
  std::source_location where_;
};

/// A format string with its source location.
template <class... Values>
struct PlacedText {
  template <class String>
  consteval PlacedText(const String& text,
                       std::source_location here = std::source_location::current())
      : format(text), where(here) {}
  fmt::format_string<Values...> format;
  std::source_location where;
};
template <class... Values>
using Text = PlacedText<std::type_identity_t<Values>...>;

/// Throws Error with a message.
template <class... Values>
[[noreturn]] void fail(HSTR_RESULT result, Text<const Values&...> text, const Values&... values) {
  throw Error(result, fmt::format(text.format, values...), text.where);
}

/// Returns the hStreams result for a weir status.
HSTR_RESULT result_of(weir_status status) noexcept;

/// The name of an enumerator, nullptr for no result.
const char* name_of(HSTR_RESULT result) noexcept;

}  // namespace weir::hs
