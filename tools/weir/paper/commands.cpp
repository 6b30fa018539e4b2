#include "paper/commands.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "application_run.hpp"
#include "bench/experiments.hpp"
#include "description.hpp"
#include "own_process.hpp"
#include "tuner/tuning.hpp"

namespace weir::cli::paper {

namespace {

/// Returns the first of some words, and the others.
std::pair<std::string, std::string> first_of(const std::string& words) {
  const std::size_t blank = words.find(' ');
  if (blank == std::string::npos) return {words, ""};
  return {words.substr(0, blank), words.substr(blank + 1)};
}

std::unique_ptr<apps::Application> application_of(const std::string& name) {
  for (auto& application : apps::make_applications()) {
    if (name == application->name()) return std::move(application);
  }
  throw std::logic_error(fmt::format("there is no application '{}'", name));
}

std::vector<std::string> split(const std::string& words) {
  std::istringstream text(words);
  return {std::istream_iterator<std::string>(text), {}};
}

/// Returns the words of a command; without --ranks where a launcher starts them.
std::vector<std::string> words_for(const std::string& words, const std::string& launcher) {
  std::vector<std::string> all = split(words);
  const auto ranks = std::find(all.begin(), all.end(), "--ranks");
  if (!launcher.empty() && ranks != all.end()) all.erase(ranks, ranks + 2);
  return all;
}

/// A launcher is for the commands that have ranks.
std::string launcher_for(const std::string& words, const std::string& launcher) {
  return words.find("--ranks") == std::string::npos ? "" : launcher;
}

/// Reads the options of a command; what a description of a paper has is right.
void parse(CLI::App& app, const std::string& options) {
  try {
    app.parse(options);
  } catch (const CLI::ParseError& error) {
    throw std::logic_error(fmt::format("'{}': {}", options, error.what()));
  }
}

std::array<std::unique_ptr<bench::Experiment>, 3> experiments() {
  return {bench::make_transfers(), bench::make_overlap(), bench::make_spatial()};
}

}  // namespace

nlohmann::ordered_json run_words(const std::string& words) {
  const auto [name, rest] = first_of(words);
  const auto application = application_of(name);
  CLI::App app;
  RunOptions options;
  options.repeat = 1;
  options.quiet = true;
  add_run_options(app, options, *application);
  parse(app, rest);
  complete(*application, options);
  const RunReport report = run_application(*application, options);
  tuner::Evaluation evaluation;
  evaluation.samples = report.samples;
  const double seconds = evaluation.seconds();
  return {{"seconds", seconds}, {"gflops", report.operations / seconds * 1e-9}};
}

bool is_experiment(const std::string& words) {
  const auto all = experiments();
  return std::any_of(all.begin(), all.end(), [name = first_of(words).first](const auto& each) {
    return name == each->name();
  });
}

nlohmann::ordered_json bench_words(const std::string& words) {
  const auto [name, rest] = first_of(words);
  for (const auto& experiment : experiments()) {
    if (name != experiment->name()) continue;
    CLI::App app;
    std::string domains;
    app.add_option("--domains", domains);
    experiment->add_options(app);
    parse(app, rest);
    const Runtime runtime = open_runtime({domains, ""});
    const bench::Kernels kernels(runtime);
    Progress progress;
    return experiment->measure(bench::Subject(runtime, 0, 1), kernels, progress);
  }
  throw std::logic_error(fmt::format("there is no experiment '{}'", name));
}

nlohmann::ordered_json report_of(const std::string& words, const std::string& launcher) {
  const std::string before = launcher_for(words, launcher);
  std::vector<std::string> all = words_for(words, before);
  all.emplace_back("--json");
  return nlohmann::ordered_json::parse(output_of(all, split(before)));
}

std::string command_of(const std::string& words, const std::string& launcher) {
  const std::string before = launcher_for(words, launcher);
  return fmt::format("{}{}weir {}", before, before.empty() ? "" : " ",
                     fmt::join(words_for(words, before), " "));
}

}  // namespace weir::cli::paper
