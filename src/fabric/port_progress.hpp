// The progress of a port, and how threads wait for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/thread_role.hpp"
#include "base/threads.hpp"
#include "fabric/port_queues.hpp"
#include "fabric/spin_limit.hpp"
#include "fabric/transport.hpp"
#include "fabric/wait_registry.hpp"

namespace weir::rt {

/// Which threads make progress.
enum class ProgressBy : std::uint8_t {
  thread,  ///< a thread of the port: spins while something is in flight, then sleeps
  caller,  ///< only threads that call progress() or wait
  hybrid,  ///< threads that wait or poll; the port's thread when none does
};

/// Converts a deadline to a timeout (negative: forever).
inline std::int64_t time_left(std::int64_t deadline_ns) noexcept {
  if (deadline_ns == sys::kNever) return -1;
  return std::max(deadline_ns - sys::now_ns(), std::int64_t{0});
}

/// Continues work that the progress thread has made possible, without the progress lock.
class ProgressHook {
 public:
  /// Called on the progress thread when there may be work. Must not wait for the fabric.
  virtual void on_progress() noexcept = 0;

 protected:
  ~ProgressHook() = default;
};

/// Work that needs no progress lock and must not run under it, because it calls functions of the
/// program.
class UnlockedWork {
 public:
  /// May destroy this object.
  virtual void run() noexcept = 0;

 protected:
  ~UnlockedWork() = default;

 private:
  friend class UnlockedWorkList;
  UnlockedWork* next_ = nullptr;
};

/// The first in is the first out.
class UnlockedWorkList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(UnlockedWork& work) noexcept {
    work.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &work;
    last_ = &work;
  }
  UnlockedWork* pop() noexcept {
    return first_ == nullptr ? nullptr : std::exchange(first_, first_->next_);
  }

 private:
  UnlockedWork* first_ = nullptr;
  UnlockedWork* last_ = nullptr;
};

/// Gives the transport what threads have submitted, and the messages, operations and losses that it
/// reports to those that wait for them. By the holder of the progress lock, unless stated
/// otherwise.
class PortPass final : private TransportSink {
 public:
  PortPass(Transport& transport, LostRanks& lost_ranks, MessageQueues& messages,
           OperationQueues& operations) noexcept
      : transport_(transport),
        lost_ranks_(lost_ranks),
        messages_(messages),
        operations_(operations) {}

  /// Makes one pass. Returns whether something happened.
  bool step() noexcept;
  /// Makes passes until everything is sent, or until the deadline.
  void send_all(std::int64_t deadline_ns) noexcept;
  /// Returns whether other threads have submitted something. Any thread.
  bool has_submissions() const noexcept {
    return messages_.has_submissions() || operations_.has_submissions();
  }
  /// Takes over submissions and sends as much as possible.
  void take_submissions() noexcept;
  /// Returns whether another step is needed that no external event will trigger.
  bool unfinished() const noexcept { return messages_.unfinished() || operations_.unfinished(); }

 private:
  static constexpr std::int64_t kBetweenPolls = 1'000'000;

  void arrived(Rank from, std::span<const std::byte> frame) noexcept override;
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;

  Transport& transport_;
  LostRanks& lost_ranks_;
  MessageQueues& messages_;
  OperationQueues& operations_;
};

/// The progress lock: its holder calls the transport. Senders do not wait for it: before the holder
/// unlocks it, it takes over what they submitted. Any thread.
class PortProgress {
 public:
  PortProgress(Transport& transport, PortPass& pass, WaitRegistry& waits, ProgressBy by);
  PortProgress(const PortProgress&) = delete;
  PortProgress& operator=(const PortProgress&) = delete;

  /// Starts the progress thread, if there is one. Call it when the work is ready.
  void start();
  /// Stops the thread and joins it.
  void stop() noexcept;
  /// Stops the thread without joining it.
  void begin_to_stop() noexcept;
  ProgressBy by() const noexcept { return by_; }

  /// See Port.
  void set_progress_hook(ProgressHook* hook) noexcept;
  void leave_out_this_thread() noexcept;
  bool on_own_thread() const noexcept { return thread_id_.load() == this_thread(); }

