#include "fabric/shm/launch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

pid_t start(const char* const* arguments, Rank rank, Rank ranks, int segment) {
  std::vector<std::string> texts = environment_of(rank, ranks, segment);
  std::vector<char*> environment;
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  // Signals that are blocked in this process must not be blocked in the rank.
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int refused = posix_spawnp(&process, arguments[0], nullptr, &attributes,
                                   const_cast<char* const*>(arguments), environment.data());
  posix_spawnattr_destroy(&attributes);
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

/// Sleeps until a child ends or a timeout expires, so that the rank keeps its core.
class EndOfChildren {
 public:
  explicit EndOfChildren(const std::vector<Child>& children) {
    ends_.reserve(children.size());
    for (const Child& child : children) {
      const long end = syscall(SYS_pidfd_open, child.process, 0);
      ends_.push_back({static_cast<int>(end), POLLIN, 0});
      if (end < 0) check_ms_ = kBlindCheckMs;
    }
  }
  EndOfChildren(const EndOfChildren&) = delete;
  EndOfChildren& operator=(const EndOfChildren&) = delete;
  ~EndOfChildren() {
    for (std::size_t child = 0; child < ends_.size(); ++child) forget(child);
  }

  void wait() noexcept { poll(ends_.data(), ends_.size(), check_ms_); }
  /// Stops watching a child that has ended.
  void forget(std::size_t child) noexcept {
    if (ends_[child].fd >= 0) close(std::exchange(ends_[child].fd, -1));
  }

 private:
  std::vector<pollfd> ends_;  ///< poll() skips entries without a descriptor
  int check_ms_ = kCheckMs;
};

/// Waits for the children. Marks those that end, so that other ranks do not wait for a rank that
/// ended before it joined.
void supervise(std::vector<Child>& children, const Segment& segment, std::int64_t lost_after_ns) {
  const auto ended = [](const Child& child) { return child.status.has_value(); };
  std::int64_t stopped_since = 0;
  EndOfChildren ends(children);
  while (!std::all_of(children.begin(), children.end(), ended)) {
    for (Rank rank = 0; rank < children.size(); ++rank) {
      if (children[rank].status) continue;
      check(children[rank]);
      if (!children[rank].status) continue;
      segment.rank(rank).ended.store(1);
      ends.forget(rank);
    }
    const bool idle = std::all_of(children.begin(), children.end(), [&](const Child& child) {
      return ended(child) || child.stopped;
    });
    const std::int64_t now = sys::now_ns();
    if (!idle || stopped_since == 0) stopped_since = now;
    for (const Child& child : children) {
      if (idle && now - stopped_since > lost_after_ns && !child.status) {
        kill(child.process, SIGKILL);
      }
    }
    ends.wait();
  }
}

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

int launch_ranks(Rank ranks, const char* const* arguments, std::int64_t lost_after_ns) {
  Segment segment(ranks);
  std::vector<Child> children;
  children.reserve(ranks);
  const int inherited = fcntl(segment.descriptor(), F_DUPFD, 3);
  if (inherited < 0) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot start ranks: {}", std::strerror(errno));
  }
  try {
    for (Rank rank = 0; rank < ranks; ++rank) {
      children.push_back({start(arguments, rank, ranks, inherited), {}, false});
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
  supervise(children, segment, lost_after_ns);
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
