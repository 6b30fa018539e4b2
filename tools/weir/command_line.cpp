#include "command_line.hpp"

#include <string_view>

namespace weir::cli {

namespace {

std::vector<std::string>& kept_arguments() {
  static std::vector<std::string> arguments;
  return arguments;
}

}  // namespace

void keep_arguments(int argc, char** argv) { kept_arguments().assign(argv, argv + argc); }

const std::vector<std::string>& own_arguments() { return kept_arguments(); }

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string command_line() {
  const std::vector<std::string>& arguments = own_arguments();
  if (arguments.empty()) return "";
  std::string line = "weir";
  for (std::size_t i = 1; i < arguments.size(); ++i) line += " " + shell_word(arguments[i]);
  return line;
}

}  // namespace weir::cli
