#include "fabric/shm/launch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/counted.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "fabric/shm/segment.hpp"
#include "fabric/shm/shm_link.hpp"

namespace weir::rt {

namespace {

constexpr const char* kRank = "WEIR_RANK";
constexpr const char* kRanks = "WEIR_RANKS";
constexpr const char* kSegment = "WEIR_SEGMENT";
constexpr int kCheckMs = 100;     ///< between checks for stopped children
constexpr int kBlindCheckMs = 5;  ///< if the end of a child cannot wake this process
constexpr int kSignalStatus = 128;

/// A started process.
struct Child {
  pid_t process = 0;
  std::optional<int> status;
  bool stopped = false;
  bool unknown = false;  ///< it has ended, but another waiter received its status
};

/// Returns the environment of this process with the variables of a rank instead of its own.
std::vector<std::string> environment_of(Rank rank, Rank ranks, int segment) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
    if (name != kRank && name != kRanks && name != kSegment) result.emplace_back(*entry);
  }
  result.push_back(fmt::format("{}={}", kRank, rank));
  result.push_back(fmt::format("{}={}", kRanks, ranks));
  result.push_back(fmt::format("{}={}", kSegment, segment));
  return result;
}

/// Read ends of the pipes that ranks write to; without descriptors where ranks write elsewhere.
class RankOutputs {
 public:
  RankOutputs(Rank ranks, LaunchObserver& observer) : observer_(observer), ends_(2 * ranks, -1) {}
  RankOutputs(const RankOutputs&) = delete;
  RankOutputs& operator=(const RankOutputs&) = delete;
  ~RankOutputs() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }

  /// Creates a pipe for a stream of a rank. Returns its write end, which the caller closes. Throws
  /// Error.
  int open(Rank rank, int stream) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      fail(WEIR_STATUS_UNAVAILABLE, "no pipe for the output of rank {}: {}", rank,
           std::strerror(errno));
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    end_of(rank, stream) = ends[0];
    return ends[1];
  }

  int descriptor(std::size_t index) const noexcept { return ends_[index]; }
  std::size_t size() const noexcept { return ends_.size(); }

  /// Passes on what a rank has written.
  void read(Rank rank) noexcept {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) read(rank, stream);
  }

 private:
  int& end_of(Rank rank, int stream) noexcept {
    return ends_[2 * rank + static_cast<std::size_t>(stream) - 1];
  }

  void read(Rank rank, int stream) noexcept {
    int& end = end_of(rank, stream);
    std::array<char, 1 << 16> bytes;
    while (end >= 0) {
      const ssize_t count = ::read(end, bytes.data(), bytes.size());
      if (count > 0) {
        observer_.on_output(rank, stream, std::span(bytes).first(static_cast<std::size_t>(count)));
      } else if (count == 0) {
        close(std::exchange(end, -1));
      } else if (errno != EINTR) {
        return;
      }
    }
  }

  LaunchObserver& observer_;
  std::vector<int> ends_;  ///< standard output and error of each rank
};

/// What a rank's process gets from this one.
class SpawnSetup {
 public:
  SpawnSetup() {
    // Signals that are blocked in this process must not be blocked in the rank.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&files);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    for (const int end : pipes_) close(end);
  }

  void set_output(int stream, int pipe) {
    pipes_.push_back(pipe);
    posix_spawn_file_actions_adddup2(&files, pipe, stream);
  }
  void set_no_input() {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;

 private:
  std::vector<int> pipes_;  ///< write ends
};

pid_t start(const char* const* arguments, Rank rank, Rank ranks, int segment,
            const SpawnSetup& setup) {
  std::vector<std::string> texts = environment_of(rank, ranks, segment);
  std::vector<char*> environment;
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  pid_t process = 0;
  const int refused = posix_spawnp(&process, arguments[0], &setup.files, &setup.attributes,
                                   const_cast<char* const*>(arguments), environment.data());
  if (refused != 0) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot start rank {} of '{}': {}", rank, arguments[0],
         std::strerror(refused));
  }
  return process;
}

