#include "terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <sys/ioctl.h>

#include "launch_environment.hpp"

namespace weir::cli {

namespace {

[[noreturn]] void fail_to_print() {
  throw std::system_error(errno, std::generic_category(), "cannot write the output");
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const char* escape(Tone tone) {
  switch (tone) {
    case Tone::strong: return "\x1b[1m";
    case Tone::faint: return "\x1b[2m";
    case Tone::good: return "\x1b[32m";
    case Tone::warning: return "\x1b[33m";
    case Tone::bad: return "\x1b[31m";
    case Tone::plain: break;
  }
  return "";
}

/// Columns that text takes on a terminal: escape sequences none, a UTF-8 character one.
std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

/// The first `columns` columns of a text without escape sequences.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size() && width(text.substr(0, end + 1)) <= columns) ++end;
  return text.substr(0, end);
}

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

struct Unit {
  double size;
  const char* name;
};

/// The largest unit of which value has at least one, or else the last.
template <std::size_t count>
const Unit& unit_for(double value, const std::array<Unit, count>& units) {
  for (const Unit& unit : units) {
    if (value >= unit.size * 0.9995) return unit;
  }
  return units.back();
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_to_print();
}

void flush() {
  if (std::fflush(stdout) != 0) fail_to_print();
}

bool has_color(std::FILE* stream) {
  if (!variable("NO_COLOR").empty()) return false;
  const std::string_view forced = variable("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  return variable("TERM") != "dumb" && is_terminal(fileno(stream));
}

std::string paint(std::string_view text, Tone tone, std::FILE* stream) {
  if (tone == Tone::plain || !has_color(stream)) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape(tone), text);
}

void print_message(Tone tone, std::string_view message, Speaker speaker) noexcept {
  try {
    const std::string line = fmt::format("{} {}{}\n", paint("weir:", tone, stderr),
                                         speaker == Speaker::rank ? rank_prefix() : "", message);
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {  // there is no memory for the words
  }
}

std::string Table::text(std::size_t indent, const std::vector<std::size_t>& right) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string all;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width(row[i]), ' ');
      const bool flush_right = std::find(right.begin(), right.end(), i) != right.end();
      line += flush_right ? blanks + row[i] : row[i] + blanks;
      if (i + 1 < row.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + "\n";
  }
  return all;
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<Unit, 4> units{
      {{1099511627776, "TiB"}, {1073741824, "GiB"}, {1048576, "MiB"}, {1024, "KiB"}}};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const auto value = static_cast<double>(bytes);
  const Unit& unit = unit_for(value, units);
  return fmt::format("{:.4g} {}", value / unit.size, unit.name);
}

std::string format_seconds(double seconds) {
  static constexpr std::array<Unit, 4> units{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  if (!(seconds > 0)) return "0 s";
  const Unit& unit = unit_for(seconds, units);
  const double scaled = seconds / unit.size;
  return fmt::format("{:.{}f} {}", scaled, scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0, unit.name);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

Progress::Progress(std::int64_t line_ns)
    : on_terminal_(is_terminal(STDERR_FILENO) && variable("TERM") != "dumb"),
      every_ns_(on_terminal_ ? 100'000'000 : line_ns),
      next_ns_(on_terminal_ ? 0 : now_ns() + line_ns) {}

Progress::~Progress() { clear(); }

void Progress::update(std::uint64_t done, std::uint64_t total, std::string_view text) {
  if (now_ns() < next_ns_) return;
  next_ns_ = now_ns() + every_ns_;
  std::string line(text);
  if (total > 0) {
    line = fmt::format("{:3.0f} %  {}/{}  {}",
                       100 * static_cast<double>(done) / static_cast<double>(total),
                       format_count(done), format_count(total), text);
  }
  if (!on_terminal_) {
    std::fprintf(stderr, "weir: %s%s\n", rank_prefix().c_str(), line.c_str());
    return;
  }
  const std::string_view shown = cut(line, terminal_columns() - 1);
  std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(shown.size()), shown.data());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace weir::cli
