// The watchdog: reports what waits for what when nothing completes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "runtime/running_actions.hpp"

namespace weir::rt {

class Place;
class Runtime;
class Stream;

/// A report of a stream's actions. The owner of the stream fills it in, because only the owner may
/// read them; the watchdog waits for it up to a deadline.
class StreamReport {
 public:
  struct Line {
    std::string text;
    std::vector<std::uint64_t> events;  ///< ids of the events that it waits for
  };

  /// Called by the owner: sets the answer.
  void answer(std::vector<Line> lines) noexcept;
  /// Called by the watchdog: returns whether there is an answer before the deadline.
  bool wait(std::int64_t deadline_ns);
  const std::vector<Line>& lines() const noexcept { return lines_; }

 private:
  sys::Mutex mutex_;
  sys::Condition answered_;
  bool ready_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<Line> lines_ WEIR_GUARDED_BY(mutex_);
};

/// Prints a report on standard error, once for each standstill: when actions, tasks or a pipeline
/// are incomplete and nothing of the runtime has completed for a time. The report says what runs
/// where and for how long, what waits for what, which tasks are deferred, and which stages hold
/// items.
///
/// A thread of its own periodically reads the counters of streams, queues and pipelines.
class Watchdog {
 public:
  /// Maximum number of actions of a stream, or deferred tasks of a queue, in a report.
  static constexpr std::size_t kListed = 8;

  /// Throws Error if it cannot start a thread.
  Watchdog(Runtime& runtime, std::int64_t limit_ns);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  void watch();
  void look(std::int64_t now_ns);
  std::string report(std::int64_t for_ns) const;

  Runtime& runtime_;
  const std::int64_t limit_ns_;
  std::uint64_t completed_ = 0;  // sum of completions at the last check
  std::int64_t moved_ns_ = 0;    // time of the last change
  bool reported_ = false;

  sys::Mutex mutex_;
  sys::Condition leave_;
  bool leaving_ WEIR_GUARDED_BY(mutex_) = false;
  sys::Thread thread_;  // the last member: it uses all of the above
};

}  // namespace weir::rt
