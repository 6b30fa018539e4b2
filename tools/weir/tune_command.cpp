// `weir tune`: chooses how to divide a run, and shows earlier results of this machine.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weir/weir.hpp>

#include "application_run.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "description.hpp"
#include "interruption.hpp"
#include "ranks.hpp"
#include "terminal.hpp"
#include "tuned_problem.hpp"
#include "tuner/reasons.hpp"
#include "tuner/search.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kLongestBudgetS = 1e9;  // clocks do not count for ever

struct TuneOptions {
  RunOptions run;
  double budget_s = 60;
  std::size_t evaluations = 0;  ///< 0: a tenth of all pairs of places and tiles
  std::size_t most_tiles = 0;   ///< 0: four times those of the application
  bool exhaustive = false, fresh = false, json = false;
};

/// One application that is being tuned.
class Tuning final : private Stoppable {
 public:
  /// `words` are the options of the problem, for another command.
  Tuning(apps::Application& application, const TuneOptions& options, tuner::Problem problem,
         std::string words)
      : application_(application),
        options_(options),
        words_(std::move(words)),
        samples_(std::move(problem)),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(std::min(options.budget_s, kLongestBudgetS)))) {
    if (!options.fresh) known_ = samples_.evaluations();
    resumed_ = known_.size();
  }

  void perform() {
    try {
      search();
      remember();
    } catch (const Interrupted&) {
      remember();
      Interruption::Scope scope(*this);
      scope.save();
      throw;
    }
  }

  std::string text() const;
  std::string json() const;

 private:
  void stop() noexcept override {}
  std::string save() noexcept override {
    try {
      return fmt::format(
          "tuning of {}; the measurements so far are kept, {}: run the command again to continue",
          application_.name(),
          apps::counted(search_ ? search_->evaluations().size() : 0, "division"));
    } catch (...) {
      return "";
    }
  }

  void search();
  void measure_default();
  void find_space(const RunReport& report);
  std::optional<tuner::Evaluation> measure(const tuner::Point& point);
  RunReport run(const tuner::Point& point, std::size_t repeat) const;
  tuner::Evaluation evaluation_of(const tuner::Point& point, const RunReport& report) const;
  tuner::Account account_of(const report::Analysis& analysis) const;
  void keep() const { samples_.keep(search_->evaluations()); }
  void remember() const;
  std::size_t most_evaluations() const;
  std::string command_of(const tuner::Point& point) const;

  apps::Application& application_;
  const TuneOptions& options_;
  const std::string words_;
  const tuner::Samples samples_;
  const Clock::time_point deadline_;
  std::vector<tuner::Evaluation> known_;
  std::size_t resumed_ = 0, measured_ = 0;
  tuner::Space space_;
  std::vector<std::string> policies_;  ///< of task queues, if the application has tasks
  std::optional<tuner::Search> search_;
  std::string machine_;
  Progress progress_;
};

RunReport Tuning::run(const tuner::Point& point, std::size_t repeat) const {
  RunOptions options = options_.run;
  divide(options, point);
  options.repeat = repeat;
  options.quiet = true;
  return run_application(application_, options);
}

tuner::Evaluation Tuning::evaluation_of(const tuner::Point& point, const RunReport& report) const {
  return {.point = point,
          .tiles = report.tiles,
          .samples = report.samples,
          .link_s = report.trace.busiest_link_s,
          .compute_s = report.trace.compute_s,
          .critical_s = report.trace.critical_path_s,
          .account = account_of(report.analysis)};
}

/// Cores of places that a run left alone were idle as well.
tuner::Account Tuning::account_of(const report::Analysis& analysis) const {
  const report::Spent& spent = analysis.spent;
  const double cores = static_cast<double>(std::max<std::uint64_t>(space_.threads, analysis.cores));
  const double work_s = std::min(spent.computing_s, analysis.core_s / cores);
  return {.work_s = work_s,
          .idle_s = spent.computing_s - work_s,
          .exposed_s = spent.exposed_s(),
          .nothing_s = spent.starting_s + spent.waiting_s,
          .kernels = analysis.kernels};
}

void Tuning::find_space(const RunReport& report) {
  const Json facts = Json::parse(report.description);
  machine_ = facts.at("machine").dump();
  space_.most_places = std::numeric_limits<std::size_t>::max();
  space_.threads = 0;
  space_.noisy = false;
  for (const Json& domain : facts.at("domains")) {
    const auto threads = domain.at("cores").get<std::size_t>();
    const std::size_t cores = threads / domain.value("threads_per_core", std::size_t{1});
    space_.cores = std::max(space_.cores, cores);
    space_.most_places = std::min(space_.most_places, cores);
    space_.threads += threads;
    space_.noisy = space_.noisy || !domain.at("virtual_time").get<bool>();
  }
  for (const Json& policy : facts.at("policies")) {
    if (application_.has_tasks()) policies_.push_back(policy.at("name").get<std::string>());
  }
  constexpr std::size_t kFinest = 4;
  const std::size_t usual = std::max<std::size_t>(1, report.tiles);
  space_.most_tiles = options_.most_tiles > 0 ? options_.most_tiles : kFinest * usual;
  if (!application_.has_tiles()) space_.most_tiles = 0;
  if (!application_.uses("--places")) space_.most_places = 1;
}

