#include "paper/commands.hpp"

#include <array>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "application_run.hpp"
#include "bench/experiments.hpp"
#include "description.hpp"
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

/// Reads the options of a command; what a description of a paper has is right.
void parse(CLI::App& app, const std::string& options) {
  try {
    app.parse(options);
  } catch (const CLI::ParseError& error) {
    throw std::logic_error(fmt::format("'{}': {}", options, error.what()));
  }
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

nlohmann::ordered_json bench_words(const std::string& words) {
  const auto [name, rest] = first_of(words);
  std::array experiments = {bench::make_transfers(), bench::make_overlap(), bench::make_spatial()};
  for (const auto& experiment : experiments) {
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

}  // namespace weir::cli::paper
