// `weir run`: runs an application, measures it and reports findings of its recording.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weir/weir.hpp>

#include "application_run.hpp"
#include "command.hpp"
#include "common/command_options.hpp"
#include "description.hpp"
#include "ranks.hpp"
#include "terminal.hpp"
#include "tuned_problem.hpp"

namespace weir::cli {

namespace {

/// Throws before a long run, not after it, when a file cannot appear where it is asked for.
void check_folder(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw weir::Error(
      WEIR_STATUS_INVALID_ARGUMENT,
      fmt::format("'{}' cannot be written: '{}' is not a folder", file, folder.string()));
}

/// Throws before a long run when a file's name has another ending than one of two.
void check_ending(const std::string& file, const char* usual, const char* other,
                  const char* advice) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension.empty() || extension == usual || extension == other) return;
  throw weir::Error(WEIR_STATUS_INVALID_ARGUMENT, fmt::format("'{}': {}", file, advice));
}

/// Whether a run failed for lack of memory: itself, or in an action that a stream waited for.
bool found_no_memory(const weir::Error& error) {
  const std::string_view name = weir_status_name(WEIR_STATUS_OUT_OF_MEMORY);
  return error.status() == WEIR_STATUS_OUT_OF_MEMORY ||
         (error.status() == WEIR_STATUS_POISONED &&
          std::string_view(error.what()).find(name) != std::string_view::npos);
}

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
    app.add_option_function<std::string>(
        "--policy",
        [this, &app](const std::string& policy) {
          options_.policy = policy;
          if (policy == "help") app.require_subcommand(0, 1);
        },
        "help: list the policies of task queues");
    for (const auto& application : applications_) {
      CLI::App* const command = app.add_subcommand(application->name(), application->summary());
      command->footer(fmt::format("\nExamples:\n  {}\n", application->example()));
      add_run_options(*command, options_, *application);
      add_own_options(*command);
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
    complete(selected(), options_);
    check_ranks();
    if (ranks_ > 0 && !is_rank()) return run_on_ranks(ranks_);
    const auto prepare = [this](const Runtime& runtime) {
      selected().register_kernels(options_.parameters, runtime);
    };
    if (serve_ranks(options_.domains, prepare)) return ExitCode::ok;
    for (const std::string& file : {options_.parameters.output, options_.trace, options_.page}) {
      check_folder(file);
    }
    check_ending(options_.page, ".html", ".htm",
                 "the report is a web page: choose a name that ends in .html");
    check_ending(
        options_.trace, ".json", ".pftrace",
        "the timeline is JSON or a Perfetto trace: choose a name that ends in .json or .pftrace");
    name_files();
    use_wisdom();
    const RunReport report = perform();
    if (!report.silent) print(options_.json ? report.json() : report.text());
    for (const std::string& complaint : report.complaints) print_message(Tone::bad, complaint);
    if (!report.verified()) return ExitCode::mismatch;
    return report.complaints.empty() ? ExitCode::ok : ExitCode::bad_input;
  }

 private:
  void add_own_options(CLI::App& app) {
    app.add_flag("--tuned", tuned_,
                 "Use the places, streams, policy, tiles and aspect that 'weir tune' chose");
    app.add_option("--ranks", ranks_,
                   "Run as this many processes of this machine, which divide its cores")
        ->check(CLI::Range{1, 1024});
  }

  /// Runs the application; by tasks, which copy only the data they use, when streams lack memory.
  RunReport perform() {
    try {
      return run_application(selected(), options_);
    } catch (const weir::Error& error) {
      if (!found_no_memory(error) || !tasks_may_do_it()) throw;
    }
    print_message(Tone::warning,
                  "not enough memory for streams: running again as tasks, with --policy finish");
    options_.policy = "finish";
    return run_application(selected(), options_);
  }

  /// Refuses domains of ranks that would lack the kernels, and warns when all ranks would do the
  /// same work.
  void check_ranks() const {
    const apps::Application& app = selected();
    if (names_ranks(options_.domains)) {
      if (app.runs_on_ranks()) return;
      throw weir::Error(
          WEIR_STATUS_INVALID_ARGUMENT,
          fmt::format("{} does not run on domains of other ranks: {}", app.name(),
                      app.has_parts() ? "each rank computes its own part, remove --domains"
                                      : "choose others with --domains"));
    }
    const unsigned ranks = ranks_ > 0 ? ranks_ : started_ranks();
    if (ranks < 2 || app.has_parts() || is_rank() || !speaks_for_machine()) return;
    const std::string words =
        fmt::format("{} each of the {} ranks computes the whole problem of {}: {}\n",
                    paint("weir:", Tone::warning, stderr), ranks, app.name(),
                    app.runs_on_ranks() ? "--domains 'rank:*' divides it" : "remove --ranks");
    std::fputs(words.c_str(), stderr);
  }

  bool tasks_may_do_it() const {
    return options_.policy.empty() && selected().has_tasks() &&
           fabric_for(options_.domains) == nullptr;
  }

  /// Gives each process that was started with others files of its own. Rank 0 says so.
  void name_files() {
    for (std::string* const file : {&options_.trace, &options_.page}) {
      const std::string own = file_of_rank(*file);
      const bool others_write = started_ranks() > 1 && fabric_for(options_.domains) == nullptr;
      if (others_write && own == *file && !own.empty()) {
        print_message(Tone::warning,
                      fmt::format("'{}' is the file of rank 0; the names of the other ranks' "
                                  "files contain .rank1 and so on",
                                  own));
      }
      *file = own;
    }
  }

  /// Uses the tuned values, except those that options set.
  void use_wisdom() {
    if (!tuned_) return;
    const CLI::App& app = *commands_[selected_index()];
    const tuner::Problem problem = problem_of(app, selected().name(), options_);
    const auto found =
        open_runtime({options_.domains, ""}).wisdom(problem.name(), options_.parameters.n);
    if (!found) {
      if (!speaks_for_machine()) return;
      print_message(Tone::warning,
                    fmt::format("no tuning result for this problem; run: weir tune {}{}",
                                selected().name(), problem_words(app)));
      return;
    }
    const bool streams = app.count("--streams") > 0;
    if (app.count("--places") == 0) options_.sharing.places = found->places;
    if (!streams) options_.sharing.streams = found->streams;
    if (!streams && selected().has_tasks() && app.count("--policy") == 0) {
      options_.policy = found->policy;
    }
    if (selected().has_shapes() && app.count("--aspect") == 0) {
      options_.parameters.aspect = found->aspect;
    }
    if (!selected().has_tiles() || found->tiles == 0) return;
    if (app.count("--tile") + app.count("--tiles") > 0) return;
    options_.parameters.tiles = found->tiles;
    options_.parameters.tile = 0;
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

  std::size_t selected_index() const {
    std::size_t index = 0;
    while (!commands_[index]->parsed()) ++index;
    return index;
  }

  apps::Application& selected() const { return *applications_[selected_index()]; }

  RunOptions options_;
  bool tuned_ = false;
  unsigned ranks_ = 0;  ///< 0: this process alone
  std::vector<std::unique_ptr<apps::Application>> applications_ = apps::make_applications();
  std::vector<CLI::App*> commands_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<RunCommand>(); }

}  // namespace weir::cli