/// Runs twice in virtual time: kernels without a cost function are measured, and their times vary.
void Tuning::measure_default() {
  progress_.update(0, 0, "measuring the default");
  const RunReport report = run(tuner::kDefault, 2);
  find_space(report);
  if (!space_.noisy) space_.noisy = run(tuner::kDefault, 1).samples[0] != report.samples[0];
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [](const auto& each) { return each.point == tuner::kDefault; });
  ++measured_;
  if (known == known_.end()) {
    known_.push_back(evaluation_of(tuner::kDefault, report));
  } else {
    known->samples.insert(known->samples.end(), report.samples.begin(), report.samples.end());
  }
}

/// Measures a division; returns nullopt, not an error, for one that is impossible.
std::optional<tuner::Evaluation> Tuning::measure(const tuner::Point& point) {
  Interruption::check();
  const bool again = measured_ >= most_evaluations();
  progress_.update(again ? 0 : measured_, again ? 0 : most_evaluations(),
                   fmt::format("measuring {}, {}{}", apps::counted(point.places, "place"),
                               apps::counted(point.tiles, "tile"), again ? " again" : ""));
  ++measured_;
  try {
    // A queue learns in its first run how long kernels take.
    return evaluation_of(point, run(point, space_.noisy || !point.policy.empty() ? 2 : 1));
  } catch (const weir::Error&) {
    return {};
  }
}

/// For `weir run --tuned`, and for programs.
void Tuning::remember() const {
  if (!search_) return;
  const tuner::Evaluation& best = search_->best();
  weir_wisdom wisdom = WEIR_WISDOM_INIT;
  wisdom.places = best.point.places;
  wisdom.streams = best.point.streams;
  wisdom.tiles = best.point.tiles;
  wisdom.aspect = best.point.aspect;
  wisdom.seconds = best.seconds();
  best.point.policy.copy(wisdom.policy, sizeof wisdom.policy - 1);
  const tuner::Problem& problem = samples_.problem();
  open_runtime({options_.run.domains, ""}).keep_wisdom(problem.name(), problem.n, wisdom);
}

std::size_t Tuning::most_evaluations() const {
  constexpr std::size_t kLeast = 12, kShare = 10;
  if (options_.exhaustive) return space_.size();
  return options_.evaluations > 0 ? options_.evaluations : std::max(kLeast, space_.size() / kShare);
}

void Tuning::search() {
  measure_default();
  tuner::Source source;
  source.measure = [this](const tuner::Point& point) {
    auto made = measure(point);
    return made;
  };
  source.may_go_on = [this] {
    if (search_) keep();
    Interruption::check();
    return Clock::now() < deadline_;
  };
  source.policies = policies_;
  source.streams = application_.uses("--streams");
  source.shapes = application_.has_shapes();
  search_.emplace(space_, std::move(known_), std::move(source));
  keep();
  if (options_.exhaustive) {
    search_->run_exhaustively();
  } else {
    search_->run(most_evaluations() - 1);  // the default is one
  }
  keep();
  progress_.clear();
}

std::string Tuning::command_of(const tuner::Point& point) const {
  std::vector<std::string> words;
  if (application_.uses("--places")) words.push_back(fmt::format("--places {}", point.places));
  if (application_.uses("--streams")) words.push_back(fmt::format("--streams {}", point.streams));
  if (point.tiles > 0) words.push_back(fmt::format("--tiles {}", point.tiles));
  if (point.aspect > 1) words.push_back(fmt::format("--aspect {}", point.aspect));
  if (!point.policy.empty()) words.push_back("--policy " + point.policy);
  return words.empty() ? "nothing to choose" : fmt::format("{}", fmt::join(words, " "));
}

std::string Tuning::text() const {
  const tuner::Evaluation& best = search_->best();
  const tuner::Evaluation& usual = *search_->find(tuner::kDefault);
  std::string text = fmt::format("{}: {}\n", paint(application_.name(), Tone::strong),
                                 paint(command_of(best.point), Tone::good));
  Table table;
  table.add(
      {paint("time", Tone::faint),
       fmt::format("{}, the default takes {}: {:.2f} times as fast", format_seconds(best.seconds()),
                   format_seconds(usual.seconds()), usual.seconds() / best.seconds())});
  for (const std::string& reason : tuner::reasons(*search_, space_)) {
    table.add({paint("why", Tone::faint), reason});
  }
  table.add({paint("measured", Tone::faint),
             fmt::format("{}, {} of them in earlier calls, of {} of places and tiles",
                         apps::counted(search_->evaluations().size(), "division"), resumed_,
                         apps::counted(space_.size(), "pair"))});
  if (!samples_.path().empty()) {
    table.add(
        {paint("kept", Tone::faint), fmt::format("{}; use it with: weir run {}{} --tuned",
                                                 samples_.path(), application_.name(), words_)});
  }
  return text + table.text(2);
}

