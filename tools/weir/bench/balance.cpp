#include "bench/balance.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weir/weir.hpp>

#include "command_line.hpp"
#include "description.hpp"
#include "interruption.hpp"
#include "own_process.hpp"

namespace weir::cli::bench {

namespace {

using Json = nlohmann::ordered_json;

/// A setting follows its domain behind a comma, as domains follow one another.
std::vector<std::string> divide(const std::string& domains) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= domains.size();) {
    const std::size_t end = std::min(domains.find(',', at), domains.size());
    const std::string part = domains.substr(at, end - at);
    const std::size_t equals = part.find('=');
    if (!all.empty() && equals != std::string::npos && part.find(':') > equals) {
      all.back() += "," + part;
    } else {
      all.push_back(part);
    }
    at = end + 1;
  }
  return all;
}

double number(const Json& point, const char* name) { return point.at(name).get<double>(); }

}  // namespace

void Balance::add_options(CLI::App& app) {
  app.add_option("--domains", domains_, "Domains that share the options [host]");
  app.add_option("--n", options_, "Options to price [64]")->check(CLI::Range(1, 1'000'000));
  app.add_option("--chunks", chunks_, "Sizes of chunks, as 1,2,4 [1,2,3,4,6,8,12,16]")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--ranks", ranks_, "Number of ranks for figure 11; 1 skips the figure [3]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--repeat", repeat_, "Runs of each point; the first does not count [3]")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--json", json_, "Print one JSON object");
}

void Balance::run() {
  const Json machine =
      describe(open_runtime({domains_, ""})).at("machine");  // before it takes time
  const std::size_t domains = divide(domains_).size();
  points_ = 2 * domains + chunks_.size() + (ranks_ > 1 ? 4 : 0) + 4;
  measure_alone();
  measure_chunks();
  if (ranks_ > 1) measure_ranks();
  measure_together();
  progress_.clear();
  const Json all = {{"schema", "weir.bench/1"},  {"benchmark", "balance"},
                    {"command", command_line()}, {"domains", domains_},
                    {"options", options_},       {"figures", figures_},
                    {"machine", machine}};
  print(json_ ? all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text());
}

/// Prices the options once and returns the result.
Json Balance::point(const Words& labels, const Words& options) {
  Interruption::check();
  progress_.update(measured_++, points_, "pricing");
  Words words = {"run", "asian-option", "--json", fmt::format("--n={}", options_),
                 fmt::format("--repeat={}", repeat_)};
  words.insert(words.end(), options.begin(), options.end());
  const Json report = Json::parse(output_of(words));
  const Json& share = report.at("share");
  double busy = 0, idle = 0, visits = 0;
  for (const Json& place : share.at("places")) {
    busy += number(place, "busy_s");
    idle += number(place, "idle_s");
    visits += number(place, "visits");
  }
  Json result = {{"label", labels},
                 {"path_steps_per_s", share.at("path_steps_per_s")},
                 {"ratio", share.at("ratio")},
                 {"makespan_s", share.at("makespan_s")},
                 {"visits", visits},
                 {"idle", busy + idle > 0 ? idle / (busy + idle) : 0}};
  return result;
}

void Balance::measure_alone() {
  Json figure = {{"figure", 9}, {"title", "each domain alone"}, {"points", Json::array()}};
  for (const std::string& domain : divide(domains_)) {
    for (const char* shape : {"mt", "mo"}) {
      figure["points"].push_back(point({domain, shape}, {"--domains", domain, "--shape", shape}));
    }
  }
  figures_.push_back(std::move(figure));
}

/// The paper's two quantities, each over its largest: idle time, and the visits that communication
/// takes.
void Balance::measure_chunks() {
  Json points = Json::array();
  for (const std::size_t chunk : chunks_) {
    points.push_back(
        point({fmt::format("{}", chunk)},
              {"--domains", domains_, "--shape", "mt", "--chunk", fmt::format("fixed:{}", chunk)}));
  }
  double most_idle = 0, most_visits = 0;
  for (const Json& each : points) {
    most_idle = std::max(most_idle, number(each, "idle"));
    most_visits = std::max(most_visits, number(each, "visits"));
  }
  for (Json& each : points) {
    each["idle_of_most"] = most_idle > 0 ? number(each, "idle") / most_idle : 0;
    each["communication_of_most"] = most_visits > 0 ? number(each, "visits") / most_visits : 0;
  }
  figures_.push_back(
      {{"figure", 10}, {"title", "chunks of ever more options"}, {"points", points}});
}

void Balance::measure_ranks() {
  Json points = Json::array();
  for (const char* scheduler : {"onesided", "master"}) {
    for (const char* progress : {"thread", "manual"}) {
      points.push_back(point({scheduler, progress},
                             {"--ranks", fmt::format("{}", ranks_), "--domains", "host:cores=1",
                              "--scheduler", scheduler, "--progress", progress}));
    }
  }
  figures_.push_back(
      {{"figure", 11},
       {"title", fmt::format("{} ranks of one core, with and without a master", ranks_)},
       {"points", points}});
}

void Balance::measure_together() {
  const Json& alone = figures_.front().at("points");
  double sum = 0;
  for (std::size_t i = 0; i + 1 < alone.size(); i += 2) {
    sum += std::max(number(alone[i], "path_steps_per_s"), number(alone[i + 1], "path_steps_per_s"));
  }
  Json points = Json::array();
  for (const char* shape : {"mt", "mo", "hybrid", "auto"}) {
    Json together = point({shape}, {"--domains", domains_, "--shape", shape});
    together["of_sum"] = number(together, "path_steps_per_s") / sum;
    points.push_back(std::move(together));
  }
  figures_.push_back({{"figure", 12},
                      {"title", "all domains together, against the sum of the best of each"},
                      {"sum_path_steps_per_s", sum},
                      {"points", points}});
}

std::string Balance::text() const {
  std::string text;
  for (const Json& figure : figures_) {
    text += fmt::format("figure {}: {}\n", figure.at("figure").get<int>(),
                        figure.at("title").get<std::string>());
    Table table;
    table.add({"", "million steps/s", "makespan/ideal", "visits", "idle", "of the sum"});
    for (const Json& each : figure.at("points")) {
      std::string label;
      for (const Json& word : each.at("label")) label += word.get<std::string>() + " ";
      table.add(
          {label, fmt::format("{:.1f}", number(each, "path_steps_per_s") / 1e6),
           fmt::format("{:.3f}", number(each, "ratio")),
           fmt::format("{:.0f}", number(each, "visits")),
           fmt::format("{:.1f} %", 100 * number(each, "idle")),
           each.contains("of_sum") ? fmt::format("{:.1f} %", 100 * number(each, "of_sum")) : "-"});
    }
    text += table.text(2, {1, 2, 3, 4, 5});
  }
  return text;
}

}  // namespace weir::cli::bench
