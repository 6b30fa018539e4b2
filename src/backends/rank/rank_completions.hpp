// The completions that a rank reports for a place.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backends/rank/rank_wire.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// The report of a completed job.
struct RankCompletion {
  std::uint64_t number = 0;
  Outcome outcome;
  unsigned worker = 0;
  std::int64_t started_ns = 0, ended_ns = 0;  ///< on the rank's clock
};

/// The reports that have not been taken, and why no more will come. Any thread adds them; the
/// serving thread of the place takes them. At most `window` jobs are in flight.
class RankCompletions {
 public:
  explicit RankCompletions(std::size_t window) : window_(window) {
    added_.reserve(window);
    taken_.reserve(window);
  }

  /// Adds the reports of a message. Throws Error{network_error}.
  void read(WireReader& message) {
    const sys::Lock lock(mutex_);
    while (!message.empty()) {
      if (added_.size() == window_) WireReader::refuse("more jobs are over than there were");
      RankCompletion completion;
      message.get(completion.number);
      completion.outcome = message.outcome();
      message.get(completion.worker, completion.started_ns, completion.ended_ns);
      added_.push_back(std::move(completion));
      any_.store(true, std::memory_order_seq_cst);
    }
  }
  /// Records why no report follows, unless a reason is recorded.
  void end(Outcome why) noexcept {
    const sys::Lock lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = std::move(why);
    any_.store(true, std::memory_order_seq_cst);
  }
  /// Whether take() would find something new. Any thread.
  bool any() const noexcept { return any_.load(std::memory_order_seq_cst); }

  /// Takes all reports; valid until the next call.
  std::span<RankCompletion> take() noexcept {
    taken_.clear();
    const sys::Lock lock(mutex_);
    std::swap(taken_, added_);
    failed_ = !failure_.ok();
    any_.store(false, std::memory_order_seq_cst);
    return taken_;
  }
  /// Whether take() has found that no report follows.
  bool failed() const noexcept { return failed_; }
  /// Why no report follows.
  Outcome failure() const noexcept {
    const sys::Lock lock(mutex_);
    return failed_outcome(failure_.status, failure_.message.c_str());
  }

 private:
  const std::size_t window_;
  mutable sys::Mutex mutex_;
  std::vector<RankCompletion> added_ WEIR_GUARDED_BY(mutex_);
  Outcome failure_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<bool> any_{false};
  // Accessed by the serving thread only.
  std::vector<RankCompletion> taken_;
  bool failed_ = false;
};

}  // namespace weir::rt
