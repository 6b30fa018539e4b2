#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "common/counted.hpp"
#include "description.hpp"
#include "installation_checks.hpp"
#include "interruption.hpp"
#include "machine_checks.hpp"
#include "mpi_checks.hpp"
#include "permission_checks.hpp"
#include "runtime_checks.hpp"
#include "terminal.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Level level) {
  switch (level) {
    case Level::ok: return "ok";
    case Level::warning: return "warning";
    case Level::problem: break;
  }
  return "problem";
}

Tone tone_of(Level level) {
  switch (level) {
    case Level::ok: return Tone::good;
    case Level::warning: return Tone::warning;
    case Level::problem: break;
  }
  return Tone::bad;
}

std::size_t count(const Findings& findings, Level level) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [level](const Finding& finding) { return finding.level == level; }));
}

/// Adds what a check found. A signal ends the examination between two checks.
void append(Findings& findings, Findings more) {
  Interruption::check();
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

/// Returns the backends without a domain in `description`; the others are checked with their
/// domains.
std::vector<std::string> other_backends(const Json& description) {
  std::vector<std::string> kinds;
  for (const Json& backend : description.at("backends")) {
    const auto kind = backend.at("kind").get<std::string>();
    const auto& domains = description.at("domains");
    if (kind == "rank") continue;  // it depends on how the program was started
    if (std::none_of(domains.begin(), domains.end(),
                     [&](const Json& domain) { return domain.at("backend") == kind; })) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

Finding check_version() {
  const std::string_view loaded = weir_version();
  if (loaded == WEIR_VERSION_STRING) {
    return {Level::ok, "library", fmt::format("version {}", loaded)};
  }
  return {
      Level::warning, "library",
      fmt::format("version {}, but this tool has version {}", loaded, WEIR_VERSION_STRING),
      "unset LD_LIBRARY_PATH, or install both from one version; the line 'loader' names the file"};
}

/// All checks, those of a runtime only when it opens.
Findings examine(const RuntimeChoice& choice) {
  Findings findings{check_version()};
  append(findings, check_installation());
  append(findings, check_permissions());
  try {
    // Before a runtime of ranks, whose MPI forbids copies of the process.
    append(findings, check_mpi(describe(open_runtime({.domains = "null", .blas = choice.blas}))));
    const auto start = std::chrono::steady_clock::now();
    const Runtime runtime = open_runtime(choice);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    findings.push_back({Level::ok, "runtime", "opens in " + format_seconds(taken.count())});
    const Json description = describe(runtime);
    append(findings, check_machine(description));
    append(findings, check_blas(choice.blas));
    append(findings, check_domains(runtime));
    for (const std::string& kind : other_backends(description)) {
      append(findings, {check_backend(kind)});
    }
    append(findings, {check_trace(runtime)});
  } catch (const Error& error) {
    findings.push_back({Level::problem, "runtime", error.what(),
                        "correct --domains, WEIR_DOMAINS or WEIR_BLAS; see weir help doctor"});
  }
  return findings;
}

Json json_of(const Findings& findings) {
  Json json;
  json["schema"] = "weir.doctor/1";
  json["version"] = weir_version();
  json["usable"] = count(findings, Level::problem) == 0;
  json["warnings"] = count(findings, Level::warning);
  json["problems"] = count(findings, Level::problem);
  json["checks"] = Json::array();
  for (const Finding& finding : findings) {
    json["checks"].push_back({{"check", finding.check},
                              {"level", name_of(finding.level)},
                              {"found", finding.found},
                              {"fix", finding.fix.empty() ? Json(nullptr) : Json(finding.fix)}});
  }
  return json;
}

std::string verdict(const Findings& findings) {
  const std::size_t problems = count(findings, Level::problem);
  const std::size_t warnings = count(findings, Level::warning);
  const std::string tail = " (" + apps::counted(warnings, "warning") + ")";
  if (problems == 0) return paint("weir is usable here", Tone::good) + tail;
  return paint(apps::counted(problems, "problem"), Tone::bad) + tail;
}

std::string page_of(const Findings& findings) {
  Table table;
  for (const Finding& finding : findings) {
    table.add(
        {paint(name_of(finding.level), tone_of(finding.level)), finding.check, finding.found});
    if (!finding.fix.empty()) table.add({"", "", "-> " + finding.fix});
  }
  return table.text() + "\n" + verdict(findings) + "\n";
}

class DoctorCommand final : public Command {
 public:
  const char* name() const override { return "doctor"; }
  const char* summary() const override {
    return "Check what works on this machine, and how to fix the rest";
  }
  void add_options(CLI::App& app) override;
  ExitCode run() override;

 private:
  RuntimeChoice choice_;
  bool json_ = false;
};

void DoctorCommand::add_options(CLI::App& app) {
  app.add_option("--domains", choice_.domains, "Domains to try (default: WEIR_DOMAINS, or host)")
      ->type_name("LIST");
  app.add_option("--blas", choice_.blas, "BLAS to try (default: WEIR_BLAS, or the best installed)")
      ->type_name("NAME|PATH");
  app.add_flag("--json", json_, "Print one JSON object");
  app.footer(
      "\nExamples:\n"
      "  weir doctor\n"
      "  weir doctor --domains host,sim:cores=2\n"
      "  weir doctor --json | jq '.checks[] | select(.level != \"ok\")'\n"
      "\nExit status: 0 if weir is usable, even with warnings; 4 otherwise.");
}

ExitCode DoctorCommand::run() {
  const Findings findings = examine(choice_);
  constexpr auto kReplace = Json::error_handler_t::replace;
  print(json_ ? json_of(findings).dump(2, ' ', false, kReplace) + "\n" : page_of(findings));
  return count(findings, Level::problem) == 0 ? ExitCode::ok : ExitCode::unavailable;
}

}  // namespace

std::unique_ptr<Command> make_doctor() { return std::make_unique<DoctorCommand>(); }

}  // namespace weir::cli
