#include "base/json.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace weir::rt {

std::string json_escaped(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '<') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ": ";
  has_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  return literal(fmt::format("\"{}\"", json_escaped(text)));
}

JsonWriter& JsonWriter::value(double number) { return literal(fmt::format("{}", number)); }

JsonWriter& JsonWriter::value(std::uint64_t number) { return literal(fmt::format("{}", number)); }

JsonWriter& JsonWriter::begin(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end(char bracket) {
  --depth_;
  if (!std::exchange(first_, false)) new_line();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::literal(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

/// Moves to the position of the next value.
void JsonWriter::separate() {
  if (std::exchange(has_key_, false) || depth_ == 0) return;
  if (!std::exchange(first_, false)) text_ += ',';
  new_line();
}

void JsonWriter::new_line() {
  text_ += '\n';
  text_.append(2 * depth_, ' ');
}

}  // namespace weir::rt
