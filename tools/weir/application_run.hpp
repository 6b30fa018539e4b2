// Runs an application as often as requested, and measures it.
#pragma once

#include <cstddef>
#include <string>

#include "common/app_streams.hpp"
#include "common/workload.hpp"
#include "run_report.hpp"

namespace CLI {
class App;
}

namespace weir::cli {

/// The values of the options.
struct RunOptions {
  std::string domains, trace;
  std::string page;    ///< file of the report, "": none
  std::string policy;  ///< of the task queue, "": streams
  apps::Sharing sharing;
  apps::Parameters parameters;
  std::string size;  ///< name of a preset, "": none
  std::string precision = "double";
  std::size_t repeat = 11;
  double timeout_s = 0;  ///< 0: none
  bool verify = false;
  bool json = false;
  bool quiet = false;  ///< no progress line: there is another
  bool live = false;   ///< show what the pipeline does instead
};

/// Adds the options that choose the problem and the domains: those of one application, or of all.
void add_problem_options(CLI::App& app, RunOptions& options, const apps::Application* application);

/// Adds all options of a run of an application, its own as well.
void add_run_options(CLI::App& app, RunOptions& options, apps::Application& application);

/// Refuses an option by its name, for a reason that says what to do. --help does not list it.
void refuse_option(CLI::App& app, const std::string& option, const std::string& reason);

/// Returns why an application does not take an option.
std::string no_use(const apps::Application& application);

/// Derives settings of an application from the options: the size that they name, and float.
void complete(const apps::Application& application, RunOptions& options);

/// Runs an application on the requested domains, places and streams. Throws weir::Error, also for
/// unusable input, or Interrupted.
RunReport run_application(apps::Application& application, const RunOptions& options);

}  // namespace weir::cli
