// What an application adds to the command line. CLI11 does the work behind it: its header is long,
// and there are many applications.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace weir::apps {

/// Takes reals from `lowest` to `highest`; CLI::Range takes a NaN as well. `words` are for --help,
/// "": the range.
CLI::Validator real_range(double lowest, double highest, const std::string& words = "");

/// One option, for what limits it.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) noexcept : option_(option) {}
  /// Refuses numbers outside of a range. Of int, unsigned, std::size_t, std::int64_t or double.
  template <class T>
  CommandOption within(T lowest, T highest);
  /// Refuses other words.
  CommandOption one_of(const std::vector<std::string>& words);
  /// Refuses it without another option of the application.
  CommandOption needs(CommandOption other);

 private:
  CLI::Option* option_;
};

/// The options of one application. What they set has to live as long as the command line.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& command) noexcept : command_(command) {}
  /// An option with a value: a number, text, or a std::optional of one.
  template <class T>
  CommandOption add(const char* name, T& value, const std::string& text);
  /// An option with a value that `set` gets.
  CommandOption add(const char* name, const std::function<void(const std::string& word)>& set,
                    const std::string& text);
  /// An option without a value, which sets a variable.
  CommandOption flag(const char* name, bool& value, const std::string& text);
  /// An option without a value, which does something.
  CommandOption flag(const char* name, std::function<void()> act, const std::string& text);

 private:
  CLI::App& command_;
};

}  // namespace weir::apps
