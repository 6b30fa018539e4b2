// How a share ends.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/spin_lock.hpp"
#include "core/failure.hpp"
#include "core/unreported.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

/// The result of a share, and the failures that the program has not seen. Any thread.
class ShareOutcome {
 public:
  /// `share` is its name, which outlives the outcome.
  explicit ShareOutcome(const std::string& share) : share_(share) {}

  /// Whether no more chunks are taken: the share has failed or succeeded.
  bool has_stopped() const noexcept { return stopped_.load(); }
  bool has_failed() const noexcept { return failed_.load(); }

  FailureRef make_failure(weir_status status, std::string message) const noexcept {
    return FailureRef::make(status, std::move(message), "chunk", share_, 0);
  }
  /// Fails the share; one that has succeeded does not fail when ranks leave. The first failure is
  /// the result, unless a later one has `is_final`.
  void fail(weir_status status, FailureRef failure, bool is_final = false) noexcept {
    const SpinGuard guard(lock_);
    if (succeeded_) return;
    if (is_final || first_.status == WEIR_STATUS_OK) first_ = {status, std::move(failure), 0};
    failed_.store(true);
    stopped_.store(true);
  }
  void fail(Outcome why) noexcept {
    fail(why.status, make_failure(why.status, std::move(why.message)));
  }
  /// Calls act(). What it throws fails the share.
  template <class Act>
  void attempt(const Act& act) noexcept {
    try {
      act();
    } catch (...) {
      fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
    }
  }
  /// Records the failure of a place, whose items other places complete.
  void add_loss(FailureRef failure) noexcept {
    const SpinGuard guard(lock_);
    last_loss_ = std::move(failure);
  }
  void add_loss(weir_status status, std::string_view why) noexcept {
    attempt([&] { add_loss(make_failure(status, std::string(why))); });
  }
  /// Decides that all items are complete, whatever has failed.
  void succeed() noexcept {
    const SpinGuard guard(lock_);
    succeeded_ = true;
    stopped_.store(true);
  }

  /// Return the first failure of the share, and the last loss.
  WaitResult failure() noexcept {
    const SpinGuard guard(lock_);
    return first_;
  }
  FailureRef last_loss() noexcept {
    const SpinGuard guard(lock_);
    return last_loss_;
  }
  /// Keeps a failure that a stream reported, for the next call of take_result().
  void keep(WaitResult failure) noexcept {
    const SpinGuard guard(lock_);
    if (kept_.status == WEIR_STATUS_OK) kept_ = std::move(failure);
  }
  /// Returns the result of the share, which has ended.
  WaitResult take_result() noexcept {
    const SpinGuard guard(lock_);
    WaitResult kept = std::exchange(kept_, {});
    return succeeded_ ? kept : first_;
  }
  /// Returns the failures to log at the end, which no call has returned.
  Unreported& collect_unreported() noexcept {
    const SpinGuard guard(lock_);
    unreported_.add(kept_.failure);
    unreported_.add(first_.failure);
    return unreported_;
  }

 private:
  const std::string& share_;
  sys::Atomic<bool> stopped_{false}, failed_{false};
  SpinLock lock_;
  bool succeeded_ WEIR_GUARDED_BY(lock_) = false;
  WaitResult first_ WEIR_GUARDED_BY(lock_);  ///< the failure that ended the share
  FailureRef last_loss_ WEIR_GUARDED_BY(lock_);
  WaitResult kept_ WEIR_GUARDED_BY(lock_);
  Unreported unreported_;
};

}  // namespace weir::rt
