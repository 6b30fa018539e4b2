#include "stream/waiting.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/thread_role.hpp"
#include "base/threads.hpp"
#include "stream/context.hpp"
#include "stream/host_waiter.hpp"

namespace weir::rt {

namespace {

/// Sleep time of a thread that shares its core with another polling thread.
constexpr std::int64_t kPartingNs = 20'000;

/// Waiters for a list of events. After its destruction no thread delivers to them.
class WaitList {
 public:
  WaitList(Context& context, std::span<const weir_event> events)
      : context_(context), events_(events), waiters_(events.size()) {}
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  ~WaitList() {
    std::uint32_t late = 0;
    for (std::size_t i = 0; i < waiters_.size(); ++i) {
      if (!waiters_[i].watching) continue;
      if (!context_.slot_of(events_[i]).unwatch(events_[i].opaque[1], waiters_[i])) ++late;
    }
    // Waiters that unwatch() did not remove are delivered, or being delivered.
    while (signal_.count() < late) sys::yield();
  }

  void watch() {
    for (std::size_t i = 0; i < waiters_.size(); ++i) {
      const std::uint64_t id = events_[i].opaque[1];
      HostWaiter& waiter = waiters_[i];
      waiter.signal = &signal_;
      waiter.deliver = HostWaiter::on_deliver;
      waiter.watching = id != 0 && context_.slot_of(events_[i]).watch(id, waiter);
      if (waiter.watching) {
        ++watched_;
        continue;
      }
      if (id != 0) {
        FailureLog::Entry entry = context_.failures().find(id);
        waiter.status = entry.status;
        waiter.failure = std::move(entry.failure);
      }
      waiter.done.store(true, std::memory_order_relaxed);
    }
  }

  std::uint32_t watched() const noexcept { return watched_; }
  bool complete(std::size_t index) const noexcept {
    return waiters_[index].done.load(std::memory_order_acquire);
  }
  Signal& signal() noexcept { return signal_; }
  WaitResult result(std::size_t index) const {
    return {waiters_[index].status, waiters_[index].failure, index};
  }

 private:
  Context& context_;
  std::span<const weir_event> events_;
  std::vector<HostWaiter> waiters_;
  Signal signal_;
  std::uint32_t watched_ = 0;
};

}  // namespace

std::int64_t time_until(std::int64_t deadline_ns) noexcept {
  if (deadline_ns == sys::kNever) return WEIR_FOREVER;
  return std::max<std::int64_t>(0, deadline_ns - sys::now_ns());
}

void pass_enqueue_time(Context& context) noexcept {
  if (!context.virtual_time() || NoWaitScope::active()) return;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < context.domain_count(); ++i) {
    taken = std::max(taken, context.domain(i)->info().enqueue_ns);
  }
  pass_time(context, taken);
}

void pass_time(Context& context, std::int64_t ns) noexcept {
  const std::int64_t until = context.now_ns() + ns;
  if (ns <= 0 || !context.domain(0)->device().wake_at(until)) return;
  while (context.now_ns() < until) {
    if (!context.drive()) sys::yield();  // another thread drives
  }
}

bool wait_for_signal(Context& context, Signal& signal, std::uint32_t wanted,
                     std::int64_t deadline_ns) noexcept {
  std::int64_t spin_until = sys::now_ns() + context.spin_ns();
  while (signal.count() < wanted) {
    if (context.virtual_time()) {
      if (context.drive()) {
        if (sys::now_ns() >= deadline_ns) break;
        continue;
      }
      // No simulated event remains here; another thread may still enqueue something.
      signal.sleep(wanted, std::min(deadline_ns, sys::now_ns() + 1'000'000));
      if (sys::now_ns() >= deadline_ns) break;
      continue;
    }
    const std::int64_t now = sys::now_ns();
    if (now >= deadline_ns) break;
    if (now >= spin_until) {
      context.end_polling();
      signal.sleep(wanted, deadline_ns);
      break;
    }
    bool progressed = false;
    const int polls =
        context.has_polled_devices() ? 4 : 32;  // polling devices takes longer than pausing
    for (int i = 0; i < polls && signal.count() < wanted; ++i) {
      progressed |= context.poll_devices();
      sys::pause();
    }
    if (progressed) {
      spin_until = sys::now_ns() + context.spin_ns();
    } else if (context.core_sharing().yield()) {
      signal.sleep(wanted, std::min(deadline_ns, sys::now_ns() + kPartingNs));
    }
  }
  return signal.count() >= wanted;
}

WaitResult wait_for_events(Context& context, std::span<const weir_event> events,
                           weir_wait_mode mode, std::int64_t timeout_ns) {
  if (events.empty()) return {};
  if (mode != WEIR_WAIT_MODE_ALL && mode != WEIR_WAIT_MODE_ANY) {
    fail_argument("wait mode {} is neither all nor any", static_cast<int>(mode));
  }
  for (const weir_event& event : events) context.check_event(event);
  WaitList list(context, events);
  list.watch();
  const bool any = mode == WEIR_WAIT_MODE_ANY;
  const bool done_already = list.watched() == 0 || (any && list.watched() < events.size());
  if (!done_already && timeout_ns != 0 && NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not wait: it would block what it waits for");
  }
  if (!done_already) {
    wait_for_signal(context, list.signal(), any ? 1 : list.watched(),
                    sys::deadline_after(timeout_ns));
  }
  WaitResult result;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool complete = list.complete(i);
    if (any && complete) return list.result(i);
    if (!any && !complete) return {WEIR_STATUS_TIMEOUT, {}, i};
    if (complete && result.status == WEIR_STATUS_OK) result = list.result(i);
  }
  return any ? WaitResult{WEIR_STATUS_TIMEOUT, {}, 0} : result;
}

}  // namespace weir::rt
