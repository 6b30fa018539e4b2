// Writing JSON without a tree of it in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::rt {

/// Returns the text between the quotes of a JSON string; bytes that are not UTF-8 are replaced.
std::string json_escaped(std::string_view text);

/// Builds a JSON text, indented by two spaces. Values follow each other, in an object each after
/// its key; every begin needs an end.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(unsigned number) { return value(std::uint64_t{number}); }
  JsonWriter& value(bool flag) { return literal(flag ? "true" : "false"); }
  JsonWriter& null() { return literal("null"); }

  /// A key and its value.
  template <class Value>
  JsonWriter& member(std::string_view name, const Value& what) {
    return key(name).value(what);
  }

  const std::string& text() const noexcept { return text_; }

 private:
  JsonWriter& begin(char bracket);
  JsonWriter& end(char bracket);
  JsonWriter& literal(std::string_view text);
  void separate();
  void new_line();

  std::string text_;
  std::size_t depth_ = 0;
  bool first_ = true;  ///< the innermost bracket is empty
  bool has_key_ = false;
};

}  // namespace weir::rt
