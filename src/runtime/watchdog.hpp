// The watchdog: reports what waits for what when nothing completes.
#pragma once

#include <cstdint>
#include <string>

#include "base/threads.hpp"
#include "stream/stream_report.hpp"

namespace weir::rt {

class Port;
class WorkRegistry;

/// Prints a report on standard error, once for each standstill: when actions, tasks or a pipeline
/// are incomplete and nothing of the runtime has completed for a time. The report says what runs
/// where and for how long, what waits for what, which tasks are deferred, and which stages hold
/// items.
///
/// A thread of its own periodically reads the counters of streams, queues and pipelines.
class Watchdog {
 public:
  /// Maximum number of actions of a stream, or deferred tasks of a queue, in a report.
  static constexpr std::size_t kListed = StreamReport::kMostLines;

  /// `port` is null without a fabric. Throws Error if it cannot start a thread.
  Watchdog(WorkRegistry& runtime, const Port* port, std::int64_t limit_ns);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  void watch();
  void check(std::int64_t now_ns);
  std::string report(std::int64_t for_ns) const;

  WorkRegistry& runtime_;
  const Port* const port_;
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
