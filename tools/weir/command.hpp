// The commands of the tool `weir`.
#pragma once

#include <memory>

namespace CLI {
class App;
}

namespace weir::cli {

/// The exit status of the tool; 128 + its number after a signal.
enum class ExitCode : int {
  ok = 0,
  run_failed = 1,
  usage = 2,
  bad_input = 3,    ///< also a configuration that cannot be
  unavailable = 4,  ///< a device or library is not there
  mismatch = 5,     ///< the result was computed and is wrong
  deadline = 6
};

/// One command of the tool.
class Command {
 public:
  virtual ~Command() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;
  /// Adds the options, bound to members of the command, and a footer that starts with examples.
  virtual void add_options(CLI::App& app) = 0;
  /// Runs the command after its options were parsed. Data goes to standard output, messages to
  /// standard error; throws weir::Error, or any exception, for main() to translate.
  virtual ExitCode run() = 0;
};

std::unique_ptr<Command> make_info();
std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_launch();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_paper();
std::unique_ptr<Command> make_tune();
std::unique_ptr<Command> make_report();
std::unique_ptr<Command> make_doctor();

}  // namespace weir::cli
