// Says what everything waits for when nothing ends any more.
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

/// What a stream tells of its actions. The stream's owner fills it in, as it alone may look at
/// them; the watchdog waits for that no longer than it wants to.
class StreamReport {
 public:
  struct Line {
    std::string text;
    std::vector<std::uint64_t> events;  ///< of these ids it waits for
  };

  /// The owner: gives the answer.
  void answer(std::vector<Line> lines) noexcept;
  /// The watchdog: returns whether there is an answer before the deadline.
  bool wait(std::int64_t deadline_ns);
  const std::vector<Line>& lines() const noexcept { return lines_; }

 private:
  sys::Mutex mutex_;
  sys::Condition answered_;
  bool ready_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<Line> lines_ WEIR_GUARDED_BY(mutex_);
};

/// Prints on standard error, once for each standstill, when actions or tasks of queues are in
/// flight, or a pipeline is not at its end, and nothing of the runtime has ended for a time: what
/// runs where for how long, what waits for what, which tasks have no place, and which stages hold
/// items.
///
/// A thread of its own looks now and then at the counters of the streams, queues and pipelines.
class Watchdog {
 public:
  /// Actions of a stream, and tasks of a queue without a place, that are listed one by one.
  static constexpr std::size_t kListed = 8;

  /// Throws Error when no thread can be had.
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
  std::uint64_t completed_ = 0;  // when last looked at
  std::int64_t moved_ns_ = 0;    // when something last did
  bool reported_ = false;

  sys::Mutex mutex_;
  sys::Condition leave_;
  bool leaving_ WEIR_GUARDED_BY(mutex_) = false;
  sys::Thread thread_;  // last: it uses all of the above
};

}  // namespace weir::rt
