#include "interruption.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "ranks.hpp"

namespace weir::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kToUnwind{500};
constexpr std::chrono::milliseconds kStopAgain{20};

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// The state is global because a process has one set of signal handlers.
struct State {
  std::atomic<int> signal{0};        ///< the first signal
  std::atomic<bool> leaving{false};  ///< the watching thread is no longer needed
  std::atomic<bool> ended{false};    ///< a thread reports the end
  std::atomic<bool> failed{false};   ///< and has reported why
  std::mutex mutex;                  ///< guards the members below
  Stoppable* work = nullptr;
  std::string last_words;
  sigset_t watched{}, before{};
  int wakes = 0;  ///< one of those watched, 0: there is none
  std::thread watcher;
};
State state;

const char* signal_name(int signal) noexcept {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

/// Writes the line, unless the write would block on its reader. Launchers stop the ranks beside one
/// that failed: a rank that has failed as well, or has nothing to add, prints nothing.
void say(const std::string& words) {
  if (words.empty() && (state.failed || !speaks_for_machine())) return;
  pollfd target{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&target, 1, 0) != 1) return;
  const std::string line =
      fmt::format("{}weir: stopped by {}{}{}\n", is_terminal(STDERR_FILENO) ? "\r\x1b[K" : "",
                  signal_name(state.signal), words.empty() ? "" : ": ", words);
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

[[noreturn]] void leave_now(const std::string& words) {
  say(words);
  _exit(128 + state.signal);
}

void stop_work() {
  const std::lock_guard lock(state.mutex);
  if (state.work != nullptr) state.work->stop();
}

/// Ends a process whose work does not unwind. Signals have their default effect while it writes a
/// trace.
void give_up() {
  if (state.ended.exchange(true)) return;
  pthread_sigmask(SIG_UNBLOCK, &state.watched, nullptr);
  const std::lock_guard lock(state.mutex);
  leave_now(state.work != nullptr ? state.work->save() : state.last_words);
}

/// Whether the process that started this rank has sent the signal, because it got one itself.
bool is_passed_on(const siginfo_t& info) noexcept {
  return is_rank() && info.si_code == SI_USER && info.si_pid == getppid();
}

bool take_signal(const siginfo_t& info) {
  const std::lock_guard lock(state.mutex);
  return state.work != nullptr && state.work->take_signal(info.si_signo, info.si_code == SI_KERNEL);
}

void watch() {
  siginfo_t first{};
  do {
    while (sigwaitinfo(&state.watched, &first) < 0) {
    }
    if (state.leaving) return;
  } while (take_signal(first));
  int signal = first.si_signo;
  state.signal = signal;
  const auto limit = Clock::now() + kToUnwind;
  const timespec pause{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kStopAgain).count()};
  do {
    stop_work();  // also what was enqueued since
    siginfo_t info{};
    signal = sigtimedwait(&state.watched, &info, &pause);
    if (state.leaving) return;
    const bool again = signal > 0 && !is_passed_on(info);
    if (again && !state.ended.exchange(true)) leave_now("at once");
  } while (Clock::now() < limit);
  give_up();
}

}  // namespace

Interruption::Interruption() {
  sigemptyset(&state.watched);
  for (const int signal : kSignals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    sigaddset(&state.watched, signal);
    state.wakes = signal;
  }
  if (state.wakes == 0) return;
  pthread_sigmask(SIG_BLOCK, &state.watched, &state.before);
  try {
    state.watcher = std::thread(watch);
  } catch (const std::system_error&) {  // signals do what they usually do
    pthread_sigmask(SIG_SETMASK, &state.before, nullptr);
  }
}

Interruption::~Interruption() {
  if (!state.watcher.joinable()) return;
  state.leaving = true;
  pthread_kill(state.watcher.native_handle(), state.wakes);  // others may be ignored
  state.watcher.join();
}

int Interruption::end(int status) {
  if (!requested()) return status;
  if (state.ended.exchange(true)) {
    for (;;) pause();  // the watching thread ends the process
  }
  say(state.last_words);
  return 128 + state.signal;
}

bool Interruption::requested() noexcept { return state.signal != 0; }

void Interruption::note_failure() noexcept { state.failed = true; }

void Interruption::check() {
  if (requested()) throw Interrupted();
}

Interruption::Scope::Scope(Stoppable& work) : work_(work) {
  const std::lock_guard lock(state.mutex);
  state.work = &work;
}

Interruption::Scope::~Scope() {
  const std::lock_guard lock(state.mutex);
  state.work = nullptr;
}

void Interruption::Scope::save() noexcept {
  std::string words = work_.save();
  const std::lock_guard lock(state.mutex);
  state.last_words = std::move(words);
}

}  // namespace weir::cli
