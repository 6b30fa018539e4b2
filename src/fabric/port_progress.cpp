#include "fabric/port_progress.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <string>
#include <utility>

#include "base/config.hpp"

namespace weir::rt {

namespace {

/// Counts a sleeping thread while it exists.
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

std::uint64_t next_progress_serial() noexcept {
  static sys::Atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

/// Serial number of the PortProgress that last noted the calling thread.
std::uint64_t& noted_by() noexcept {
  static thread_local std::uint64_t serial = 0;
  return serial;
}

}  // namespace

// ---- A pass -------------------------------------------------------------------------------------

bool PortPass::step() noexcept {
  bool happened = messages_.take_submissions();
  happened |= operations_.take_submissions();
  happened |= transport_.progress(*this);
  happened |= messages_.take_submissions();
  happened |= operations_.take_submissions();
  happened |= messages_.push();
  happened |= operations_.push();
  happened |= messages_.deliver_own();
  return happened;
}

/// Also announces the thread as waiting: a seeded link moves packets only when all ranks wait.
void PortPass::send_all(std::int64_t deadline_ns) noexcept {
  Link& link = transport_.link();
  IdleWait wait{.what = "room to send", .patience = Patience::some};
  for (;;) {
    const std::uint32_t bell = link.bell();
    const std::uint64_t since = link.activity();
    const bool happened = step();
    const std::int64_t now = sys::now_ns();
    if ((messages_.empty() && operations_.empty()) || now >= deadline_ns) break;
    if (happened) continue;
    try {
      static_cast<void>(link.idle(wait, since));
    } catch (...) {  // no memory: the next pass reports it
    }
    transport_.wait(bell, std::min(deadline_ns, now + kBetweenPolls));
  }
  link.resumed(wait);
}

void PortPass::take_submissions() noexcept {
  if (messages_.take_submissions()) messages_.push();
  if (operations_.take_submissions()) operations_.push();
}

void PortPass::arrived(Rank from, std::span<const std::byte> frame) noexcept {
  try {
    messages_.arrived(from, frame);
  } catch (const Error& error) {
    transport_.drop(from, "sent a frame that is refused: ", error.what());
  } catch (...) {
    transport_.drop(from, "sent a message that there is no memory for");
  }
}

void PortPass::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  operations_.completed(token, old, std::move(outcome));
}

void PortPass::lost(Rank rank, const std::string& why) noexcept {
  lost_ranks_.mark_lost(rank, why);
  operations_.push();
  messages_.lost(rank, why);
}

// ---- Starting and stopping ----------------------------------------------------------------------

PortProgress::PortProgress(Transport& transport, PortPass& pass, WaitRegistry& waits, ProgressBy by)
    : transport_(transport),
      link_(transport.link()),
      pass_(pass),
      waits_(waits),
      by_(by),
      spin_ns_(config::spin_ns()),
      wait_spin_ns_(transport.info().seeded      ? 0
                    : transport.info().can_sleep ? spin_ns_
                                                 : kPollsInsteadOfSleep * spin_ns_),
      tracks_(transport.info().sees_stalls || transport.info().seeded),
      serial_(next_progress_serial()) {}

void PortProgress::start() {
  if (by_ != ProgressBy::caller) thread_.emplace("weir-fabric", [this] { run_thread(); });
}

void PortProgress::begin_to_stop() noexcept {
  stop_.store(1);
  end_park();
  link_.wake();
}

void PortProgress::stop() noexcept {
  begin_to_stop();
  thread_.reset();
}

// ---- The progress lock --------------------------------------------------------------------------

/// Registers the calling thread with the transport before it can change anything. The progress
/// thread is not registered: it acts only in steps and for a hook.
void PortProgress::note_thread() noexcept {
  if (std::exchange(noted_by(), serial_) != serial_ && !on_own_thread()) link_.note_thread();
}

void PortProgress::leave_out_this_thread() noexcept { noted_by() = serial_; }

bool PortProgress::try_lock() noexcept {
  if (tracks_) note_thread();
  const void* no_holder = nullptr;
  return holder_.load() == nullptr && holder_.compare_exchange_strong(no_holder, this_thread());
}

bool PortProgress::lock(std::int64_t deadline_ns) noexcept {
  while (!try_lock()) {
    if (deadline_ns != sys::kNever && sys::now_ns() >= deadline_ns) return false;
    sys::yield();
  }
  return true;
}

/// Also takes over submissions of threads that found the lock held: possibly no other thread will.
/// Then runs the unlocked work, which may lock again: the outer call runs what is added.
void PortProgress::unlock() noexcept {
  static thread_local UnlockedWorkList* running = nullptr;
  assert(is_held());
  UnlockedWorkList own;
  UnlockedWorkList& list = running != nullptr ? *running : own;
  const auto release = [&] {
    while (UnlockedWork* const work = unlocked_work_.pop()) list.push(*work);
    holder_.store(nullptr);
  };
  release();
  while (pass_.has_submissions() && try_lock()) {
    pass_.take_submissions();
    release();
    notify();
  }
  if (own.empty()) return;
  notify();  // the work may take long
  running = &own;
  while (UnlockedWork* const work = own.pop()) work->run();
  running = nullptr;
}

void PortProgress::notify_waiters() noexcept {
  if (sleepers_.load() > 0) link_.wake();
}

void PortProgress::notify() noexcept {
  if (sleepers_.load() > 0 || thread_sleeps_.load()) link_.wake();
}

bool PortProgress::step() noexcept {
  assert(is_held());
  return pass_.step();
}

bool PortProgress::unfinished() const noexcept { return pass_.unfinished(); }

bool PortProgress::step_once() noexcept {
  const bool happened = step();
  if (happened && tracks_) link_.note_activity();
  return happened;
}

bool PortProgress::progress() noexcept {
  if (!try_lock()) return false;
  const bool happened = step_once();
  const bool more = happened && pass_.unfinished();
  unlock();
  // After unlock(): a thread that wakes earlier might find the lock held and sleep again.
  if (more) {
    notify();
  } else if (happened) {
    notify_waiters();
  }
  return happened;
}

bool PortProgress::poll() noexcept {
  callers_.fetch_add(1, std::memory_order_relaxed);
  return progress();
}

// ---- Waiting ------------------------------------------------------------------------------------

namespace {

/// A wait that the link may know; its destructor removes it from the link.
struct KnownWait : IdleWait {
  KnownWait(Link& owner, const char* what, Patience patience) noexcept
      : IdleWait{.what = what, .patience = patience}, link(owner) {}
  KnownWait(const KnownWait&) = delete;
  KnownWait& operator=(const KnownWait&) = delete;
  ~KnownWait() {
    if (known) link.resumed(*this);
  }

