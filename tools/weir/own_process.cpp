#include "own_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <weir/weir.hpp>

#include "interruption.hpp"
#include "ranks.hpp"

namespace weir::cli {

namespace {

/// Reads a pipe to its end.
std::string read_all(int pipe) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t bytes = ::read(pipe, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
}

/// A process that does not outlive this one.
class RunningProcess final : public Stoppable {
 public:
  RunningProcess(pid_t number, std::string name) noexcept
      : number_(number), name_(std::move(name)) {}

  /// Waits for its end without reaping it: its process id stays valid.
  void wait() const noexcept {
    siginfo_t ended{};
    const auto number = static_cast<id_t>(number_);
    while (waitid(P_PID, number, &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  /// Sends one signal only: a second one would keep the process from ending in order.
  void stop() noexcept override {
    if (!std::exchange(told_, true)) ::kill(number_, SIGTERM);
  }
  std::string save() noexcept override { return name_; }

 private:
  const pid_t number_;
  const std::string name_;
  bool told_ = false;
};

}  // namespace

std::string output_of(const std::vector<std::string>& words,
                      const std::vector<std::string>& launcher) {
  std::vector<std::string> command = launcher;
  command.push_back(launcher.empty() ? "weir" : own_program());
  command.insert(command.end(), words.begin(), words.end());
  const std::string program = launcher.empty() ? own_program() : launcher.front();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw weir::Error(WEIR_STATUS_UNAVAILABLE, "there is no file left for what a run prints");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // In a group of its own: what the terminal sends to all of a group it gets once, from this one.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int refused =
      posix_spawnp(&process, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  if (refused == 0) {
    RunningProcess running(process, words.size() > 1 ? words[1] : words.front());
    const Interruption::Scope scope(running);
    text = read_all(ends[0]);
    running.wait();
  }
  ::close(ends[0]);
  int status = 0;
  while (refused == 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  Interruption::check();
  if (refused == ENOENT) {
    throw weir::Error(WEIR_STATUS_NOT_FOUND, fmt::format("there is no program '{}'", program));
  }
  if (refused != 0 || status != 0) {
    throw weir::Error(WEIR_STATUS_KERNEL_ERROR,
                      fmt::format("'{}' has failed", fmt::join(command, " ")));
  }
  return text;
}

}  // namespace weir::cli
