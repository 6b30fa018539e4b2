#include "application_run.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weir/weir.hpp>

#include "command_line.hpp"
#include "common/command_options.hpp"
#include "common/deadline.hpp"
#include "common/input_error.hpp"
#include "common/reference_blas.hpp"
#include "description.hpp"
#include "interruption.hpp"
#include "live_view.hpp"
#include "report/page.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

std::chrono::nanoseconds as_timeout(double seconds) {
  constexpr double kCenturies = 9e9;  // as many nanoseconds as 64 bits hold
  if (!(seconds > 0) || seconds > kCenturies) return weir::forever;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

/// One application, prepared on the requested domains, places and streams.
class Run final : private Stoppable {
 public:
  Run(apps::Application& application, const RunOptions& options)
      : options_(options),
        name_(application.name()),
        runtime_(open_runtime({options.domains, ""})),
        app_streams_(runtime_, sharing_of(application, options)),
        queue_(make_queue(application)),
        workload_(application.prepare(parameters(), runtime_, app_streams_)) {
    report_.application = name_;
    report_.uses_places = application.uses("--places");
    report_.uses_streams = options.policy.empty() && application.uses("--streams");
    if (application.has_precision()) report_.precision = options.precision;
    report_.command = command_line();
    auto* const pipeline = dynamic_cast<apps::WatchedPipeline*>(workload_.get());
    if (options.live) live_.emplace(pipeline, name_);
    if (!options.page.empty() && pipeline != nullptr) pipeline->watch();
  }

  RunReport perform() {
    Interruption::Scope scope(*this);
    try {
      measure_peak();
      repeat();
      measure_peak();
      finish();
      describe();
      analyze_recording();
      if (options_.verify) verify();
      Interruption::check();
    } catch (...) {
      cancel();  // destructors must not wait for the remaining actions
      if (!Interruption::requested()) throw;
      scope.save();
      throw Interrupted();
    }
    if (!options_.page.empty()) write_page();
    return std::move(report_);
  }

 private:
  /// A folder for temporary files, which the destructor removes. Throws std::system_error.
  struct ScratchFolder {
    ScratchFolder() {
      std::string name = std::filesystem::temp_directory_path() / "weir-run-XXXXXX";
      if (mkdtemp(name.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), name);
      }
      path = name;
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::filesystem::path path;
  };

  /// Measures the peak rate before the runs and after them, because other programs may slow one of
  /// the two. Not for devices that do not compute on the cores of this machine, nor in virtual
  /// time.
  void measure_peak() {
    if (!options_.verify) return;
    const report::Json facts = report::Json::parse(runtime_.describe());
    for (const report::Json& domain : facts.at("domains")) {
      const auto backend = domain.at("backend").get<std::string>();
      if (domain.at("virtual_time") || backend == "cuda" || backend == "rank") return;
    }
    const double peak = workload_->gemm_peak(blas());
    if (peak > 0) report_.gemm_peaks.push_back(peak);
  }

  /// Reads the recording only if it is short: a long one takes long to read, and `weir report`
  /// reads it on request.
  void analyze_recording() {
    constexpr std::uint64_t kMostActions = 100'000;
    if (report_.trace.actions == 0 || report_.trace.actions > kMostActions) return;
    try {
      const report::Choices choices = report::choices_of(report::Json::parse(report_.json()));
      report_.analysis = report::analyze(read_recording(), choices);
    } catch (const std::exception&) {  // no folder for it: the figures are there
    }
  }

  /// A page that cannot be written does not fail the run: its results are printed.
  void write_page() {
    try {
      std::vector<report::Part> parts(1);
      parts[0].facts = report::Json::parse(report_.json());
      parts[0].trace = read_recording();
      report::write_page(parts, report_.command, options_.page);
      report_.page = options_.page;
    } catch (const std::runtime_error& error) {
      print_message(Tone::warning, fmt::format("cannot write the report: {}", error.what()));
    }
  }

  /// Places where the options name none: one of each domain, or some for a task queue whose kernels
  /// use all cores of a place.
  static apps::Sharing sharing_of(const apps::Application& application, const RunOptions& options) {
    apps::Sharing sharing = options.sharing;
    const bool serial = options.parameters.kernels == apps::TileKernels::serial;
    sharing.teams =
        sharing.places == 0 && !options.policy.empty() && !serial && application.has_team_kernels();
    sharing.places = std::max<std::size_t>(sharing.places, 1);
    return sharing;
  }

  weir::Queue make_queue(const apps::Application& application) const {
    if (options_.policy.empty()) return {};
    if (!application.has_tasks()) {
      throw weir::Error(WEIR_STATUS_UNSUPPORTED,
                        fmt::format("{} does not support task queues: remove --policy", name_));
    }
    const std::vector<weir_place*> places = app_streams_.place_handles();
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
    parameters.computed = computes();
    for (const auto& [wanted, option] :
         {std::pair(options_.verify, "--verify"), {!parameters.output.empty(), "--output"}}) {
      if (!wanted || parameters.computed) continue;
      apps::fail_input("{}: with kernels=skip nothing is computed: leave out one of the two",
                       option);
    }
    return parameters;
  }

  /// Returns whether at least one domain runs kernels.
  bool computes() const {
    for (std::size_t i = 0; i < runtime_.domain_count(); ++i) {
      if (!runtime_.domain(i).info().skips_kernels) return true;
    }
    return false;
  }

  void stop() noexcept override { cancel(); }

  std::string save() noexcept override {
    std::string words = name_;
    try {
      words += where();
      if (options_.trace.empty()) return words;
      runtime_.write_trace(options_.trace);
      return words + fmt::format("; the completed actions are in '{}'", options_.trace);
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
    std::optional<Progress> progress;
    if (!options_.quiet && !live_) progress.emplace();
    for (std::size_t run = 0; run < options_.repeat; ++run) {
      runs_begun_ = run + 1;
      if (progress) progress->update(run, options_.repeat, "running");
      const bool last = run + 1 == options_.repeat;
      // A run that is stopped has a trace, too.
      if (last || !options_.trace.empty()) runtime_.start_trace();
      if (live_) live_->begin_run(run + 1, options_.repeat);
      const double seconds = run_once();
      if (live_) live_->end_run();
      Interruption::check();
      const bool warm_up = run == 0 && !last;
      if (!warm_up) report_.samples.push_back(seconds);
    }
    live_.reset();
    runtime_.stop_trace();
    report_.trace = runtime_.trace_summary();
    if (!options_.trace.empty()) write_trace();
  }

  /// Returns the recording, written to and read from a file.
  report::Trace read_recording() const {
    if (!report_.trace_file.empty()) return report::read_trace(options_.trace);
    const ScratchFolder folder;
    const std::string file = (folder.path / "run.pftrace").string();
    runtime_.write_trace(file);
    return report::read_trace(file);
  }

  /// A timeline that cannot be written does not fail the run: its results are printed.
  void write_trace() {
    try {
      runtime_.write_trace(options_.trace);
      report_.trace_file = options_.trace;
    } catch (const weir::Error& error) {
      print_message(Tone::warning, fmt::format("cannot write the trace: {}", error.what()));
    }
  }

  double run_once() {
    workload_->reset();
    const weir_stats before = runtime_.stats();
    const std::vector<weir_queue_share> shares_before = shares();
    const auto start = runtime_.now();
    workload_->enqueue();
    await();
    const std::chrono::duration<double> taken = runtime_.now() - start;
    const weir_stats after = runtime_.stats();
    report_.actions = after.actions_enqueued - before.actions_enqueued;
    report_.bytes_h2d = after.bytes_h2d - before.bytes_h2d;
    report_.bytes_d2h = after.bytes_d2h - before.bytes_d2h;
    report_.bytes_d2d = after.bytes_d2d - before.bytes_d2d;
    report_.bytes_evicted = after.bytes_evicted - before.bytes_evicted;
    report_.shares = shares();
    for (std::size_t i = 0; i < shares_before.size(); ++i) {
      weir_queue_share& share = report_.shares[i];
      share.tasks -= shares_before[i].tasks;
      share.busy_ns -= shares_before[i].busy_ns;
      share.bytes_in -= shares_before[i].bytes_in;
      share.bytes_out -= shares_before[i].bytes_out;
    }
    return taken.count();
  }

  /// Returns the figures of the places of the task queue so far; empty without a queue.
  std::vector<weir_queue_share> shares() const {
    if (queue_.handle() == nullptr) return {};
    return queue_.shares();
  }

  void await() {
    const apps::Deadline deadline(as_timeout(options_.timeout_s));
    try {
      workload_->await(deadline.remaining_ns());
      runtime_.synchronize(deadline.remaining_ns());
    } catch (const weir::Error& error) {
      if (error.status() != WEIR_STATUS_TIMEOUT) throw;
      throw weir::Error(WEIR_STATUS_TIMEOUT,
                        fmt::format("a run of {} did not end within {} s (--timeout): {}", name_,
                                    options_.timeout_s, error.what()));
    }
  }

  void finish() {
    stage_ = "working with the result";
    workload_->finish();
    Interruption::check();  // a stopped run may be incomplete
    workload_->save();
  }

  void describe() {
    report_.n = workload_->n();
    report_.tile = workload_->tile();
    report_.tiles = workload_->tiles();
    report_.operations = workload_->operations();
    report_.traffic = workload_->traffic();
    if (computes()) report_.figures = workload_->figures();
    report_.parameters = options_.parameters;
    report_.iterations = workload_->iterations();
    report_.sharing = options_.sharing;
    report_.sharing.places = most_places();
    report_.size = options_.size;
    report_.policy = options_.policy;
    report_.remarks = workload_->remarks();
    report_.details = workload_->details();
    report_.complaints = workload_->complaints();
    report_.silent = workload_->silent();
    report_.repeat = options_.repeat;
    report_.description = runtime_.describe();
  }

  /// Returns the number of places of the domain that has most.
  std::size_t most_places() const {
    std::vector<std::size_t> places(runtime_.domain_count(), 0);
    for (std::size_t i = 0; i < app_streams_.size(); ++i) ++places[app_streams_[i].domain];
    return *std::max_element(places.begin(), places.end()) / app_streams_.streams();
  }

  void verify() {
    stage_ = "verifying";
    report_.checks = workload_->verify(blas());
  }

  const apps::ReferenceBlas& blas() {
    if (!blas_) blas_.emplace(runtime_);
    return *blas_;
  }

  void cancel() noexcept {
    if (queue_.handle() != nullptr) weir_queue_cancel(queue_.handle());
    if (workload_ != nullptr) workload_->cancel();
    for (std::size_t i = 0; i < app_streams_.size(); ++i)
      weir_stream_cancel(app_streams_[i].stream.handle());
  }

  const RunOptions& options_;
  const std::string name_;
  std::atomic<std::size_t> runs_begun_{0};
  std::atomic<const char*> stage_{nullptr};  ///< after the runs
  weir::Runtime runtime_;
  apps::AppStreams app_streams_;
  weir::Queue queue_;  ///< none: streams
  std::unique_ptr<apps::Workload> workload_;
  std::optional<LiveView> live_;
  std::optional<apps::ReferenceBlas> blas_;
  RunReport report_;
};

const CLI::Range kCount{std::size_t{1}, std::size_t{std::numeric_limits<std::int32_t>::max()}};

CLI::Option* add_sizes(CLI::App& app, RunOptions& options, std::span<const apps::Preset> presets) {
  std::vector<std::string> names;
  std::string help = "Presets for the problem size and the tiles:";
  for (const apps::Preset& preset : presets) {
    names.emplace_back(preset.name);
    help += fmt::format("{} {} ({}", names.size() > 1 ? "," : "", preset.name, preset.n);
    if (preset.tile > 0) help += fmt::format(", tile {}", preset.tile);
    if (preset.tiles > 0) help += fmt::format(", tiles {}", preset.tiles);
    if (preset.iterations > 0) help += fmt::format(", iterations {}", preset.iterations);
    help += ")";
  }
  return app.add_option("--size", options.size, help)->check(CLI::IsMember(names));
}

void add_iterations(CLI::App& app, apps::Parameters& parameters) {
  app.add_option("--iterations", parameters.iterations,
                 "Number of iterations [that of --size, or of the size small]")
      ->check(kCount);
  app.add_option_function<std::string>(
         "--transform", [&](const std::string& word) { parameters.transform = word == "on"; },
         "on: a tile begins its next iteration when its neighbours have completed this one; off: "
         "when all tiles have [on]")
      ->check(CLI::IsMember({"on", "off"}));
}

std::string n_help(const apps::Application* application) {
  const std::size_t usual = application != nullptr ? application->usual_n() : 0;
  return usual > 0 ? fmt::format("Problem size [{}]", usual) : "Problem size";
}

std::string tile_help(const apps::Application& application) {
  const std::size_t usual = application.usual_tile();
  const bool by_tiles = !application.presets().empty() && application.presets()[1].tiles > 0;
  return fmt::format("Edge of a tile [{}]", usual > 0  ? std::to_string(usual)
                                            : by_tiles ? "chosen by --tiles"
                                                       : "chosen for the problem");
}

std::string tiles_help(const apps::Application& application) {
  const std::size_t usual = application.presets().empty() ? 0 : application.presets()[1].tiles;
  return "Tiles along an edge, instead of --tile" + (usual > 0 ? fmt::format(" [{}]", usual) : "");
}

apps::TileKernels kernels_of(const std::string& word) {
  if (word == "serial") return apps::TileKernels::serial;
  return word == "team" ? apps::TileKernels::team : apps::TileKernels::automatic;
}

/// Adds the options that divide a run. The streams of a queue are its own.
void add_sharing_options(CLI::App& app, RunOptions& o, const apps::Application& application) {
  const auto used = [&](const char* option, bool means_something) {
    if (!means_something) refuse_option(app, option, no_use(application));
    return means_something;
  };
  if (used("--output", application.uses("--output"))) {
    app.add_option("--output", o.parameters.output, application.output_help());
  }
  if (used("--places", application.uses("--places"))) {
    o.sharing.places = 0;  // chosen
    const char* const help =
        application.has_team_kernels()
            ? "Places per domain [1; with --policy 1 to 4, depending on the cores]"
            : "Places per domain [1]";
    app.add_option("--places", o.sharing.places, help)->check(kCount);
  }
  const bool compared = application.streams_in_baseline();
  CLI::Option* streams = nullptr;
  if (used("--streams", compared || application.uses("--streams"))) {
    const char* const help =
        compared ? "Streams per place, for --baseline [2]" : "Streams per place [2]";
    streams = app.add_option("--streams", o.sharing.streams, help)->check(kCount);
  }
  if (!used("--policy", application.has_tasks())) return;
  auto* const policy = app.add_option(
      "--policy", o.policy,
      "Use a task queue with this policy, which chooses the places; 'help' lists the policies");
  if (streams != nullptr) policy->excludes(streams);
}

/// Adds the options that divide the problem into tiles.
void add_tile_options(CLI::App& app, apps::Parameters& parameters,
                      const apps::Application& application) {
  if (application.has_tiles()) {
    auto* const tile =
        app.add_option("--tile", parameters.tile, tile_help(application))->check(kCount);
    app.add_option("--tiles", parameters.tiles, tiles_help(application))
        ->check(kCount)
        ->excludes(tile);
  }
  if (application.has_team_kernels()) {
    app.add_option_function<std::string>(
           "--kernels", [&](const std::string& word) { parameters.kernels = kernels_of(word); },
           "Cores that compute a tile. serial: one core; team: all cores of the place; auto: one "
           "core if there are at least two tiles per core (four if --policy divides a domain into "
           "places), else team [auto]")
        ->check(CLI::IsMember({"auto", "serial", "team"}));
  }
  if (application.has_shapes()) {
    app.add_option("--aspect", parameters.aspect,
                   "Ratio of width to height of a tile; the number of cells stays the same [1]")
        ->check(kCount);
  }
}

}  // namespace

void refuse_option(CLI::App& app, const std::string& option, const std::string& reason) {
  const auto complain = [option, reason](const std::string&) {
    throw CLI::ValidationError(option, reason);
  };
  app.add_option_function<std::string>(option, complain)->expected(0, 1)->group("");
}

std::string no_use(const apps::Application& application) {
  return fmt::format("{} does not use this option; remove it", application.name());
}

void add_problem_options(CLI::App& app, RunOptions& o, const apps::Application* application) {
  const auto used = [&](const char* option) {
    const bool means_something = application == nullptr || application->uses(option);
    if (!means_something) refuse_option(app, option, no_use(*application));
    return means_something;
  };
  CLI::Option* n = nullptr;
  if (used("--n")) n = app.add_option("--n", o.parameters.n, n_help(application))->check(kCount);
  if (application == nullptr) {
    app.add_option("--size", o.size, "tiny, small or paper, for applications with presets")
        ->check(CLI::IsMember({"tiny", "small", "paper"}))
        ->excludes(n);
  } else {
    if (!application->presets().empty()) add_sizes(app, o, application->presets())->excludes(n);
    if (application->iterates()) add_iterations(app, o.parameters);
  }
  if (application == nullptr || application->has_precision()) {
    app.add_option("--precision", o.precision, "double or float [double]")
        ->check(CLI::IsMember({"double", "float"}));
  }
  if (used("--seed")) app.add_option("--seed", o.parameters.seed, "Seed of the random numbers [1]");
  if (used("--input")) {
    CLI::Option* const input =
        app.add_option("--input", o.parameters.input,
                       application != nullptr ? application->input_help() : "File to read");
    if (n != nullptr) input->excludes(n);
  }
  app.add_option("--domains", o.domains,
                 "Domains, as \"host,sim:cores=1,gbps=6\" [WEIR_DOMAINS, or host]");
}

void add_run_options(CLI::App& app, RunOptions& o, apps::Application& application) {
  add_problem_options(app, o, &application);
  add_tile_options(app, o.parameters, application);
  add_sharing_options(app, o, application);
  app.add_option("--repeat", o.repeat,
                 "Number of runs; with more than one, the first does not count [11]")
      ->check(kCount);
  app.add_option("--timeout", o.timeout_s, "Time limit of one run, in seconds [no limit]")
      ->check(apps::real_range(std::numeric_limits<double>::min(),
                               std::numeric_limits<double>::max(), "POSITIVE"));
  app.add_flag("--verify", o.verify, "Check the result; exit status 5 when it is wrong");
  app.add_option("--trace", o.trace, "File for the timeline: .json, or .pftrace for Perfetto");
  app.add_option("--report", o.page, "File for a page that shows where the time went: .html");
  if (application.has_pipeline()) {
    app.add_flag("--live", o.live,
                 "Show what the stages of the pipeline do while it runs, on standard error");
  } else {
    refuse_option(app, "--live", no_use(application));
  }
  app.add_flag("--json", o.json, "Print one JSON object");
  apps::CommandOptions options(app);
  application.add_options(options);
  if (application.streams_in_baseline()) {
    app.get_option("--streams")->needs(app.get_option("--baseline"));
  }
}

void complete(const apps::Application& application, RunOptions& options) {
  options.parameters.single = options.precision == "float";
  for (const apps::Preset& preset : application.presets()) {
    if (options.size == preset.name) preset.fill(options.parameters);
  }
}

RunReport run_application(apps::Application& application, const RunOptions& options) {
  try {
    return Run(application, options).perform();
  } catch (const apps::InputError& error) {
    throw weir::Error(WEIR_STATUS_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    throw weir::Error(
        WEIR_STATUS_OUT_OF_MEMORY,
        fmt::format(
            "{} needs more memory than is available: choose a smaller problem or fewer tiles",
            application.name()));
  }
}

}  // namespace weir::cli
