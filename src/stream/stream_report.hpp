// What the watchdog asks a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "core/action.hpp"

namespace weir::rt {

class Context;
class Engine;

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

/// Asks the owner of a stream for its report; on the heap.
struct ReportMessage : Message {
  std::shared_ptr<StreamReport> report;
};

/// Called by the owner: answers the message, and deletes it.
void answer(ReportMessage& message, const Engine& engine, const Context& context) noexcept;

}  // namespace weir::rt