  Link& link;
};

}  // namespace

void PortProgress::check_may_wait(const char* what) const {
  if (is_held()) fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for {}", what);
}

bool PortProgress::wait_until(const std::function<bool()>& done, std::int64_t timeout_ns,
                              WaitName what) {
  check_may_wait(what.text);
  const TransportInfo& info = transport_.info();
  const bool polls = timeout_ns == 0 && info.seeded, endless = timeout_ns < 0;
  const bool reports = info.seeded || endless;
  const std::int64_t deadline = polls ? sys::kNever : sys::deadline_after(timeout_ns);
  SpinLimit spin(wait_spin_ns_);
  KnownWait wait(link_, what.text,
                 polls                          ? Patience::none
                 : endless && !attended_.load() ? Patience::endless
                                                : Patience::some);
  WaitRegistry::Entry entry(waits_, what);
  while (!done()) {
    if (poll()) {
      spin.found();
    } else if (!spin.again()) {
      if (sys::now_ns() >= deadline) return done();
      const Idle idle = reports ? report_idle(done, wait) : Idle::known;
      if (idle == Idle::ended) return done();
      const bool reports_again = idle == Idle::unknown && tracks_;
      const std::int64_t until =
          reports_again ? std::min(deadline, sys::now_ns() + kBeforeNextReport) : deadline;
      entry.enter();
      const CountedSleeper sleeper(sleepers_);
      spin_or_sleep(done, until, spin, idle == Idle::known ? &wait : nullptr)
          ? spin.found()
          : spin.found_nothing();
    }
    if (deadline != sys::kNever && sys::now_ns() >= deadline) return done();
  }
  entry.end();
  return true;
}

/// Reports the wait to the transport. Throws Error if it can never end. Returns Idle::unknown if
/// another thread holds the progress lock, so that the report is impossible.
PortProgress::Idle PortProgress::report_idle(const std::function<bool()>& done, IdleWait& wait) {
  if (!try_lock()) return Idle::unknown;
  bool happened = false, idle = false;
  std::optional<std::string> end;
  try {
    const std::uint64_t since = link_.activity();
    happened = step_once();
    idle = !happened && !done();
    if (idle) end = link_.idle(wait, since);
  } catch (const std::bad_alloc&) {  // reported again: what the caller waits for may use its stack
    idle = false;
  } catch (...) {
    unlock();
    throw;
  }
  unlock();
  if (happened) notify();
  if (end && !end->empty()) fail(WEIR_STATUS_NETWORK_ERROR, "{}", *end);
  if (end) return Idle::ended;
  return idle ? Idle::known : Idle::unknown;
}

/// Returns whether the wait must be reported to the transport again.
bool PortProgress::is_old(const IdleWait& wait) const noexcept {
  return wait.known && wait.since != link_.activity();
}

/// Makes one more pass, then sleeps if nothing happened. Returns whether the pass moved something.
/// The caller has already counted itself in sleepers_ or set thread_sleeps_, so that it is woken.
bool PortProgress::spin_or_sleep(const std::function<bool()>& done, std::int64_t deadline,
                                 const SpinLimit& spin, const IdleWait* wait) {
  const std::uint32_t bell = link_.bell();
  if (done() || (wait != nullptr && is_old(*wait))) return false;
  if (progress()) return true;
  if (!transport_.info().can_sleep) deadline = std::min(deadline, spin.end_of_sleep());
  transport_.wait(bell, deadline);
  return false;
}

// ---- The progress thread ------------------------------------------------------------------------

/// Returns whether callers have made progress since the last check, or one holds the lock: applying
/// a large block takes long.
bool PortProgress::callers_make_progress(std::uint32_t& seen) noexcept {
  if (by_ != ProgressBy::hybrid) return false;
  const std::uint32_t callers = callers_.load(std::memory_order_relaxed);
  return std::exchange(seen, callers) != callers || holder_.load() != nullptr;
}

/// Leaves progress to the callers until a timeout, or until one of them is about to block.
void PortProgress::park_timed(std::uint32_t& seen) noexcept {
  parked_.store(1);
  if (stop_.load() == 0) sys::wait(parked_, 1, sys::now_ns() + kHybridPark);
  if (parked_.exchange(0) == 0) seen = callers_.load(std::memory_order_relaxed);
}

void PortProgress::end_park() noexcept {
  if (parked_.load() != 0 && parked_.exchange(0) != 0) sys::wake_all(parked_);
}

void PortProgress::set_progress_hook(ProgressHook* hook) noexcept {
  const sys::Lock lock(hook_mutex_);
  hook_ = hook;
  attended_.store(hook != nullptr);
}

void PortProgress::call_hook() noexcept {
  const sys::Lock lock(hook_mutex_);
  if (hook_ != nullptr) hook_->on_progress();
}

void PortProgress::run_thread() noexcept {
  sys::run_promptly();
  thread_id_.store(this_thread());
  SpinLimit spin(spin_ns_, kSleepsBesideWork);
  std::uint32_t seen = 0;
  const auto stopped = [this] { return stop_.load() != 0; };
  while (!stopped()) {
    if (callers_make_progress(seen)) {
      park_timed(seen);
      spin.others_poll();
    } else if (progress()) {
      call_hook();
      spin.found();
    } else if (!spin.again()) {
      thread_sleeps_.store(true);
      const bool found = spin_or_sleep(stopped, sys::kNever, spin, nullptr);
      thread_sleeps_.store(false);
      if (found) call_hook();
      found ? spin.found() : spin.found_nothing();
    }
  }
}

}  // namespace weir::rt
