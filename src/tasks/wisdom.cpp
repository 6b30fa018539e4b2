#include "tasks/wisdom.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <weir/version.h>

#include "base/cache.hpp"
#include "base/error.hpp"

namespace weir::rt {

namespace {

constexpr std::string_view kFolder = "wisdom";

/// Returns the exponent of the nearest power of 2; -1 for 0.
int size_class(std::uint64_t size) {
  return size == 0 ? -1 : static_cast<int>(std::lround(std::log2(static_cast<double>(size))));
}

bool is_control(char letter) { return static_cast<unsigned char>(letter) < ' '; }

void check_line(std::string_view text, const char* what) {
  for (const char letter : text) {
    if (is_control(letter)) {
      fail_argument("{} has the control character {}: it must be one line of text", what,
                    static_cast<int>(letter));
    }
  }
}

/// Removes a number and the blank after it from the front of a text.
template <class Number>
bool take(std::string_view& text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

bool possible(const Division& division) {
  return division.places > 0 && division.streams > 0 && division.aspect > 0 &&
         division.seconds >= 0 && std::isfinite(division.seconds);
}

}  // namespace

Wisdom::Wisdom(std::string_view machine, std::string_view domains, std::string_view problem,
               std::uint64_t size) {
  if (problem.empty()) fail_argument("the name of the problem is empty");
  check_line(problem, "the name of the problem");
  head_ = fmt::format("weir wisdom 2, {}\n{}\n{}\n{}\n2^{}\n", weir_version(), machine, domains,
                      problem, size_class(size));
}

std::optional<Division> Wisdom::find() const {
  const auto kept = Cache(kFolder).read(cache_key(head_));
  if (!kept || !kept->starts_with(head_)) return {};
  std::string_view text(*kept);
  text.remove_prefix(head_.size());
  Division division;
  const bool read = take(text, division.places) && take(text, division.streams) &&
                    take(text, division.tiles) && take(text, division.aspect) &&
                    take(text, division.seconds);
  const bool one_line = std::none_of(text.begin(), text.end(), is_control);
  if (!read || !one_line || !possible(division)) return {};
  division.policy = text;
  return division;
}

void Wisdom::keep(const Division& division) const {
  if (!possible(division)) {
    fail_argument(
        "{} places, {} streams, aspect {} and {} s cannot be wisdom: there is at least one of "
        "each, and time is finite",
        division.places, division.streams, division.aspect, division.seconds);
  }
  check_line(division.policy, "the name of the policy");
  Cache(kFolder).write(
      cache_key(head_),
      fmt::format("{}{} {} {} {} {} {}", head_, division.places, division.streams, division.tiles,
                  division.aspect, division.seconds, division.policy));
}

}  // namespace weir::rt
