#include "command_line.hpp"

#include <fstream>
#include <string_view>

namespace weir::cli {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string word, line;
  std::getline(file, word, '\0');
  if (!file) return "";
  line = "weir";
  while (std::getline(file, word, '\0')) line += " " + shell_word(word);
  return line;
}

}  // namespace weir::cli
