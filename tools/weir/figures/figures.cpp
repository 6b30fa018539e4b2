#include "figures/figures.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <weir/weir.hpp>

#include "command_line.hpp"
#include "common/counted.hpp"
#include "common/file.hpp"
#include "common/input_error.hpp"
#include "description.hpp"
#include "interruption.hpp"
#include "ranks.hpp"
#include "report/page.hpp"
#include "suggest.hpp"
#include "tuned_problem.hpp"

namespace weir::cli::figures {

namespace {

constexpr const char* kSchema = "weir.figures/1";
/// The applications of the paper.
constexpr std::array<std::string_view, 9> kPaper = {
    "matmul", "cholesky", "kmeans", "hotspot", "nn", "srad", "dct", "prefixsum", "dotproduct"};
const tuner::Point kWithout{1, 1, 1};  ///< no streams, no tiles
constexpr std::size_t kMostSwept = 64;
constexpr std::size_t kFewPlaces = 4;  ///< of figure 8
constexpr std::size_t kFinest = 4;     ///< times the tiles of the application

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write(const std::string& path, const std::string& text) {
  apps::OutputFile file(path);
  file.append(text);
  file.flush();
  file.commit();
}

}  // namespace

void Figures::add_options(CLI::App& app) {
  command_ = &app;
  add_problem_options(app, options_, nullptr);
  options_.repeat = 11;
  app.add_option("--apps", names_, "Applications, as matmul,cholesky [those of the paper]")
      ->delimiter(',');
  app.add_option("--repeat", options_.repeat,
                 "Number of runs; with more than one, the first does not count [11]")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("-o,--output", output_,
                 "Base name of the output files (.json and .html are added) [figures]");
  app.add_flag("--fresh", fresh_, "Discard stored results and measure everything again");
  app.add_flag("--json", json_, "Print one JSON object");
}

void Figures::run() {
  try {
    options_.quiet = true;
    options_.domains = domains_of(options_);
    const auto applications = chosen();
    for (const apps::Application* application : applications) check(*application);
    if (serve(applications)) return;
    machine_ = describe(Runtime("null")).at("machine");
    if (!fresh_) recall();
    for (apps::Application* application : applications) run(*application);
    keep();
    std::vector<report::Part> parts(1);
    parts[0].source = output_ + ".json";
    parts[0].facts = head();
    report::write_page(parts, command_line(), output_ + ".html");
  } catch (const apps::InputError& error) {
    throw weir::Error(WEIR_STATUS_INVALID_ARGUMENT, error.what());
  }
  progress_.clear();
  print(json_ ? dumped(head(), 2) : text());
}

/// Whether this process is a rank that served another one, until its end.
bool Figures::serve(const std::vector<apps::Application*>& applications) const {
  return serve_ranks(options_.domains, [&](const Runtime& runtime) {
    for (const apps::Application* application : applications) {
      RunOptions options = options_;
      complete(*application, options);
      application->register_kernels(options.parameters, runtime);
    }
  });
}

std::vector<apps::Application*> Figures::chosen() const {
  std::vector<apps::Application*> chosen;
  for (const auto& application : applications_) {
    const bool wanted =
        names_.empty()
            ? std::find(kPaper.begin(), kPaper.end(), application->name()) != kPaper.end()
            : std::find(names_.begin(), names_.end(), application->name()) != names_.end();
    if (wanted) chosen.push_back(application.get());
  }
  for (const std::string& name : names_) {
    const bool known = std::any_of(chosen.begin(), chosen.end(),
                                   [&](const auto* each) { return each->name() == name; });
    if (known) continue;
    std::vector<std::string> names;
    for (const auto& application : applications_) names.push_back(application->name());
    throw weir::Error(WEIR_STATUS_NOT_FOUND,
                      fmt::format("there is no application '{}'{}; 'weir run --help' lists all",
                                  name, did_you_mean(name, names)));
  }
  return chosen;
}

/// Refuses options that an application does not take, as wrong use of the command line.
void Figures::check(const apps::Application& application) const {
  const std::string name = application.name();
  const auto refuse = [&](const std::string& why) {
    throw CLI::ValidationError(fmt::format("{} {}", name, why));
  };
  if (!application.has_tiles()) {
    refuse("has no tiles, whose number the figures vary: choose other applications with --apps");
  }
  const auto presets = application.presets();
  const bool has_size = std::any_of(presets.begin(), presets.end(), [&](const auto& preset) {
    return options_.size == preset.name;
  });
  const auto given = [&](const char* option) { return command_->count(option) > 0; };
  if (given("--size") && !has_size) {
    refuse(fmt::format("has no size '{}': use --n instead of --size", options_.size));
  }
  if (given("--precision") && !application.has_precision()) {
    refuse("has only one precision: remove --precision");
  }
  for (const char* const option : {"--n", "--seed", "--input"}) {
    if (!given(option) || application.uses(option)) continue;
    refuse(fmt::format("does not use {0}: remove {0}", option));
  }
}

Json Figures::head() const {
  return {{"schema", kSchema},
          {"version", weir_version()},
          {"command", command_line()},
          {"n", options_.parameters.n},
          {"size", options_.size},
          {"precision", options_.precision},
          {"seed", options_.parameters.seed},
          {"input", options_.parameters.input},
          {"repeat", options_.repeat},
          {"figures", figures_},
          {"times", times_},
          {"machine", machine_}};
}

/// Loads the times of a file that was made under the same conditions. Failed measurements are
/// repeated.
void Figures::recall() {
  std::ifstream file(output_ + ".json");
  const Json found = Json::parse(file, nullptr, false);
  if (!found.is_object() || !found.contains("times") || !found["times"].is_object()) return;
  const Json ours = head();
  for (const char* key :
       {"schema", "version", "n", "size", "precision", "seed", "input", "repeat", "machine"}) {
    if (!found.contains(key) || found[key] != ours[key]) return;
  }
  for (const auto& [key, seconds] : found["times"].items()) {
    if (seconds.is_number()) times_[key] = seconds;
  }
}

void Figures::keep() const { write(output_ + ".json", dumped(head(), 1)); }

RunReport Figures::measure(apps::Application& application, const std::string& domains,
                           const tuner::Point& point, std::size_t repeat) const {
  RunOptions options = options_;
  options.domains = domains;
  complete(application, options);
  divide(options, point);
  options.repeat = repeat;
  return run_application(application, options);
}

std::optional<double> Figures::seconds(apps::Application& application, const std::string& domains,
                                       const tuner::Point& point) {
  Interruption::check();
  const std::string key = fmt::format(
      "{} on {}: {}, {}, {}", application.name(), domains, apps::counted(point.places, "place"),
      apps::counted(point.streams, "stream"), apps::counted(point.tiles, "tile"));
  if (!times_.contains(key)) {
    progress_.update(measured_, 0, fmt::format("{} measured, now {}", measured_, key));
    ++measured_;
    try {
      tuner::Evaluation evaluation;
      evaluation.samples = measure(application, domains, point, options_.repeat).samples;
      times_[key] = evaluation.seconds();
    } catch (const weir::Error&) {
      times_[key] = nullptr;
    }
    keep();
  }
  const Json& known = times_[key];
  return known.is_null() ? std::optional<double>() : known.get<double>();
}

Figures::Shape Figures::shape_of(apps::Application& application) {
  const RunReport report = measure(application, options_.domains, tuner::kDefault, 1);
  const Json facts = Json::parse(report.description);
  std::size_t cores = SIZE_MAX;
  for (const Json& domain : facts.at("domains")) {
    const auto threads = domain.at("cores").get<std::size_t>();
    cores = std::min(cores, threads / domain.value("threads_per_core", std::size_t{1}));
  }
  Shape shape;
  for (std::size_t places = 1; places <= cores; ++places) {
    const bool special = cores % places == 0 || (places & (places - 1)) == 0;
    if (cores <= kMostSwept || special) shape.places.push_back(places);
    if (cores % places == 0 && places <= kFewPlaces) shape.few_places = places;
  }
  const std::size_t most = kFinest * std::max<std::size_t>(1, report.tiles);
  for (std::size_t tiles = 1; tiles <= most; tiles *= 2) {
    shape.tiles.push_back(tiles);
    if (tiles > 1 && tiles + tiles / 2 <= most) shape.tiles.push_back(tiles + tiles / 2);
  }
  return shape;
}

void Figures::add(int number, const std::string& application, const char* x_name,
                  std::vector<Json> x, const std::vector<std::optional<double>>& seconds) {
  Json times = Json::array();
  for (const auto& each : seconds) times.push_back(each ? Json(*each) : Json(nullptr));
  figures_.push_back({{"figure", number},
                      {"app", application},
                      {"x_name", x_name},
                      {"x", std::move(x)},
                      {"seconds", std::move(times)}});
}

void Figures::run(apps::Application& application) {
  const std::string& domains = options_.domains;
  const Shape shape = shape_of(application);
  const std::size_t streams = tuner::kDefault.streams;
  std::vector<std::optional<double>> over_places, over_tiles;
  for (const std::size_t places : shape.places) {
    over_places.push_back(seconds(application, domains, {places, streams, 0}));
  }
  for (const std::size_t tiles : shape.tiles) {
    over_tiles.push_back(seconds(application, domains, {shape.few_places, streams, tiles}));
  }
  std::optional<double> best;
  for (const auto* sweep : {&over_places, &over_tiles}) {
    for (const auto& each : *sweep) {
      if (each && (!best || *each < *best)) best = each;
    }
  }
  const char* const name = application.name();
  add(6, name, "streams", {"without", "with"}, {seconds(application, domains, kWithout), best});
  add(7, name, "places", {shape.places.begin(), shape.places.end()}, over_places);
  add(8, name, "tiles along an edge", {shape.tiles.begin(), shape.tiles.end()}, over_tiles);
  add(9, name, "devices", {1, 2},
      {seconds(application, domains, tuner::kDefault),
       seconds(application, domains + "," + domains, tuner::kDefault)});
}

std::string Figures::text() const {
  const auto time = [](const Json& seconds) {
    return seconds.is_null() ? std::string("-") : format_seconds(seconds.get<double>());
  };
  Table table;
  table.add({"", "without streams", "with", "gain", "best places", "best tiles", "two devices"});
  for (std::size_t i = 0; i + 3 < figures_.size(); i += 4) {
    const auto best = [&](const Json& figure) {
      const Json *at = nullptr, *least = nullptr;
      for (std::size_t k = 0; k < figure.at("x").size(); ++k) {
        const Json& seconds = figure.at("seconds")[k];
        if (seconds.is_null() || (least != nullptr && seconds >= *least)) continue;
        least = &seconds;
        at = &figure.at("x")[k];
      }
      return at == nullptr ? std::string("-") : at->dump();
    };
    const Json& pair = figures_[i].at("seconds");
    const bool both = !pair[0].is_null() && !pair[1].is_null() && pair[1].get<double>() > 0;
    table.add({figures_[i].at("app").get<std::string>(), time(pair[0]), time(pair[1]),
               both ? fmt::format("{:.2f}", pair[0].get<double>() / pair[1].get<double>()) : "-",
               best(figures_[i + 1]), best(figures_[i + 2]),
               time(figures_[i + 3].at("seconds")[1])});
  }
  return table.text(0, {1, 2, 3, 4, 5, 6}) +
         fmt::format("{0}.html has the plots, {0}.json all times\n", output_);
}

}  // namespace weir::cli::figures
