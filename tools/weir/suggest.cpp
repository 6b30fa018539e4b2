#include "suggest.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace weir::cli {

namespace {

/// Letters to insert, remove, replace or swap with their neighbour to turn one word into the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_last, last(to.size() + 1), row(to.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last.back();
}

}  // namespace

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates) {
  std::size_t least = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string& candidate : candidates) {
    const std::size_t found = distance(wrong, candidate);
    if (found < least) {
      least = found;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest);
}

}  // namespace weir::cli