  bool is_held() const noexcept { return holder_.load() == this_thread(); }
  bool try_lock() noexcept;
  /// Waits for the progress lock. Returns false at the deadline.
  bool lock(std::int64_t deadline_ns = sys::kNever) noexcept;
  void unlock() noexcept;
  /// See Port.
  void run_without_lock(UnlockedWork& work) noexcept {
    is_held() ? unlocked_work_.push(work) : work.run();
  }
  /// Wakes sleeping waiters, so that they check what other threads have done for them.
  void notify_waiters() noexcept;
  /// Wakes the progress thread too, because there is work for it.
  void notify() noexcept;
  class ProgressLock;
  /// Makes one pass; the caller holds the lock.
  bool step() noexcept;
  bool unfinished() const noexcept;

  /// See Port.
  bool poll() noexcept;
  void about_to_block() noexcept { end_park(); }
  bool wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, WaitName what);
  /// Throws Error{busy} if this thread holds the progress lock.
  void check_may_wait(const char* what) const;

 private:
  static constexpr std::int64_t kHybridPark = 1'000'000;
  /// Until the transport is notified of a wait.
  static constexpr std::int64_t kBeforeNextReport = 1'000'000;
  /// Longer spinning where a sleep ends at a fixed time only.
  static constexpr std::int64_t kPollsInsteadOfSleep = 20;

  bool progress() noexcept;
  /// The transport's answer to a wait that has nothing to do.
  enum class Idle : std::uint8_t {
    unknown,  ///< the transport was not asked
    known,
    ended,  ///< the wait ends without a result
  };
  Idle report_idle(const std::function<bool()>& done, IdleWait& wait);
  bool step_once() noexcept;
  void note_thread() noexcept;
  bool is_old(const IdleWait& wait) const noexcept;
  bool spin_or_sleep(const std::function<bool()>& done, std::int64_t deadline,
                     const SpinLimit& spin, const IdleWait* wait);
  bool callers_make_progress(std::uint32_t& seen) noexcept;
  void park_timed(std::uint32_t& seen) noexcept;
  void end_park() noexcept;
  void call_hook() noexcept;
  void run_thread() noexcept;

  Transport& transport_;
  Link& link_;
  PortPass& pass_;
  WaitRegistry& waits_;
  const ProgressBy by_;
  const std::int64_t spin_ns_;
  const std::int64_t wait_spin_ns_;  ///< of waiting threads
  const bool tracks_;                ///< the transport tracks which threads wait
  const std::uint64_t serial_;       ///< unique

  sys::Atomic<const void*> holder_{nullptr};
  UnlockedWorkList unlocked_work_;          ///< of the holder
  sys::Atomic<std::uint32_t> sleepers_{0};  ///< threads that sleep in wait_until()
  sys::Atomic<bool> thread_sleeps_{false};
  sys::Atomic<std::uint32_t> callers_{0};  ///< passes of other threads, for ProgressBy::hybrid
  sys::Atomic<std::uint32_t> parked_{0};   ///< the progress thread is, while callers make progress
  sys::Atomic<std::uint32_t> stop_{0};
  sys::Atomic<const void*> thread_id_{nullptr};  ///< of the progress thread
  sys::Mutex hook_mutex_;                        // also held while the hook runs
  ProgressHook* hook_ WEIR_GUARDED_BY(hook_mutex_) = nullptr;
  sys::Atomic<bool> attended_{false};  ///< there is a hook, which acts on the progress thread
  std::optional<sys::Thread> thread_;
};

/// Holds the progress lock during its lifetime, unless it was not available by the deadline, or at
/// once. May be nested.
class PortProgress::ProgressLock {
 public:
  explicit ProgressLock(PortProgress& progress, std::int64_t deadline_ns = sys::kNever) noexcept
      : progress_(progress),
        nested_(progress.is_held()),
        taken_(!nested_ && progress.lock(deadline_ns)) {}
  ProgressLock(PortProgress& progress, std::try_to_lock_t) noexcept
      : progress_(progress), nested_(progress.is_held()), taken_(!nested_ && progress.try_lock()) {}
  ProgressLock(const ProgressLock&) = delete;
  ProgressLock& operator=(const ProgressLock&) = delete;
  ~ProgressLock() {
    if (taken_) progress_.unlock();
  }

  explicit operator bool() const noexcept { return nested_ || taken_; }
  /// Returns whether the thread held the lock before.
  bool nested() const noexcept { return nested_; }

 private:
  PortProgress& progress_;
  const bool nested_, taken_;
};

}  // namespace weir::rt
