// Runs the threads of a test one at a time, in an order that a seed decides, in virtual time.
//
// Every operation that another thread could see (base/threads.hpp) is a point at which the
// scheduler may go on with another thread. Threads are real ones that hand on a baton, so debuggers
// and thread-local variables work as usual. One seed is one schedule: the same program does the
// same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::schedule {

enum class Strategy {
  random,      ///< switches at random points, more or less often depending on the seed
  priorities,  ///< PCT: the thread of highest priority runs; priorities drop at few random points
  replay       ///< the switches of an earlier run
};

/// The scheduler went on with another thread at a point.
struct Switch {
  std::uint64_t point = 0;
  std::uint32_t thread = 0;
  bool operator==(const Switch&) const = default;
};

struct Options {
  std::uint64_t seed = 1;
  Strategy strategy = Strategy::random;
  std::vector<Switch> switches;               ///< for replay
  bool record = false;                        ///< the switches, for replay
  std::uint64_t most_points = 1'000'000'000;  ///< a run with more is stuck
  std::string replay_command;                 ///< printed when the run is stuck
};

struct Summary {
  std::uint64_t hash = 0;  ///< of every point: which thread, what it did
  std::uint64_t points = 0;
  std::uint64_t switches = 0;
  std::int64_t virtual_ns = 0;
  std::vector<Switch> recorded;
};

/// Exit status of a process whose run was stuck.
inline constexpr int kStuck = 42;

/// Runs body and all threads that it starts. They must have ended when body returns. A run in which
/// no thread can go on, or none makes progress, ends the process with status kStuck after a list of
/// the threads.
Summary run(const Options& options, const std::function<void()>& body);

// For base/threads.hpp. Outside of run() they do nothing.

enum class Operation : std::uint8_t { load, store, change, pause, wait, wake, lock, start, end };

/// Another thread may go on here.
void point(Operation operation) noexcept;
/// The thread polls: others go on if they can.
void pause() noexcept;
/// A rare event that is allowed but seldom happens, such as a wait that returns early.
bool mishap() noexcept;

std::int64_t now_ns() noexcept;
/// Blocks until woken at the address or the deadline (never returns early by itself).
void block(const void* address, std::int64_t deadline_ns) noexcept;
/// Lets one or all of those go on that are blocked at the address; wake() is a point, too.
void unblock(const void* address, bool all) noexcept;
void wake(const void* address, bool all) noexcept;

/// A thread of the run. Starts at some later point.
class Thread {
 public:
  Thread() = default;
  Thread(const std::string& name, std::function<void()> body);
  Thread(Thread&& other) noexcept : record_(other.record_) { other.record_ = nullptr; }
  Thread& operator=(Thread&&) = delete;
  ~Thread() { join(); }
  void join() noexcept;

 private:
  struct Record* record_ = nullptr;
};

}  // namespace weir::schedule
