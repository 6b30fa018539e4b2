// The command line tool.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "command_line.hpp"
#include "interruption.hpp"
#include "ranks.hpp"
#include "tool.hpp"

namespace {

/// Keeps a file from taking the number of a closed standard stream: writing there fails instead.
void hold_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) == -1) {
      static_cast<void>(open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

/// A place of a GPU has eight streams or more; the CUDA driver makes streams beyond eight share
/// connections unless this variable is set before the driver starts.
void ask_for_connections() { static_cast<void>(setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0)); }

weir::cli::Commands all_commands() {
  weir::cli::Commands commands;
  commands.push_back(weir::cli::make_info());
  commands.push_back(weir::cli::make_run());
  commands.push_back(weir::cli::make_launch());
  commands.push_back(weir::cli::make_bench());
  commands.push_back(weir::cli::make_paper());
  commands.push_back(weir::cli::make_tune());
  commands.push_back(weir::cli::make_report());
  commands.push_back(weir::cli::make_doctor());
  return commands;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, waitpid() does not report how a rank ended
  hold_standard_streams();
  ask_for_connections();
  weir::cli::keep_arguments(argc, argv);
  weir::cli::Interruption interruption;
  const auto code = weir::cli::run_tool(argc, argv, all_commands());
  weir::cli::leave_fabric();
  return interruption.end(static_cast<int>(code));
}
