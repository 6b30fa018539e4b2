// The time and the end of a pipeline.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <weir/pipeline.h>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "pipeline/bell.hpp"

namespace weir::rt {

class WorkerGroups;

/// Real or virtual time, the time from start to end, and whether latencies are sampled.
class FlowClock {
 public:
  /// Sets virtual time, before start(): advance() passes time and returns whether an event
  /// happened, pass(ns) passes so much, now() returns nanoseconds.
  void make_virtual(std::function<bool()> advance, std::function<void(std::int64_t)> pass,
                    std::function<std::int64_t()> now) {
    advance_ = std::move(advance);
    pass_ = std::move(pass);
    now_ = std::move(now);
  }
  bool is_virtual() const noexcept { return advance_ != nullptr; }
  bool advance() const { return advance_(); }
  /// Passes whole nanoseconds and keeps the rest for the next call. Returns how many. The worker.
  std::int64_t pass(double ns) {
    const double all = ns + left_ns_, whole = std::floor(all);
    left_ns_ = all - whole;
    pass_(static_cast<std::int64_t>(whole));
    return static_cast<std::int64_t>(whole);
  }
  std::int64_t now_ns() const noexcept { return now_ ? now_() : sys::now_ns(); }

  void start() noexcept { started_ns_ = now_ns(); }
  /// Any thread.
  void end() noexcept { ended_ns_.store(now_ns(), std::memory_order_relaxed); }
  /// From start() to end(), or to now. Not before start().
  std::uint64_t elapsed_ns() const noexcept {
    const std::int64_t until = std::min(now_ns(), ended_ns_.load(std::memory_order_relaxed));
    return static_cast<std::uint64_t>(std::max<std::int64_t>(until - started_ns_, 0));
  }

  bool sampling() const noexcept { return sampling_.load(std::memory_order_relaxed); }
  void start_sampling() noexcept { sampling_.store(true, std::memory_order_relaxed); }

 private:
  std::function<bool()> advance_;
  std::function<void(std::int64_t)> pass_;
  std::function<std::int64_t()> now_;
  double left_ns_ = 0;  ///< less than one nanosecond
  std::int64_t started_ns_ = 0;
  sys::Atomic<std::int64_t> ended_ns_{sys::kNever};
  sys::Atomic<bool> sampling_{false};
};

/// The end and the outcome of a pipeline, and the threads that its end waits for. A pipeline ends
/// exactly once: finish() when all items are complete, or stop(). The outcome is the first failure;
/// it does not change after the end. Any thread.
class FlowCompletion {
 public:
  /// The name and the options are those of the pipeline. All arguments outlive the completion.
  FlowCompletion(const std::string& name, const weir_pipeline_options& options, FlowClock& clock,
                 WorkerGroups& groups) noexcept
      : name_(name), options_(options), clock_(clock), groups_(groups) {}

  /// Bracket code of the program that runs in the pipeline: wait() waits for it.
  void enter() noexcept { working_.fetch_add(1, std::memory_order_seq_cst); }
  void leave() noexcept {
    working_.fetch_sub(1, std::memory_order_seq_cst);
    done_.ring();
  }
  /// Counts a thread in a call of the program that may end the pipeline, whose destructor waits for
  /// it: the thread that waits for the end may destroy the pipeline.
  class Call {
   public:
    explicit Call(FlowCompletion& of) noexcept : of_(of) {
      of_.calls_.fetch_add(1, std::memory_order_acq_rel);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() { of_.calls_.fetch_sub(1, std::memory_order_release); }

   private:
    FlowCompletion& of_;
  };

  bool ended() const noexcept { return state_.load(std::memory_order_seq_cst) != kOpen; }
  /// Whether it has ended because all items are complete.
  bool finished() const noexcept { return state_.load(std::memory_order_acquire) == kFinished; }
  /// Ends the pipeline unless it has ended: all items are complete.
  void finish() noexcept;
  /// Ends the pipeline with a failure unless it has ended.
  void stop(weir_status status, const char* message) noexcept;
  /// Notes the failure of an item or batch, calls on_failure, and stops the pipeline unless
  /// keep_going is set.
  void report(const weir_item_failure& failure) noexcept;
  /// Runs a callback of the program: an exception stops the pipeline.
  template <class Callback>
  void guarded(Callback&& callback) noexcept {
    try {
      callback();
    } catch (...) {
      const Outcome thrown = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
      stop(thrown.status, thrown.message.c_str());
    }
  }

  /// Waits for the end, and after stop() until no code of the program runs. Returns false at the
  /// deadline.
  bool wait(std::int64_t deadline_ns);
  /// Valid after wait() has returned true.
  const Outcome& outcome() const noexcept { return outcome_; }
  /// Notes that the outcome has been reported to the program.
  void mark_reported() noexcept { reported_.store(true); }
  /// Logs an unreported failure, once.
  void report_unreported() noexcept;
  void wait_for_calls() const noexcept {
    while (calls_.load(std::memory_order_acquire) > 0) sys::yield();
  }

 private:
  enum State : std::uint32_t { kOpen, kFinished, kStopping, kStopped };

  const std::string& name_;
  const weir_pipeline_options& options_;
  FlowClock& clock_;
  WorkerGroups& groups_;
  sys::Atomic<std::uint32_t> state_{kOpen};
  sys::Atomic<std::uint32_t> working_{0}, calls_{0};
  Bell done_;  ///< rung when state_ or working_ changes
  sys::Mutex outcome_mutex_;
  Outcome outcome_ WEIR_GUARDED_BY(outcome_mutex_);
  sys::Atomic<bool> reported_{false};  ///< to the program
};

}  // namespace weir::rt
