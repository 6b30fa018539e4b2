// Running an application as often as asked for, and measuring it.
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

/// What the options say.
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

/// Adds the options that say what is computed and where: those of an application, or of all.
void add_problem_options(CLI::App& app, RunOptions& options, const apps::Application* application);

/// Refuses an option by its name, for a reason that says what to do. --help does not list it.
void refuse_option(CLI::App& app, const std::string& option, const std::string& reason);

/// The reason for an option that means nothing to an application.
std::string no_use(const apps::Application& application);

/// Fills in what follows from the options for an application: the size that they name, and float.
void complete(const apps::Application& application, RunOptions& options);

/// Runs an application on the domains, places and streams asked for. Throws weir::Error, also for
/// input that cannot be used, or Interrupted.
RunReport run_application(apps::Application& application, const RunOptions& options);

}  // namespace weir::cli
