#include "report/json_scanner.hpp"

#include <charconv>

#include <nlohmann/json.hpp>

#include "common/input_error.hpp"

namespace weir::cli::report {

void JsonScanner::fail(std::string_view expected) const {
  apps::fail_input("{}: byte {}: expected {}", name_, at_, expected);
}

char JsonScanner::peek() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonScanner::expect(char wanted) {
  if (peek() != wanted) fail(std::string("'") + wanted + "'");
  ++at_;
}

bool JsonScanner::next(char end) {
  const char found = peek();
  if (found == end) {
    ++at_;
    return false;
  }
  if (found == ',') ++at_;
  return true;
}

bool JsonScanner::next_member(std::string_view& key) {
  if (!next('}')) return false;
  key = string();
  expect(':');
  return true;
}

std::string_view JsonScanner::string() {
  expect('"');
  const std::size_t first = at_;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '"') return text_.substr(first, at_++ - first);
    if (text_[at_] == '\\') ++at_;
  }
  fail("the end of a string");
}

double JsonScanner::number() {
  peek();
  double value = 0;
  const char* const first = text_.data() + at_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error != std::errc()) fail("a number");
  at_ += static_cast<std::size_t>(end - first);
  return value;
}

void JsonScanner::skip() {
  const char first = peek();
  if (first == '"') {
    string();
  } else if (first == '{' || first == '[') {
    skip_nested();
  } else {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == '+' || text_[at_] == '.')) {
      ++at_;
    }
    if (at_ == begin) fail("a value");
  }
}

void JsonScanner::skip_nested() {
  std::size_t depth = 0;
  do {
    const char c = peek();
    if (c == '\0') fail("the end of an object or array");
    if (c == '"') {
      string();
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at_;
  } while (depth > 0);
}

std::string unescaped(std::string_view raw) {
  if (raw.find('\\') == std::string_view::npos) return std::string(raw);
  const auto parsed = nlohmann::json::parse('"' + std::string(raw) + '"', nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string(raw);
}

}  // namespace weir::cli::report