void check(Child& child) {
  int status = 0;
  const pid_t changed = waitpid(child.process, &status, WNOHANG | WUNTRACED | WCONTINUED);
  child.unknown = changed < 0 && errno == ECHILD;
  if (child.unknown) child.status = 0;
  if (changed != child.process) return;
  if (WIFEXITED(status)) child.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child.status = kSignalStatus + WTERMSIG(status);
  child.stopped = WIFSTOPPED(status);
}

/// Sleeps until a child ends or writes, or a timeout expires, so that the rank keeps its core.
class ChildEvents {
 public:
  ChildEvents(const std::vector<Child>& children, const RankOutputs& outputs)
      : outputs_(outputs), children_(children.size()) {
    ends_.reserve(children_ + outputs.size());
    for (const Child& child : children) {
      const long end = syscall(SYS_pidfd_open, child.process, 0);
      ends_.push_back({static_cast<int>(end), POLLIN, 0});
      if (end < 0) check_ms_ = kBlindCheckMs;
    }
    ends_.resize(children_ + outputs.size(), {-1, POLLIN, 0});
  }
  ChildEvents(const ChildEvents&) = delete;
  ChildEvents& operator=(const ChildEvents&) = delete;
  ~ChildEvents() {
    for (std::size_t child = 0; child < children_; ++child) forget(child);
  }

  void wait() noexcept {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      ends_[children_ + i].fd = outputs_.descriptor(i);
    }
    poll(ends_.data(), ends_.size(), check_ms_);
  }
  /// Stops watching a child that has ended.
  void forget(std::size_t child) noexcept {
    if (ends_[child].fd >= 0) close(std::exchange(ends_[child].fd, -1));
  }

 private:
  const RankOutputs& outputs_;
  const std::size_t children_;
  std::vector<pollfd> ends_;  ///< children, then outputs; poll() skips entries without a descriptor
  int check_ms_ = kCheckMs;
};

/// Waits for the children. Marks those that end, so that other ranks do not wait for a rank that
/// ended before it joined.
class Supervisor {
 public:
  Supervisor(std::vector<Child>& children, const Segment& segment, RankOutputs& outputs,
             LaunchObserver& observer)
      : children_(children),
        segment_(segment),
        outputs_(outputs),
        observer_(observer),
        events_(children, outputs) {}

  void run(std::int64_t lost_after_ns) {
    const auto ended = [](const Child& child) { return child.status.has_value(); };
    for (;;) {
      for (Rank rank = 0; rank < children_.size(); ++rank) outputs_.read(rank);
      note_ended();
      if (std::all_of(children_.begin(), children_.end(), ended)) return;
      kill_stopped(lost_after_ns);
      if (const int signal = observer_.next_signal(); signal != 0) send(signal);
      events_.wait();
    }
  }

 private:
  void note_ended() {
    std::vector<Rank> ended;
    for (Rank rank = 0; rank < children_.size(); ++rank) {
      if (children_[rank].status) continue;
      check(children_[rank]);
      if (!children_[rank].status) continue;
      segment_.rank(rank).ended.store(1);
      events_.forget(rank);
      ended.push_back(rank);
    }
    // A rank that a signal has ended may have made the others fail meanwhile.
    const auto by_signal = [this](Rank rank) { return *children_[rank].status > kSignalStatus; };
    std::stable_partition(ended.begin(), ended.end(), by_signal);
    for (const Rank rank : ended) {
      outputs_.read(rank);
      observer_.on_end(rank, *children_[rank].status);
    }
  }

  /// Kills stopped children when no other one runs.
  void kill_stopped(std::int64_t lost_after_ns) noexcept {
    const std::int64_t now = sys::now_ns();
    const bool idle = std::all_of(children_.begin(), children_.end(), [](const Child& child) {
      return child.status.has_value() || child.stopped;
    });
    if (!idle || stopped_since_ == 0) stopped_since_ = now;
    if (now - stopped_since_ > lost_after_ns) send(SIGKILL);
  }