std::string Tuning::json() const {
  const tuner::Evaluation& best = search_->best();
  Json json = {{"schema", "weir.tune/1"},
               {"app", application_.name()},
               {"command", command_line()},
               {"chosen", tuner::as_json(best)},
               {"default", tuner::as_json(*search_->find(tuner::kDefault))},
               {"reasons", tuner::reasons(*search_, space_)},
               {"space",
                {{"cores", space_.cores},
                 {"most_places", space_.most_places},
                 {"most_tiles", space_.most_tiles},
                 {"noisy", space_.noisy}}},
               {"measured", measured_},
               {"resumed", resumed_},
               {"wisdom", samples_.path()}};
  json["evaluations"] = Json::array();
  for (const auto& each : search_->evaluations()) {
    json["evaluations"].push_back(tuner::as_json(each));
  }
  json["machine"] = Json::parse(machine_);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

class TuneCommand final : public Command {
 public:
  const char* name() const override { return "tune"; }
  const char* summary() const override {
    return "Choose places, streams, tiles and their shape; show measured kernel times";
  }

  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    app.footer(
        "\nExamples:\n"
        "  weir tune matmul --n 4096 --budget 30\n"
        "  weir run matmul --n 4096 --tuned\n"
        "  weir tune cholesky --domains sim:clock=virtual,cores=56,gflops=16,kernels=skip\n"
        "  weir tune models --json\n");
    models_ = app.add_subcommand("models", "Show the kernel times that task queues have measured");
    models_->add_flag("--json", options_.json, "Print one JSON object");
    for (const auto& application : applications_) {
      CLI::App* const command = app.add_subcommand(application->name(), application->summary());
      add_tune_options(*command, *application);
      apps::CommandOptions options(*command);
      application->add_options(options);
      commands_.push_back(command);
    }
  }

  ExitCode run() override {
    if (models_->parsed()) {
      const weir::Runtime runtime("null");
      const Json models = Json::parse(runtime.describe()).at("models");
      print(options_.json ? as_json(models) : as_text(models));
      return ExitCode::ok;
    }
    std::size_t index = 0;
    while (!commands_[index]->parsed()) ++index;
    apps::Application& application = *applications_[index];
    complete(application, options_.run);
    const auto prepare = [&](const Runtime& runtime) {
      application.register_kernels(options_.run.parameters, runtime);
    };
    if (serve_ranks(options_.run.domains, prepare)) return ExitCode::ok;
    Tuning tuning(application, options_,
                  problem_of(*commands_[index], application.name(), options_.run),
                  problem_words(*commands_[index]));
    tuning.perform();
    print(options_.json ? tuning.json() : tuning.text());
    return ExitCode::ok;
  }

 private:
  void add_tune_options(CLI::App& app, const apps::Application& application) {
    TuneOptions& o = options_;
    const CLI::Range count{1, 1'000'000};
    add_problem_options(app, o.run, &application);
    app.add_option("--budget", o.budget_s, "Time limit for measuring, such as 60s or 5m [60s]")
        ->transform(
            CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}}))
        ->check(CLI::PositiveNumber);
    app.add_option("--evaluations", o.evaluations,
                   "Maximum number of divisions to measure [a tenth of all, at least 12]")
        ->check(count);
    if (application.has_tiles()) {
      app.add_option(
             "--most-tiles", o.most_tiles,
             "Maximum number of tiles along an edge [4 times as many as the application chooses]")
          ->check(count);
    }
    app.add_flag("--exhaustive", o.exhaustive,
                 "Measure all numbers of places and tiles within the budget");
    app.add_flag("--fresh", o.fresh, "Discard earlier measurements");
    app.add_flag("--json", o.json, "Print one JSON object");
    std::vector<const char*> chosen = {"--places", "--streams", "--policy"};
    if (application.has_shapes()) chosen.push_back("--aspect");
    if (application.has_tiles()) chosen.insert(chosen.end(), {"--tile", "--tiles"});
    for (const char* const option : chosen) {
      refuse_option(app, option, "weir tune chooses its value; remove it");
    }
  }

  static std::string as_json(const Json& models) {
    const Json all = {{"schema", "weir.models/1"}, {"models", models}};
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  static std::string as_text(const Json& models) {
    if (models.empty()) {
      return "No kernel times were measured on this machine yet; run: weir run cholesky --domains "
             "host,sim --policy finish\n";
    }
    Table table;
    table.add({"kernel", "operands", "calls", "mean time", "place"});
    for (const Json& model : models) {
      table.add({model.at("kernel").get<std::string>(),
                 format_bytes(model.at("bytes").get<std::uint64_t>()),
                 format_count(model.at("calls").get<std::uint64_t>()),
                 format_seconds(model.at("mean_ns").get<double>() / 1e9),
                 model.at("place").get<std::string>()});
    }
    return table.text(0, {1, 2, 3});
  }

  TuneOptions options_;
  CLI::App* models_ = nullptr;
  std::vector<std::unique_ptr<apps::Application>> applications_ = apps::make_applications();
  std::vector<CLI::App*> commands_;
};

}  // namespace

std::unique_ptr<Command> make_tune() { return std::make_unique<TuneCommand>(); }

}  // namespace weir::cli
