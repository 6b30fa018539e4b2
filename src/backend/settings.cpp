#include "backend/settings.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"

namespace weir::rt {

Settings::Settings(const DomainSpec& spec, std::span<const std::string_view> allowed)
    : spec_(spec) {
  const std::vector<std::string> known(allowed.begin(), allowed.end());
  for (const auto& [key, value] : spec.settings) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail_argument("domain '{}' has no setting '{}'{}; known: {}", spec.text, key,
                    did_you_mean(key, known), fmt::join(known, ", "));
    }
    const auto same = [&](const auto& setting) { return setting.first == key; };
    if (std::count_if(spec.settings.begin(), spec.settings.end(), same) > 1) {
      fail_argument("domain '{}' sets '{}' twice", spec.text, key);
    }
  }
}

void Settings::refuse(std::string_view key, std::string_view expected) const {
  fail_argument("domain '{}': {}={} is not {}", spec_.text, key, *spec_.find(key), expected);
}

std::uint64_t Settings::count(std::string_view key, std::uint64_t otherwise,
                              std::uint64_t most) const {
  const std::string* text = spec_.find(key);
  if (text == nullptr) return otherwise;
  const auto value = parse_unsigned(*text);
  if (!value || *value < 1 || *value > most) refuse(key, fmt::format("between 1 and {}", most));
  return *value;
}

std::uint64_t Settings::index(std::string_view key) const {
  const std::string* text = spec_.find(key);
  if (text == nullptr) return 0;
  const auto value = parse_unsigned(*text);
  if (!value) refuse(key, "a number from 0 on");
  return *value;
}

double Settings::real(std::string_view key, double otherwise, double least, double most) const {
  const std::string* text = spec_.find(key);
  if (text == nullptr) return otherwise;
  const auto value = parse_real(*text);
  if (!value || *value < least || *value > most) {
    refuse(key, fmt::format("a number between {} and {}", least, most));
  }
  return *value;
}

std::uint64_t Settings::size(std::string_view key, std::uint64_t otherwise) const {
  const std::string* text = spec_.find(key);
  if (text == nullptr) return otherwise;
  const auto value = parse_size(*text);
  if (!value || *value == 0) refuse(key, "a size such as 64MiB or 2GB");
  return *value;
}

std::size_t Settings::choice(std::string_view key,
                             std::initializer_list<std::string_view> choices) const {
  const std::string* text = spec_.find(key);
  if (text == nullptr) return 0;
  const auto found = std::find(choices.begin(), choices.end(), *text);
  if (found == choices.end()) refuse(key, fmt::format("one of {}", fmt::join(choices, ", ")));
  return static_cast<std::size_t>(found - choices.begin());
}

}  // namespace weir::rt
