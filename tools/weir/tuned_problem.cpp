#include "tuned_problem.hpp"

#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "description.hpp"

namespace weir::cli {

namespace {

/// Options that do not change what is computed, or on which kind of machine.
const std::set<std::string>& neutral_options() {
  static const std::set<std::string> names = {
      "--help",    "--n",      "--tile",    "--tiles",       "--places",      "--streams",
      "--domains", "--repeat", "--timeout", "--verify",      "--trace",       "--report",
      "--json",    "--tuned",  "--budget",  "--evaluations", "--exhaustive",  "--most-tiles",
      "--fresh",   "--seed",   "--output",  "--policy",      "--precision",   "--aspect",
      "--live",    "--labels", "--rhs",     "--solution",    "--permutation", "--ranks"};
  return names;
}

std::string machine_name() {
  const auto machine = describe(Runtime("null")).at("machine");
  return fmt::format("{}, {} cores", machine.at("processor").get<std::string>(),
                     machine.at("cores").get<int>());
}

}  // namespace

std::string domains_of(const RunOptions& options) {
  if (!options.domains.empty()) return options.domains;
  const char* const usual = std::getenv("WEIR_DOMAINS");
  return usual != nullptr && *usual != '\0' ? usual : "host";
}

tuner::Problem problem_of(const CLI::App& app, const std::string& application,
                          const RunOptions& options) {
  std::string words = options.parameters.single ? "float" : "";
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || neutral_options().count(name) > 0) continue;
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", name, option->as<std::string>());
  }
  return {machine_name(), domains_of(options), application, words, options.parameters.n};
}

std::string problem_words(const CLI::App& app) {
  const std::set<std::string> also = {"--n", "--domains", "--precision"};
  std::string words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool names_it = neutral_options().count(name) == 0 || also.count(name) > 0;
    if (option->count() == 0 || !names_it) continue;
    words += " " + name;
    if (option->get_items_expected_max() > 0) words += " " + shell_word(option->as<std::string>());
  }
  return words;
}

void divide(RunOptions& options, const tuner::Point& point) {
  options.sharing = {point.places, point.streams};
  options.policy = point.policy;
  options.parameters.aspect = point.aspect;
  if (point.tiles == 0) return;
  options.parameters.tiles = point.tiles;
  options.parameters.tile = 0;
}

}  // namespace weir::cli
