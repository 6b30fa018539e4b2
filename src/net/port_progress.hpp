// Who moves a port on, and how threads wait meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/thread_role.hpp"
#include "base/threads.hpp"
#include "net/spin_limit.hpp"
#include "net/transport.hpp"
#include "net/wait_registry.hpp"

namespace weir::rt {

/// Which threads make progress.
enum class ProgressBy : std::uint8_t {
  thread,  ///< a thread of the port: spins while something is under way, then sleeps
  caller,  ///< only those who call progress() or wait for something
  hybrid,  ///< those who wait or look, and the thread when nobody does
};

/// Turns a deadline back into a timeout (negative: for ever).
inline std::int64_t time_left(std::int64_t deadline_ns) noexcept {
  if (deadline_ns == sys::kNever) return -1;
  return std::max(deadline_ns - sys::now_ns(), std::int64_t{0});
}

/// What is to be moved on.
class PortWork {
 public:
  /// One pass of the holder of the turn. Returns whether something happened.
  virtual bool step() noexcept = 0;
  /// Whether other threads have left something for the holder. Any thread.
  virtual bool has_submissions() const noexcept = 0;
  /// Takes that over and sends what can be sent. The holder.
  virtual void take_submissions() noexcept = 0;
  /// Whether another step is needed that nothing from outside will ask for. The holder.
  virtual bool unfinished() const noexcept = 0;

 protected:
  ~PortWork() = default;
};

/// Continues work that the progress thread has made possible, without the progress lock.
class ProgressHook {
 public:
  /// That thread may have news for it. Must not wait for the fabric.
  virtual void on_progress() noexcept = 0;

 protected:
  ~ProgressHook() = default;
};

/// The progress lock: its holder calls the transport. Senders do not wait for it: before the holder
/// unlocks it, it takes over what they submitted. Any thread.
class PortProgress {
 public:
  PortProgress(Transport& transport, PortWork& work, ProgressBy by);
  PortProgress(const PortProgress&) = delete;
  PortProgress& operator=(const PortProgress&) = delete;

  /// Starts the thread, when there is to be one. Once the work is ready.
  void start();
  /// Ends it.
  void stop() noexcept;
  /// Does so without waiting for that.
  void begin_to_stop() noexcept;
  ProgressBy by() const noexcept { return by_; }

  /// As in Port.
  void set_progress_hook(ProgressHook* hook) noexcept;
  void leave_out_this_thread() noexcept;
  bool on_own_thread() const noexcept { return thread_id_.load() == this_thread(); }

  bool is_held() const noexcept { return holder_.load() == this_thread(); }
  bool try_lock() noexcept;
  /// Waits for the turn. Returns false at the deadline.
  bool lock(std::int64_t deadline_ns = sys::kNever) noexcept;
  void unlock() noexcept;
  /// Tells those who wait and sleep to look for what others have done for them.
  void notify_waiters() noexcept;
  /// Tells the thread, too: there is something for it to move on.
  void notify() noexcept;
  class ProgressLock;
  class TryProgressLock;
  /// One pass of the work, by the holder.
  bool step() noexcept { return work_.step(); }
  bool unfinished() const noexcept { return work_.unfinished(); }

  /// As in Port.
  bool poll() noexcept;
  void about_to_block() noexcept { end_park(); }
  bool wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, WaitName what);
  WaitRegistry& waits() noexcept { return waits_; }
  /// Throws Error{busy} when this thread holds the turn.
  void check_may_wait(const char* what) const;

 private:
  static constexpr std::int64_t kHybridPark = 1'000'000;
  static constexpr std::int64_t kUntilTold = 1'000'000;  ///< until the transport is told of a wait
  static constexpr std::int64_t kPollsInsteadOfSleep = 20;  ///< as long, where sleep is until later

  bool progress() noexcept;
  /// What the transport made of a wait that has found nothing.
  enum class Idle : std::uint8_t {
    unknown,  ///< it was not told
    known,
    over,  ///< it has been in vain
  };
  Idle tell_idle(const std::function<bool()>& done, IdleWait& wait);
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
  PortWork& work_;
  const ProgressBy by_;
  const std::int64_t spin_ns_;
  const std::int64_t wait_spin_ns_;  ///< of those who wait for something
  const bool tracks_;                ///< the transport wants to know which threads wait
  const std::uint64_t serial_;       ///< no other has it

  WaitRegistry waits_;
  sys::Atomic<const void*> holder_{nullptr};
  sys::Atomic<std::uint32_t> sleepers_{0};  ///< in wait_until()
  sys::Atomic<bool> thread_sleeps_{false};
  sys::Atomic<std::uint32_t> callers_{0};  ///< passes of other threads, for the hybrid
  sys::Atomic<std::uint32_t> parked_{0};   ///< the thread, while callers are at it
  sys::Atomic<std::uint32_t> stop_{0};
  sys::Atomic<const void*> thread_id_{nullptr};  ///< the thread
  sys::Mutex hook_mutex_;                        // of what follows, also while it attends
  ProgressHook* hook_ = nullptr;
  sys::Atomic<bool> attended_{false};  ///< there is one: it acts on the thread
  std::optional<sys::Thread> thread_;
};

/// Holds the turn while it lives, also within itself, unless it was not to be had in time.
class PortProgress::ProgressLock {
 public:
  explicit ProgressLock(PortProgress& progress, std::int64_t deadline_ns = sys::kNever) noexcept
      : progress_(progress),
        nested_(progress.is_held()),
        taken_(!nested_ && progress.lock(deadline_ns)) {}
  ProgressLock(const ProgressLock&) = delete;
  ProgressLock& operator=(const ProgressLock&) = delete;
  ~ProgressLock() {
    if (taken_) progress_.unlock();
  }

  explicit operator bool() const noexcept { return nested_ || taken_; }

 private:
  PortProgress& progress_;
  const bool nested_, taken_;
};

/// Holds the turn while it lives, unless somebody else does: never waits.
class PortProgress::TryProgressLock {
 public:
  explicit TryProgressLock(PortProgress& progress) noexcept
      : progress_(progress), nested_(progress.is_held()), taken_(!nested_ && progress.try_lock()) {}
  TryProgressLock(const TryProgressLock&) = delete;
  TryProgressLock& operator=(const TryProgressLock&) = delete;
  ~TryProgressLock() {
    if (taken_) progress_.unlock();
  }

  explicit operator bool() const noexcept { return nested_ || taken_; }
  /// Whether the thread held the turn before.
  bool nested() const noexcept { return nested_; }

 private:
  PortProgress& progress_;
  const bool nested_, taken_;
};

/// Calls push_to(rank) for all ranks. Returns whether one of them moved something.
template <class PushTo>
bool push_to_all(Rank ranks, PushTo&& push_to) noexcept {
  bool moved = false;
  for (Rank rank = 0; rank < ranks; ++rank) {
    try {
      moved |= push_to(rank);
    } catch (...) {  // no memory: the next pass tries again
    }
  }
  return moved;
}

}  // namespace weir::rt
