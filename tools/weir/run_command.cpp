// `weir run`: runs an application, measures it and says what the recording of it shows.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weir/weir.hpp>

#include "command.hpp"
#include "common/input_error.hpp"
#include "common/lanes.hpp"
#include "common/reference_blas.hpp"
#include "common/workload.hpp"
#include "interruption.hpp"
#include "run_report.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

/// What the options say.
struct RunOptions {
  std::string domains, trace;
  std::string policy;  ///< of the task queue, "": streams
  apps::Sharing sharing;
  apps::Parameters parameters;
  std::string size;  ///< name of a preset, "": none
  std::string precision = "double";
  std::size_t repeat = 11;
  double timeout_s = 0;  ///< 0: none
  bool verify = false;
  bool json = false;
};

std::chrono::nanoseconds as_timeout(double seconds) {
  constexpr double kCenturies = 9e9;  // as many nanoseconds as 64 bits hold
  if (!(seconds > 0) || seconds > kCenturies) return weir::forever;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

/// Throws before a long run, not after it, when a file cannot appear where it is asked for.
void check_folder(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw weir::Error(
      WEIR_STATUS_INVALID_ARGUMENT,
      fmt::format("'{}' cannot be written: '{}' is no folder", file, folder.string()));
}

/// One application, prepared on the domains, places and streams asked for.
class Run final : private Stoppable {
 public:
  Run(apps::Application& application, const RunOptions& options)
      : options_(options),
        name_(application.name()),
        runtime_(options.domains.empty() ? nullptr : options.domains.c_str()),
        lanes_(runtime_, options.sharing),
        queue_(make_queue(application)),
        workload_(application.prepare(parameters(), runtime_, lanes_)) {
    report_.application = name_;
  }

  RunReport perform() {
    Interruption::Scope scope(*this);
    try {
      repeat();
      finish();
      describe();
      if (options_.verify) verify();
      Interruption::check();
    } catch (...) {
      cancel();  // what is left must not keep the destructors waiting
      if (!Interruption::requested()) throw;
      scope.save();
      throw Interrupted();
    }
    return std::move(report_);
  }

 private:
  weir::Queue make_queue(const apps::Application& application) const {
    if (options_.policy.empty()) return {};
    if (!application.has_tasks()) {
      throw weir::Error(WEIR_STATUS_UNSUPPORTED,
                        fmt::format("{} has no form for task queues: leave --policy out", name_));
    }
    const std::vector<weir_place*> places = lanes_.place_handles();
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.name = "tasks";
    options.places = places.data();
    options.place_count = places.size();
    options.policy = options_.policy.c_str();
    return runtime_.queue(options);
  }

  apps::Parameters parameters() const {
    apps::Parameters parameters = options_.parameters;
    if (queue_.handle() != nullptr) parameters.queue = &queue_;
    return parameters;
  }

  void stop() noexcept override { cancel(); }

  std::string save() noexcept override {
    std::string words = name_;
    try {
      words += where();
      if (options_.trace.empty()) return words;
      runtime_.write_trace(options_.trace);
      return words + fmt::format("; what was complete is in '{}'", options_.trace);
    } catch (const std::exception& error) {
      return words + "; " + error.what();
    }
  }

  std::string where() const {
    const char* const stage = stage_;
    if (stage != nullptr) return fmt::format(", {}", stage);
    return fmt::format(", run {} of {}", runs_begun_.load(), options_.repeat);
  }

  void repeat() {
    Progress progress;
    for (std::size_t run = 0; run < options_.repeat; ++run) {
      runs_begun_ = run + 1;
      progress.update(run, options_.repeat, "running");
      const bool last = run + 1 == options_.repeat;
      // A run that is stopped has a trace, too.
      if (last || !options_.trace.empty()) runtime_.start_trace();
      const double seconds = run_once();
      Interruption::check();
      const bool warm_up = run == 0 && !last;
      if (!warm_up) report_.samples.push_back(seconds);
    }
    runtime_.stop_trace();
    report_.trace = runtime_.trace_summary();
    if (!options_.trace.empty()) write_trace();
  }

  /// A timeline that finds no room is no reason to lose the results.
  void write_trace() {
    try {
      runtime_.write_trace(options_.trace);
      report_.trace_file = options_.trace;
    } catch (const weir::Error& error) {
      fmt::print(stderr, "{} the timeline is not written: {}\n",
                 paint("weir:", Tone::warning, stderr), error.what());
    }
  }

  double run_once() {
    workload_->reset();
    const weir_stats before = runtime_.stats();
    const auto start = runtime_.now();
    workload_->enqueue();
    workload_->await(as_timeout(options_.timeout_s));
    runtime_.synchronize(as_timeout(options_.timeout_s));
    const std::chrono::duration<double> taken = runtime_.now() - start;
    const weir_stats after = runtime_.stats();
    report_.actions = after.actions_enqueued - before.actions_enqueued;
    report_.bytes_h2d = after.bytes_h2d - before.bytes_h2d;
    report_.bytes_d2h = after.bytes_d2h - before.bytes_d2h;
    report_.bytes_d2d = after.bytes_d2d - before.bytes_d2d;
    report_.bytes_evicted = after.bytes_evicted - before.bytes_evicted;
    return taken.count();
  }

  void finish() {
    stage_ = "working with the result";
    workload_->finish();
    Interruption::check();  // what was stopped may be incomplete
    workload_->save();
  }

  void describe() {
    report_.n = workload_->n();
    report_.tile = workload_->tile();
    report_.tiles = workload_->tiles();
    report_.operations = workload_->operations();
    report_.traffic = workload_->traffic();
    report_.figures = workload_->figures();
    report_.precision = options_.precision;
    report_.parameters = options_.parameters;
    report_.iterations = workload_->iterations();
    report_.sharing = options_.sharing;
    report_.size = options_.size;
    report_.policy = options_.policy;
    if (queue_.handle() != nullptr) report_.shares = queue_.shares();
    report_.remarks = workload_->remarks();
    report_.details = workload_->details();
    report_.complaints = workload_->complaints();
    report_.repeat = options_.repeat;
    report_.description = runtime_.describe();
    if (options_.verify && !virtual_time()) report_.gemm_peak = workload_->gemm_peak(blas());
  }

  void verify() {
    stage_ = "verifying";
    report_.checks = workload_->verify(blas());
  }

  bool virtual_time() const { return runtime_.domain(0).info().virtual_time; }

  const apps::ReferenceBlas& blas() {
    if (!blas_) blas_.emplace(runtime_);
    return *blas_;
  }

  void cancel() noexcept {
    if (queue_.handle() != nullptr) weir_queue_cancel(queue_.handle());
    if (workload_ != nullptr) workload_->cancel();
    for (std::size_t i = 0; i < lanes_.size(); ++i) weir_stream_cancel(lanes_[i].stream.handle());
  }

  const RunOptions& options_;
  const std::string name_;
  std::atomic<std::size_t> runs_begun_{0};
  std::atomic<const char*> stage_{nullptr};  ///< after the runs
  weir::Runtime runtime_;
  apps::Lanes lanes_;
  weir::Queue queue_;  ///< none: streams
  std::unique_ptr<apps::Workload> workload_;
  std::optional<apps::ReferenceBlas> blas_;
  RunReport report_;
};

class RunCommand final : public Command {
 public:
  const char* name() const override { return "run"; }
  const char* summary() const override { return "Run an application, measure and verify it"; }

  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    std::string examples = "\nExamples:\n";
    for (const char* example :
         {"weir run cholesky --n 4096 --tile 256 --verify",
          "weir run cholesky --input stiffness.mtx --rhs load.npy --solution displacement.npy",
          "weir run matmul --n 4096 --domains host,sim:cores=1,gbps=6 --trace timeline.json",
          "weir run cholesky --domains host,sim:cores=1,gbps=8 --policy finish",
          "weir run cholesky --help"}) {
      examples.append("  ").append(example).append("\n");
    }
    app.footer(examples);
    for (const auto& application : applications_) {
      CLI::App* const command = app.add_subcommand(application->name(), application->summary());
      add_common_options(*command, *application);
      application->add_options(*command);
      commands_.push_back(command);
    }
  }

  ExitCode run() override {
    if (options_.policy == "help") {
      print(policies());
      return ExitCode::ok;
    }
    if (const std::string help = selected().help(); !help.empty()) {
      print(help);
      return ExitCode::ok;
    }
    options_.parameters.single = options_.precision == "float";
    for (const apps::Preset& preset : selected().presets()) {
      if (options_.size == preset.name) preset.fill(options_.parameters);
    }
    for (const std::string& file : {options_.parameters.output, options_.trace}) check_folder(file);
    const RunReport report = measure();
    print(options_.json ? report.json() : report.text());
    for (const std::string& complaint : report.complaints) {
      fmt::print(stderr, "{} {}\n", paint("weir:", Tone::bad, stderr), complaint);
    }
    if (!report.verified()) return ExitCode::mismatch;
    return report.complaints.empty() ? ExitCode::ok : ExitCode::bad_input;
  }

 private:
  void add_common_options(CLI::App& app, const apps::Application& application) {
    RunOptions& o = options_;
    auto* const n = app.add_option("--n", o.parameters.n, "Order of the problem")->check(kCount);
    if (!application.presets().empty()) add_sizes(app, application.presets())->excludes(n);
    auto* const tile = app.add_option("--tile", o.parameters.tile, "Edge of a tile")->check(kCount);
    app.add_option("--tiles", o.parameters.tiles, "Tiles along an edge, instead of --tile")
        ->check(kCount)
        ->excludes(tile);
    if (application.iterates()) add_iterations(app);
    app.add_option("--precision", o.precision, "double or float [double]")
        ->check(CLI::IsMember({"double", "float"}));
    app.add_option("--seed", o.parameters.seed, "Of a generated input [1]");
    app.add_option("--input", o.parameters.input, application.input_help());
    app.add_option("--output", o.parameters.output, application.output_help());
    app.add_option("--domains", o.domains, "Domains, as \"host,sim:cores=1,gbps=6\" [host]");
    app.add_option("--places", o.sharing.places, "Places of each domain [1]")->check(kCount);
    app.add_option("--streams", o.sharing.streams, "Streams of each place [2]")->check(kCount);
    app.add_option("--policy", o.policy,
                   "Submit tasks to a queue, whose policy chooses the places; help: list them");
    app.add_option("--repeat", o.repeat, "Runs; the first of several does not count [11]")
        ->check(kCount);
    app.add_option("--timeout", o.timeout_s, "Seconds that one run may take [no limit]")
        ->check(CLI::PositiveNumber);
    app.add_flag("--verify", o.verify, "Check the result; exit status 5 when it is wrong");
    app.add_option("--trace", o.trace, "File for the timeline: .json, or .pftrace for Perfetto");
    app.add_flag("--json", o.json, "Print one JSON object");
  }

  CLI::Option* add_sizes(CLI::App& app, std::span<const apps::Preset> presets) {
    std::vector<std::string> names;
    std::string help = "Order and tiles at once:";
    for (const apps::Preset& preset : presets) {
      names.emplace_back(preset.name);
      help += fmt::format("{} {} ({}", names.size() > 1 ? "," : "", preset.name, preset.n);
      if (preset.tile > 0) help += fmt::format(", tile {}", preset.tile);
      if (preset.tiles > 0) help += fmt::format(", tiles {}", preset.tiles);
      if (preset.iterations > 0) help += fmt::format(", iterations {}", preset.iterations);
      help += ")";
    }
    return app.add_option("--size", options_.size, help)->check(CLI::IsMember(names));
  }

  void add_iterations(CLI::App& app) {
    apps::Parameters& parameters = options_.parameters;
    app.add_option("--iterations", parameters.iterations, "Iterations [as --size says]")
        ->check(kCount);
    app.add_option_function<std::string>(
           "--transform", [&](const std::string& word) { parameters.transform = word == "on"; },
           "on or off: whether a tile begins its next iteration when its neighbours are through "
           "with this one, instead of when all are [on]")
        ->check(CLI::IsMember({"on", "off"}));
  }

  static std::string policies() {
    const weir::Runtime runtime("null");
    const auto facts = nlohmann::json::parse(runtime.describe());
    Table table;
    for (const auto& policy : facts.at("policies")) {
      table.add({policy.at("name").get<std::string>(), policy.at("summary").get<std::string>()});
    }
    return table.text(2);
  }

  RunReport measure() {
    try {
      return Run(selected(), options_).perform();
    } catch (const apps::InputError& error) {
      throw weir::Error(WEIR_STATUS_INVALID_ARGUMENT, error.what());
    }
  }

  apps::Application& selected() const {
    std::size_t index = 0;
    while (!commands_[index]->parsed()) ++index;
    return *applications_[index];
  }

  inline static const CLI::Range kCount{std::size_t{1},
                                        std::size_t{std::numeric_limits<std::int32_t>::max()}};

  RunOptions options_;
  std::vector<std::unique_ptr<apps::Application>> applications_ = apps::make_applications();
  std::vector<CLI::App*> commands_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<RunCommand>(); }

}  // namespace weir::cli
