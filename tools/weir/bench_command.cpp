// `weir bench`: measures what streams gain on a platform.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/balance.hpp"
#include "bench/experiments.hpp"
#include "bench/rank_experiment.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "description.hpp"
#include "figures/figures.hpp"
#include "ranks.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

class BenchCommand final : public Command {
 public:
  BenchCommand() {
    experiments_.push_back(bench::make_transfers());
    experiments_.push_back(bench::make_overlap());
    experiments_.push_back(bench::make_spatial());
    experiments_.push_back(bench::make_overhead());
    rank_experiments_.push_back(bench::make_messages());
    rank_experiments_.push_back(bench::make_halos());
    rank_experiments_.push_back(bench::make_cache());
  }

  const char* name() const override { return "bench"; }
  const char* summary() const override {
    return "Measure transfers, overlap, places and overhead of a platform";
  }

  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    app.footer(
        "\nExamples:\n"
        "  weir bench transfers --domains sim:gbps=6,duplex=half\n"
        "  weir bench overlap --domains opencl:0 --verify\n"
        "  weir bench spatial --domains host\n"
        "  weir bench overhead --json\n"
        "  weir bench balance --domains host:cores=1,sim:speed=0.5\n"
        "  weir bench messages --ranks 2\n"
        "  weir bench figures --apps cholesky --n 2048 -o cholesky\n");
    for (const auto& experiment : experiments_) {
      CLI::App* const command = app.add_subcommand(experiment->name(), experiment->summary());
      command->add_option("--domains", domains_,
                          "Domains to measure, one by one [WEIR_DOMAINS, or host]");
      if (experiment->repeats()) {
        command
            ->add_option(
                "--repeat", repeat_,
                "Measured runs of each point, after one warm-up run [11, in virtual time 1]")
            ->check(CLI::Range(1, 1'000'000));
      }
      command->add_flag("--json", json_, "Print one JSON object");
      experiment->add_options(*command);
      commands_.push_back(command);
    }
    figures_command_ = app.add_subcommand(
        "figures", "Applications with and without streams, over places, tiles and devices");
    figures_.add_options(*figures_command_);
    balance_command_ = app.add_subcommand(
        "balance", "Distribute Asian options of unequal work over unequal domains and over ranks");
    balance_.add_options(*balance_command_);
    for (const auto& experiment : rank_experiments_) {
      CLI::App* const command = app.add_subcommand(experiment->name(), experiment->summary());
      experiment->add_options(*command);
      rank_commands_.push_back(command);
    }
  }

  ExitCode run() override {
    if (figures_command_->parsed()) {
      figures_.run();
      return ExitCode::ok;
    }
    if (balance_command_->parsed()) {
      balance_.run();
      return ExitCode::ok;
    }
    for (std::size_t i = 0; i < rank_experiments_.size(); ++i) {
      if (rank_commands_[i]->parsed()) return rank_experiments_[i]->run();
    }
    std::size_t selected = 0;
    while (!commands_[selected]->parsed()) ++selected;
    bench::Experiment& experiment = *experiments_[selected];
    if (serve_ranks(domains_)) return ExitCode::ok;
    const Runtime runtime = open_runtime({domains_, ""});
    const bench::Json results = measure(experiment, runtime);
    print(json_ ? as_json(experiment, runtime, results) : as_text(experiment, results));
    return verified(results) ? ExitCode::ok : ExitCode::mismatch;
  }

 private:
  static constexpr std::size_t kUsualRepeat = 11;

  bench::Json measure(bench::Experiment& experiment, const Runtime& runtime) const {
    const bench::Kernels kernels(runtime);
    bench::Json results = bench::Json::array();
    for (std::size_t domain = 0; domain < runtime.domain_count(); ++domain) {
      const bool simulated = runtime.domain(domain).info().virtual_time;
      const std::size_t repeat = repeat_ > 0 ? repeat_ : simulated ? 1 : kUsualRepeat;
      Progress progress;
      results.push_back(
          experiment.measure(bench::Subject(runtime, domain, repeat), kernels, progress));
    }
    return results;
  }

  static bool verified(const bench::Json& results) {
    for (const bench::Json& result : results) {
      if (result.value("verified", bench::Json(nullptr)) == false) return false;
    }
    return true;
  }

  static std::string as_text(const bench::Experiment& experiment, const bench::Json& results) {
    std::string text;
    for (const bench::Json& result : results) {
      text += fmt::format("{} on {}: {}\n{}", experiment.name(),
                          paint(result.at("domain").get<std::string>(), Tone::strong),
                          result.at("description").get<std::string>(), experiment.text(result));
    }
    return text;
  }

  static std::string as_json(const bench::Experiment& experiment, const Runtime& runtime,
                             const bench::Json& results) {
    const bench::Json all = {{"schema", "weir.bench/1"},
                             {"benchmark", experiment.name()},
                             {"command", command_line()},
                             {"results", results},
                             {"machine", describe(runtime).at("machine")}};
    return all.dump(2, ' ', false, bench::Json::error_handler_t::replace) + "\n";
  }

  std::vector<std::unique_ptr<bench::Experiment>> experiments_;
  std::vector<CLI::App*> commands_;
  figures::Figures figures_;
  CLI::App* figures_command_ = nullptr;
  bench::Balance balance_;
  CLI::App* balance_command_ = nullptr;
  std::vector<std::unique_ptr<bench::RankExperiment>> rank_experiments_;
  std::vector<CLI::App*> rank_commands_;
  std::string domains_;
  std::size_t repeat_ = 0;  ///< 0: the usual
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace weir::cli