  void send(int signal) noexcept {
    for (const Child& child : children_) {
      if (!child.status) kill(child.process, signal);
    }
  }

  std::vector<Child>& children_;
  const Segment& segment_;
  RankOutputs& outputs_;
  LaunchObserver& observer_;
  ChildEvents events_;
  std::int64_t stopped_since_ = 0;
};

/// Ends this rank together with its launcher, or with a process between the two. Throws Error if
/// one of them has ended already.
void end_with(pid_t launcher) {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent && (parent == launcher || kill(launcher, 0) == 0 || errno != ESRCH)) {
    return;
  }
  fail(WEIR_STATUS_NETWORK_ERROR, "process {}, which has started this rank, has ended", launcher);
}

/// Starts the processes of all ranks. Throws Error, and leaves none of them running then.
std::vector<Child> start_all(const Segment& segment, const char* const* arguments,
                             RankOutputs& outputs, const LaunchObserver& observer) {
  const Rank ranks = segment.ranks();
  std::vector<Child> children;
  children.reserve(ranks);
  const int inherited = fcntl(segment.descriptor(), F_DUPFD, 3);
  if (inherited < 0) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot start ranks: {}", std::strerror(errno));
  }
  try {
    for (Rank rank = 0; rank < ranks; ++rank) {
      SpawnSetup setup;
      if (rank > 0) setup.set_no_input();
      for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
        if (observer.takes_output()) setup.set_output(stream, outputs.open(rank, stream));
      }
      children.push_back({start(arguments, rank, ranks, inherited, setup), {}, false});
    }
  } catch (...) {
    close(inherited);
    for (const Child& child : children) {
      kill(child.process, SIGKILL);
      waitpid(child.process, nullptr, 0);
    }
    throw;
  }
  close(inherited);
  return children;
}

std::uint64_t number_of(const char* variable) {
  const char* const text = sys::environment(variable);
  const auto number = text != nullptr ? parse_unsigned(text) : std::nullopt;
  if (!number || *number > INT32_MAX) {
    fail_argument("{} is '{}': start ranks with weir run --ranks", variable,
                  text != nullptr ? text : "");
  }
  return *number;
}

}  // namespace

int launch_ranks(Rank ranks, const char* const* arguments, std::int64_t lost_after_ns,
                 LaunchObserver& observer) {
  Segment segment(ranks);
  RankOutputs outputs(ranks, observer);
  std::vector<Child> children = start_all(segment, arguments, outputs, observer);
  Supervisor(children, segment, outputs, observer).run(lost_after_ns);
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (*children[rank].status != 0) return *children[rank].status;
    if (!children[rank].unknown) continue;
    fail(WEIR_STATUS_UNAVAILABLE,
         "how rank {} of '{}' has ended is unknown: this process ignores SIGCHLD, or something "
         "else in it waits for its children",
         rank, arguments[0]);
  }
  return 0;
}

bool was_launched() noexcept { return sys::environment(kSegment) != nullptr; }

const char* launched_rank() noexcept { return was_launched() ? sys::environment(kRank) : nullptr; }

std::unique_ptr<Link> launched_link() {
  const auto ranks = static_cast<Rank>(number_of(kRanks));
  const auto rank = static_cast<Rank>(number_of(kRank));
  if (rank >= ranks) {
    fail_argument("WEIR_RANK is {}: there {} {}", rank, is_or_are(ranks), counted(ranks, "rank"));
  }
  auto segment = Segment::attach(static_cast<int>(number_of(kSegment)), ranks);
  end_with(static_cast<pid_t>(segment->maker()));
  return std::make_unique<ShmLink>(std::move(segment), rank);
}

}  // namespace weir::rt
