// Reading large JSON front to back, without a tree in memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli::report {

/// Walks over the values of a text, which must outlive it:
///
///   scanner.open_object();
///   while (scanner.next_member(key)) {
///     if (key == "n") n = scanner.number(); else scanner.skip();
///   }
///
/// Every member and element must be read or skipped. All functions throw apps::InputError with the
/// name of the text and the byte at which it is not what they expect.
class JsonScanner {
 public:
  JsonScanner(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  void open_object() { expect('{'); }
  /// Whether there is another member; then its key, as it stands between the quotes.
  bool next_member(std::string_view& key);
  void open_array() { expect('['); }
  bool next_element() { return next(']'); }

  /// Returns a string as it stands between the quotes, with its escapes.
  std::string_view string();
  double number();
  /// Passes over a value of any kind.
  void skip();

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  char peek();
  void expect(char wanted);
  bool next(char end);
  void skip_nested();

  const std::string_view text_;
  const std::string name_;
  std::size_t at_ = 0;
};

/// Returns a string with its escapes resolved; text that is not a valid JSON string stays as it is.
std::string unescaped(std::string_view raw);

}  // namespace weir::cli::report
