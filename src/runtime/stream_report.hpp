// What the watchdog asks a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

/// A report of a stream's actions. The owner of the stream fills it in, because only the owner may
/// read them; the watchdog waits for it up to a deadline.
class StreamReport {
 public:
  /// Maximum number of actions in a report.
  static constexpr std::size_t kMostLines = 8;

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

}  // namespace weir::rt
