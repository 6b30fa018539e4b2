#include "net/port_progress.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/config.hpp"

namespace weir::rt {

namespace {

/// Is counted while it lives.
class CountedSleeper {
 public:
  explicit CountedSleeper(sys::Atomic<std::uint32_t>& count) noexcept : count_(count) {
    count_.fetch_add(1);
  }
  CountedSleeper(const CountedSleeper&) = delete;
  CountedSleeper& operator=(const CountedSleeper&) = delete;
  ~CountedSleeper() { count_.fetch_sub(1); }

 private:
  sys::Atomic<std::uint32_t>& count_;
};

}  // namespace

PortProgress::PortProgress(Transport& transport, PortWork& work, ProgressBy by)
    : transport_(transport),
      work_(work),
      by_(by),
      spin_ns_(config::spin_ns()),
      wait_spin_ns_(transport.info().can_sleep ? spin_ns_ : kLooksInsteadOfSleep * spin_ns_) {}

void PortProgress::start() {
  if (by_ != ProgressBy::caller) thread_.emplace("weir-fabric", [this] { run_thread(); });
}

void PortProgress::begin_to_stop() noexcept {
  stop_.store(1);
  end_nap();
  transport_.wake();
}

void PortProgress::stop() noexcept {
  begin_to_stop();
  thread_.reset();
}

// ---- The turn -----------------------------------------------------------------------------------

bool PortProgress::try_take() noexcept {
  const void* nobody = nullptr;
  return holder_.load() == nullptr && holder_.compare_exchange_strong(nobody, this_thread());
}

bool PortProgress::take(std::int64_t deadline_ns) noexcept {
  while (!try_take()) {
    if (deadline_ns != sys::kNever && sys::now_ns() >= deadline_ns) return false;
    sys::yield();
  }
  return true;
}

/// What is left for a holder that is about to go must not stay.
void PortProgress::give() noexcept {
  holder_.store(nullptr);
  while (work_.left() && try_take()) {
    work_.take_over();
    holder_.store(nullptr);
    rouse();
  }
}

void PortProgress::rouse_waiters() noexcept {
  if (sleepers_.load() > 0) transport_.wake();
}

void PortProgress::rouse() noexcept {
  if (sleepers_.load() > 0 || thread_sleeps_.load()) transport_.wake();
}

bool PortProgress::progress() noexcept {
  if (!try_take()) return false;
  const bool happened = work_.step();
  const bool more = happened && work_.unfinished();
  give();
  // Behind the turn: who is roused before may sleep again because it was taken.
  if (more) {
    rouse();
  } else if (happened) {
    rouse_waiters();
  }
  return happened;
}

bool PortProgress::look() noexcept {
  callers_.fetch_add(1, std::memory_order_relaxed);
  return progress();
}

// ---- Waiting ------------------------------------------------------------------------------------

namespace {

/// That the transport knows of a wait, until it is over, however.
class Registration {
 public:
  explicit Registration(Transport& transport) noexcept : transport_(transport) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() {
    if (set_) transport_.resumed();
  }
  void set() noexcept { set_ = true; }

 private:
  Transport& transport_;
  bool set_ = false;
};

}  // namespace

void PortProgress::check_may_wait(const char* what) const {
  if (holds()) fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for {}", what);
}

bool PortProgress::wait_until(const std::function<bool()>& done, std::int64_t timeout_ns,
                              WaitName what) {
  check_may_wait(what.text);
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  SpinLimit spin(wait_spin_ns_);
  Registration registration(transport_);
  WaitBoard::Entry entry(waits_, what);
  while (!done()) {
    if (look()) {
      spin.found();
    } else if (!spin.again()) {
      if (sys::now_ns() >= deadline) return done();
      if (deadline == sys::kNever && look_for_stall(done, what.text)) registration.set();
      entry.enter();
      const CountedSleeper sleeper(sleepers_);
      rest(done, deadline, spin) ? spin.found() : spin.in_vain();
    }
    if (timeout_ns >= 0 && sys::now_ns() >= deadline) return done();
  }
  entry.end();
  return true;
}

/// Throws Error when nobody will ever end this wait. Returns whether the transport knows of it.
bool PortProgress::look_for_stall(const std::function<bool()>& done, const char* what) {
  if (!try_take()) return false;
  bool happened = false, idle = false;
  std::string stall;
  try {
    const std::uint64_t since = transport_.activity();
    happened = work_.step();
    idle = !happened && !done();
    if (idle) stall = transport_.stalled(what, since);
  } catch (...) {
    give();
    throw;
  }
  give();
  if (happened) rouse();
  if (!stall.empty()) fail(WEIR_STATUS_NETWORK_ERROR, "{}", stall);
  return idle;
}

/// Sleeps, unless something happens first: returns whether it did. Whoever is to be roused has said
/// so before.
bool PortProgress::rest(const std::function<bool()>& done, std::int64_t deadline,
                        const SpinLimit& spin) {
  const std::uint32_t bell = transport_.bell();
  if (done()) return false;
  if (progress()) return true;
  if (!transport_.info().can_sleep) deadline = std::min(deadline, spin.end_of_nap());
  transport_.wait(bell, deadline);
  return false;
}

// ---- The thread ---------------------------------------------------------------------------------

/// Since the last look, or just now: one who applies a large block is at it for long.
bool PortProgress::callers_are_at_it(std::uint32_t& seen) noexcept {
  if (by_ != ProgressBy::hybrid) return false;
  const std::uint32_t callers = callers_.load(std::memory_order_relaxed);
  return std::exchange(seen, callers) != callers || holder_.load() != nullptr;
}

/// Leaves it to the callers for a while, or until one of them goes to sleep.
void PortProgress::nap(std::uint32_t& seen) noexcept {
  napping_.store(1);
  if (stop_.load() == 0) sys::wait(napping_, 1, sys::now_ns() + kHybridNap);
  if (napping_.exchange(0) == 0) seen = callers_.load(std::memory_order_relaxed);
}

void PortProgress::end_nap() noexcept {
  if (napping_.load() != 0 && napping_.exchange(0) != 0) sys::wake_all(napping_);
}

void PortProgress::attend(Attendant* attendant) noexcept {
  const sys::Lock lock(attending_);
  attendant_ = attendant;
}

void PortProgress::tell_attendant() noexcept {
  const sys::Lock lock(attending_);
  if (attendant_ != nullptr) attendant_->attend();
}

void PortProgress::run_thread() noexcept {
  sys::run_promptly();
  own_.store(this_thread());
  SpinLimit spin(spin_ns_, kNapsBesideWork);
  std::uint32_t seen = 0;
  const auto stopped = [this] { return stop_.load() != 0; };
  while (!stopped()) {
    if (callers_are_at_it(seen)) {
      nap(seen);
      spin.others_look();
    } else if (progress()) {
      tell_attendant();
      spin.found();
    } else if (!spin.again()) {
      thread_sleeps_.store(true);
      const bool found = rest(stopped, sys::kNever, spin);
      thread_sleeps_.store(false);
      if (found) tell_attendant();
      found ? spin.found() : spin.in_vain();
    }
  }
}

}  // namespace weir::rt
