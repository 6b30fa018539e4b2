#include "paper/paper.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <weir/weir.hpp>

#include <paper_000.json.h>
#include <paper_001.json.h>
#include <paper_002.json.h>
#include <paper_003.json.h>
#include <paper_004.json.h>
#include "command_line.hpp"
#include "common/file.hpp"
#include "interruption.hpp"
#include "paper/commands.hpp"
#include "report/page.hpp"
#include "suggest.hpp"

namespace weir::cli::paper {

namespace {

constexpr const char* kSchema = "weir.paper/1";

Json description_of(const std::string& number) {
  std::vector<std::string> numbers;
  for (const Description& each : descriptions()) {
    if (number == each.number) return Json::parse(each.text);
    numbers.emplace_back(each.number);
  }
  throw weir::Error(WEIR_STATUS_NOT_FOUND, fmt::format("there is no paper '{}': choose from {}",
                                                       number, fmt::join(numbers, ", ")));
}

/// Returns the command of a series with the words of a point in place of their names in braces.
std::string command_at(const Json& series, const Json& point) {
  auto command = series.at("run").get<std::string>();
  for (const auto& [name, words] : point.items()) {
    const std::string place = "{" + name + "}";
    const std::size_t at = command.find(place);
    if (at != std::string::npos) command.replace(at, place.size(), as_word(words));
  }
  return command;
}

/// Returns what a JSON pointer names; "/points/*/bytes" names that member of each element. Null
/// where it names nothing.
Json at_pointer(const Json& value, const std::string& pointer) {
  const std::size_t star = pointer.find("/*");
  const Json::json_pointer begin(pointer.substr(0, star));
  if (!value.contains(begin)) return nullptr;
  if (star == std::string::npos) return value.at(begin);
  Json all = Json::array();
  for (const Json& each : value.at(begin))
    all.push_back(at_pointer(each, pointer.substr(star + 2)));
  return all;
}

/// Returns what one pointer names, or an array of what each of several names.
Json at_pointers(const Json& value, const Json& pointers) {
  if (!pointers.is_array()) return at_pointer(value, pointers.get<std::string>());
  Json all = Json::array();
  for (const Json& each : pointers) all.push_back(at_pointer(value, each.get<std::string>()));
  return all;
}

/// Returns the factor from a value as a command reports it to the unit of the figure: times are
/// seconds.
double scale_of(const Json& figure, const Json& series) {
  return series.value("scale", figure.at("unit") == "ms" ? 1e3 : 1.0);
}

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  const double number = value.get<double>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  return number >= 100 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

/// The points of a figure in rows; of many the first, the last, and some between.
std::string table_of(const Json& figure) {
  constexpr std::size_t kMost = 12;
  const Json& all = figure.at("series");
  Table table;
  std::vector<std::string> head = {figure.at("x_name").get<std::string>()};
  std::vector<std::size_t> right;
  Json xs = Json::array();
  for (const Json& series : all) {
    head.push_back(series.at("name").get<std::string>());
    right.push_back(right.size() + 1);
    for (const Json& x : series.at("x")) {
      if (std::find(xs.begin(), xs.end(), x) == xs.end()) xs.push_back(x);
    }
  }
  table.add(std::move(head));
  const std::size_t step = (xs.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (i % step != 0 && i + 1 != xs.size()) continue;
    std::vector<std::string> row = {as_word(xs[i])};
    for (const Json& series : all) {
      const Json& its = series.at("x");
      const auto at = std::find(its.begin(), its.end(), xs[i]);
      row.push_back(at == its.end()
                        ? ""
                        : cell(series.at("values")[static_cast<std::size_t>(at - its.begin())]));
    }
    table.add(std::move(row));
  }
  return table.text(2, right);
}

/// Whether a figure is meant by a name: "10" means "10, GTX 1080" as well.
bool is_meant(const std::string& figure, const std::string& name) {
  return figure == name || figure.starts_with(name + ",");
}

std::string verdict_of(const Json& judgement) {
  if (judgement.at("holds")) return paint("holds", Tone::good);
  if (judgement.contains("known")) {
    return paint("differs: ", Tone::warning) + judgement.at("known").get<std::string>();
  }
  return paint("DIFFERS", Tone::bad);
}

}  // namespace

const std::vector<Description>& descriptions() {
  static const std::vector<Description> all = {{"000", paper_000_json},
                                               {"001", paper_001_json},
                                               {"002", paper_002_json},
                                               {"003", paper_003_json},
                                               {"004", paper_004_json}};
  return all;
}

Paper::Paper(const std::string& number, Options options)
    : options_(std::move(options)), number_(number), description_(description_of(number)) {
  std::vector<std::string> names;
  for (const Json& figure : description_.at("figures")) {
    names.push_back(figure.at("figure").get<std::string>());
    for (const Json& series : figure.at("series")) {
      if (series.contains("value")) pointers_.push_back(series.at("value").get<std::string>());
    }
  }
  for (const std::string& wanted : options_.figures) {
    const auto is_wanted = [&](const std::string& name) { return is_meant(name, wanted); };
    if (std::any_of(names.begin(), names.end(), is_wanted)) continue;
    for (std::string& name : names) name.resize(std::min(name.find(','), name.size()));
    names.erase(std::unique(names.begin(), names.end()), names.end());
    throw weir::Error(WEIR_STATUS_NOT_FOUND,
                      fmt::format("paper {} has no figure '{}'{}: choose from {}", number, wanted,
                                  did_you_mean(wanted, names), fmt::join(names, ", ")));
  }
}

void Paper::measure() {
  if (!options_.fresh) recall();
  write();  // an error now, not after a long run
  for (const Json& figure : description_.at("figures")) {
    if (!selected(figure)) continue;
    figures_.push_back(measured(figure));
    write();
  }
  progress_.clear();
}

bool Paper::selected(const Json& figure) const {
  if (!options_.figures.empty()) {
    const auto name = figure.at("figure").get<std::string>();
    return std::any_of(options_.figures.begin(), options_.figures.end(),
                       [&](const std::string& wanted) { return is_meant(name, wanted); });
  }
  return !options_.quick || figure.value("quick", true);
}

Json Paper::measured(const Json& figure) {
  Json result = {{"figure", figure.at("figure")},    {"title", figure.at("title")},
                 {"x_name", figure.at("x_name")},    {"unit", figure.at("unit")},
                 {"says", figure.value("says", "")}, {"differs", figure.value("differs", "")},
                 {"series", Json::array()},          {"expectations", Json::array()}};
  for (const Json& series : figure.at("series")) {
    result["series"].push_back(series.contains("run") ? run_series(figure, series)
                                                      : bench_series(figure, series));
    if (series.contains("paper")) result["series"].back()["paper"] = series.at("paper");
  }
  for (const Json& expectation : figure.value("expect", Json::array())) {
    Json judgement = compare_with(result, expectation);
    if (!judgement.is_null()) result["expectations"].push_back(std::move(judgement));
  }
  return result;
}

Json Paper::run_series(const Json& figure, const Json& series) {
  Json result = {{"name", series.at("name")},
                 {"x", Json::array()},
                 {"values", Json::array()},
                 {"commands", Json::array()}};
  const auto add = [&](const Json& at) {
    const std::string command = command_at(series, at);
    result["x"].push_back(at.at("x"));
    result["values"].push_back(point(figure, series, command));
    result["commands"].push_back(command_of("run " + command, options_.launcher));
  };
  if (figure.contains("points")) {
    for (const Json& each : figure.at("points")) {
      if (!options_.quick || each.value("quick", true)) add(each);
    }
    return result;
  }
  const char* const key = options_.quick && series.contains("quick") ? "quick" : "x";
  for (const Json& x : series.at(key)) add({{"x", x}});
  return result;
}

Json Paper::bench_series(const Json& figure, const Json& series) {
  const bool shorter = options_.quick && figure.contains("quick_bench");
  const auto command = figure.at(shorter ? "quick_bench" : "bench").get<std::string>();
  const Json results = results_of(command);
  Json values = at_pointers(results, series.at("values"));
  Json x = series.contains("x") ? series.at("x") : Json::array();
  if (figure.contains("x")) x = at_pointers(results, figure.at("x"));
  if (!values.is_array()) values = Json::array({values});  // a value that no x has
  for (Json& value : values) {
    if (!value.is_null()) value = value.get<double>() * scale_of(figure, series);
  }
  if (values.size() == 1 && x.size() > 1) x = Json::array({x.front()});
  for (std::size_t i = x.size(); i < values.size(); ++i) x.push_back(i);
  return {{"name", series.at("name")},
          {"x", std::move(x)},
          {"values", std::move(values)},
          {"commands", Json::array({command_of("bench " + command, options_.launcher)})}};
}

/// Returns the value of a point: what its series names, the time in milliseconds, or the rate; null
/// where it failed.
Json Paper::point(const Json& figure, const Json& series, const std::string& command) {
  const bool reported = series.contains("value");
  const Json found = values_of_run(command, reported);
  const std::string name = reported                    ? series.at("value").get<std::string>()
                           : figure.at("unit") == "ms" ? "seconds"
                                                       : "gflops";
  const Json value = found.value(name, Json());
  return value.is_null() ? value : Json(value.get<double>() * scale_of(figure, series));
}

/// Returns the values of a run, by name; or of its report, by pointer.
Json Paper::values_of_run(const std::string& command, bool reported) {
  Interruption::check();
  const std::string shown = command_of("run " + command, options_.launcher);
  if (const auto known = known_.find(shown); known != known_.end()) return known->second;
  progress_.update(measured_, 0, fmt::format("{} measured, now {}", measured_, shown));
  ++measured_;
  Json values = Json::object();
  try {
    if (reported) {
      const Json report = report_of("run " + command, options_.launcher);
      for (const std::string& pointer : pointers_) {
        const Json value = at_pointer(report, pointer);
        if (value.is_number()) values[pointer] = value;
      }
    } else {
      values = run_words(command);
    }
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;  // the domain cannot be divided so
  }
  return known_[shown] = std::move(values);
}

Json Paper::results_of(const std::string& command) {
  Interruption::check();
  if (!benches_.contains(command)) {
    progress_.update(measured_, 0, "weir bench " + command);
    benches_[command] = is_experiment(command) ? bench_words(command)
                                               : report_of("bench " + command, options_.launcher);
  }
  return benches_.at(command);
}

/// Takes the values of an earlier run of the same version from its file.
void Paper::recall() {
  std::ifstream file(options_.output + ".json");
  const Json found = Json::parse(file, nullptr, false);
  const auto is = [&](const char* key, const std::string& value) {
    return found.contains(key) && found.at(key) == value;
  };
  if (!is("schema", kSchema) || !is("version", version_line()) || !found.contains("measured"))
    return;
  for (const auto& [command, figures] : found.at("measured").items()) {
    const auto is_number = [](const Json& value) { return value.is_number(); };
    if (figures.is_object() && !figures.empty() &&
        std::all_of(figures.begin(), figures.end(), is_number)) {
      known_[command] = figures;
    }
  }
}

Json Paper::json() const {
  Json measured = Json::object();
  for (const auto& [command, figures] : known_) measured[command] = figures;
  return {{"schema", kSchema},
          {"version", version_line()},
          {"command", command_line()},
          {"paper", number_},
          {"title", description_.at("title")},
          {"platform", description_.at("platform")},
          {"quick", options_.quick},
          {"papers_figures", figures_},
          {"measured", std::move(measured)}};
}

void Paper::write() const {
  apps::OutputFile file(options_.output + ".json");
  file.append(json().dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  file.flush();
  file.commit();
  std::vector<report::Part> parts(1);
  parts[0].source = options_.output + ".json";
  parts[0].facts = json();
  report::write_page(parts, command_line(), options_.output + ".html");
}

std::string Paper::text() const {
  std::string text =
      fmt::format("{}\n{}\n", paint(description_.at("title").get<std::string>(), Tone::strong),
                  description_.at("platform").get<std::string>());
  for (const Json& figure : figures_) {
    text +=
        fmt::format("\n{} {} [{}]\n", paint(as_word(figure.at("figure")), Tone::strong),
                    figure.at("title").get<std::string>(), figure.at("unit").get<std::string>());
    text += table_of(figure);
    Table table;
    table.add({"", "paper", "here", "expected", ""});
    for (const Json& each : figure.at("expectations")) {
      table.add({each.at("words").get<std::string>(), cell(each.at("paper")), cell(each.at("ours")),
                 each.at("expected").get<std::string>(), verdict_of(each)});
    }
    if (!figure.at("expectations").empty()) text += table.text(2, {1, 2});
  }
  return text + fmt::format("\n{0}.html has the plots, {0}.json all values and their commands\n",
                            options_.output);
}

bool Paper::holds() const {
  for (const Json& figure : figures_) {
    const Json& all = figure.at("expectations");
    if (std::any_of(all.begin(), all.end(), is_failure)) return false;
  }
  return true;
}

}  // namespace weir::cli::paper
