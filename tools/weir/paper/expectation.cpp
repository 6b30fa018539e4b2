#include "paper/expectation.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace weir::cli::paper {

namespace {

/// Returns the series of that name; a description that names another is wrong.
const Json& series_of(const Json& figure, const std::string& name) {
  for (const Json& series : figure.at("series")) {
    if (series.at("name") == name) return series;
  }
  throw std::logic_error(
      fmt::format("figure {} has no series '{}'", figure.at("figure").dump(), name));
}

bool is_rate(const Json& figure) { return figure.at("unit") != "ms"; }

/// Returns the index of the least or the largest value; nothing without values.
std::optional<std::size_t> extreme(const Json& series, bool largest) {
  std::optional<std::size_t> found;
  const Json& values = series.at("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_null()) continue;
    if (!found || (largest ? values[i] > values[*found] : values[i] < values[*found])) found = i;
  }
  return found;
}

std::optional<std::size_t> index_of(const Json& figure, const Json& series,
                                    const std::string& point) {
  const std::size_t count = series.at("values").size();
  if (point == "first") return count > 0 ? std::optional<std::size_t>(0) : std::nullopt;
  if (point == "last") return count > 0 ? std::optional(count - 1) : std::nullopt;
  if (point == "best") return extreme(series, is_rate(figure));
  if (point == "worst") return extreme(series, !is_rate(figure));
  for (std::size_t i = 0; i < count; ++i) {
    if (as_word(series.at("x")[i]) == point) return i;
  }
  return std::nullopt;
}

Json judged(const Json& expectation, Json ours, std::string expected, bool holds) {
  Json judgement = {{"words", expectation.at("words")},
                    {"paper", expectation.value("paper", Json())},
                    {"ours", std::move(ours)},
                    {"expected", std::move(expected)},
                    {"holds", holds}};
  if (!holds && expectation.contains("known")) judgement["known"] = expectation.at("known");
  return judgement;
}

}  // namespace

std::string as_word(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<double> value_of(const Json& figure, const std::string& reference) {
  const std::size_t at = reference.rfind('@');
  if (at == std::string::npos) {
    throw std::logic_error(fmt::format("'{}' names no point: write SERIES@POINT", reference));
  }
  const std::string name = reference.substr(0, at);  // GCC 14 warns of a temporary here
  const Json& series = series_of(figure, name);
  const auto index = index_of(figure, series, reference.substr(at + 1));
  if (!index || series.at("values")[*index].is_null()) return std::nullopt;
  return series.at("values")[*index].get<double>();
}

Json best_x(const Json& figure, const std::string& name) {
  const Json& series = series_of(figure, name);
  const auto index = extreme(series, is_rate(figure));
  return index ? series.at("x")[*index] : Json();
}

Json compare_with(const Json& figure, const Json& expectation) {
  if (expectation.contains("best")) {
    Json best = best_x(figure, expectation.at("best").get<std::string>());
    if (best.is_null()) return nullptr;
    const Json& among = expectation.at("among");
    const bool holds = std::find(among.begin(), among.end(), best) != among.end();
    std::string expected = "one of";
    for (const Json& x : among) expected += " " + as_word(x);
    return judged(expectation, std::move(best), std::move(expected), holds);
  }
  const auto value = value_of(figure, expectation.at("value").get<std::string>());
  std::optional<double> over = 1.0;
  if (expectation.contains("over")) {
    over = value_of(figure, expectation.at("over").get<std::string>());
  }
  if (!value || !over) return nullptr;
  constexpr double kMost = std::numeric_limits<double>::infinity();
  const double ours = *value / *over, from = expectation.value("from", -kMost),
               to = expectation.value("to", kMost);
  std::string expected = to == kMost     ? fmt::format("at least {:g}", from)
                         : from < -1e300 ? fmt::format("at most {:g}", to)
                                         : fmt::format("{:g} to {:g}", from, to);
  return judged(expectation, ours, std::move(expected), ours >= from && ours <= to);
}

bool is_failure(const Json& judgement) {
  return !judgement.is_null() && !judgement.at("holds").get<bool>() && !judgement.contains("known");
}

}  // namespace weir::cli::paper
