#include "child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interruption.hpp"

namespace weir::cli {

namespace {

constexpr std::size_t kMostOutput = 64u << 10;
constexpr int kChildTickMs = 20;

/// The two ends of a pipe; reading does not wait.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) return;
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_input();
    if (ends_[0] >= 0) close(ends_[0]);
  }

  bool is_open() const { return ends_[0] >= 0; }
  int input() const { return ends_[1]; }
  int output() const { return ends_[0]; }
  void close_input() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Waits for a child, which leads a process group of its own, and collects its output.
class Child {
 public:
  Child(pid_t process, int output) : process_(process), output_(output) {}

  ChildResult collect(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    bool ended = false;
    while (!(ended = has_ended()) && std::chrono::steady_clock::now() < deadline &&
           !Interruption::requested()) {
      wait_for_output();
    }
    drain();
    kill(-process_, SIGKILL);
    kill(process_, SIGKILL);
    reap(ended);
    return std::move(result_);
  }

 private:
  /// The process stays until reap(), so that its number and group name nothing else.
  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == process_;
  }

  void wait_for_output() {
    pollfd readable{.fd = complete_ ? -1 : output_, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, kChildTickMs) > 0) drain();
  }

  void drain() {
    std::array<char, 4096> part;
    while (!complete_) {
      const ssize_t got = ::read(output_, part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      complete_ = got == 0 || (got < 0 && errno != EAGAIN);
      if (got <= 0) return;
      const std::size_t room = kMostOutput - result_.output.size();
      result_.output.append(part.data(), std::min(room, static_cast<std::size_t>(got)));
      if (room == 0) return;  // the deadline also ends a process that never stops writing
    }
  }

  /// A process that the kernel holds may outlive SIGKILL: it is not waited for.
  void reap(bool ended) {
    int status = 0;
    pid_t reaped = 0;
    for (int tries = 0; tries < 50 && reaped == 0; ++tries) {
      reaped = waitpid(process_, &status, WNOHANG);
      if (reaped == 0) poll(nullptr, 0, kChildTickMs);
    }
    using End = ChildResult::End;
    result_.end = !ended ? End::timed_out : WIFSIGNALED(status) ? End::signalled : End::exited;
    result_.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }

  const pid_t process_;
  const int output_;
  bool complete_ = false;
  ChildResult result_;
};

ChildResult not_started(int error) { return {ChildResult::End::not_started, error, {}}; }

int spawn(const std::vector<std::string>& command, int output, pid_t& process) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int refused =
      posix_spawn(&process, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return refused;
}

[[noreturn]] void run_in_copy(const std::function<std::string()>& function, int output) {
  setpgid(0, 0);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  int status = 1;
  try {
    const std::string text = function().substr(0, kMostOutput);
    status = ::write(output, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  } catch (...) {  // the status says it
  }
  _exit(status);
}

}  // namespace

std::string find_program(const std::string& name) {
  const char* const path = secure_getenv("PATH");
  std::stringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  Pipe pipe;
  if (!pipe.is_open()) return not_started(errno);
  pid_t process = 0;
  const int refused = spawn(command, pipe.input(), process);
  if (refused != 0) return not_started(refused);
  pipe.close_input();
  return Child(process, pipe.output()).collect(limit);
}

ChildResult call_in_child(const std::function<std::string()>& function,
                          std::chrono::milliseconds limit) {
  Pipe pipe;
  if (!pipe.is_open()) return not_started(errno);
  const pid_t process = fork();
  if (process < 0) return not_started(errno);
  if (process == 0) run_in_copy(function, pipe.input());
  setpgid(process, process);  // the child does it, too: neither may come late
  pipe.close_input();
  return Child(process, pipe.output()).collect(limit);
}

std::string in_words(const ChildResult& result) {
  switch (result.end) {
    case ChildResult::End::exited: return fmt::format("ended with status {}", result.status);
    case ChildResult::End::signalled: return fmt::format("was ended by signal {}", result.status);
    case ChildResult::End::timed_out: return "did not end in time";
    case ChildResult::End::not_started: break;
  }
  return fmt::format("cannot be started: {}", std::strerror(result.status));
}

}  // namespace weir::cli
