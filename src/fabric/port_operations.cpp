#include "fabric/port_operations.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/one_sided.hpp"

namespace weir::rt {

namespace {

std::uint64_t next_serial() noexcept {
  static sys::Atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

/// Returns a number of the calling thread that is never reused.
std::uint64_t operating_thread() noexcept {
  static sys::Atomic<std::uint64_t> last{0};
  static thread_local std::uint64_t number = 0;
  if (number == 0) number = last.fetch_add(1) + 1;
  return number;
}

}  // namespace

PortOperations::PortOperations(OperationQueues& queues, Transport& transport,
                               const LostRanks& lost_ranks, PortProgress& progress)
    : queues_(queues),
      transport_(transport),
      info_(transport.info()),
      lost_ranks_(lost_ranks),
      progress_(progress),
      serial_(next_serial()) {}

// ---- Starting -----------------------------------------------------------------------------------

/// Returns the account of the calling thread; without a lock if it is the last one that the thread
/// used.
PortOperations::Account& PortOperations::account() {
  static thread_local std::uint64_t serial = 0;
  static thread_local Account* last = nullptr;
  if (serial != serial_) {
    last = &find_account();
    serial = serial_;
  }
  return *last;
}

PortOperations::Account& PortOperations::find_account() {
  static thread_local const char mark = 0;
  const sys::Lock lock(mutex_);
  auto& found = accounts_[&mark];
  if (!found) found = std::make_unique<Account>(info_.ranks);
  if (std::exchange(found->thread, operating_thread()) != operating_thread()) {
    const SpinGuard guard(found->lock);
    std::fill(found->failures.begin(), found->failures.end(), Outcome());
  }
  return *found;
}

void PortOperations::start(OneSided operation, Completion* done) {
  const Rank to = operation.target;
  lost_ranks_.check_alive(to, "reach");
  Account& mine = account();
  if (progress_.is_held()) {
    if (done == nullptr) check_room_inside(to, mine.pending[to].load());
  } else if (mine.pending[to].load() >= kMost) {
    progress_.wait_until([&] { return mine.pending[to].load() < kMost / 2; }, -1,
                         "earlier operations");
  }
  Operations one;
  Started& started = one.emplace_back(&mine, done, operation, Operations::iterator());
  started.operation.token = &started;
  started.self = one.begin();
  mine.pending[to].fetch_add(1);
  if (to == info_.rank) return start_here(started);
  submit(std::move(one));
}

/// Throws Error if listeners, which must not wait, have started too many operations.
void PortOperations::check_room_inside(Rank to, std::uint32_t pending) {
  if (pending < kMostInside) return;
  fail(WEIR_STATUS_BUSY,
       "cannot start another operation on rank {}: {} are in flight, the most of a handler; start "
       "fewer in handlers, or outside",
       to, pending);
}

/// Starts operations now, unless another thread holds the progress lock.
bool PortOperations::start_now(Operations& some) noexcept {
  bool happened = false, more = false;
  {
    const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock);
    if (!progress_lock) return false;
    queues_.start(some);
    if (!progress_lock.nested() && info_.shares_memory) happened = progress_.step();
    more = progress_.unfinished();
  }
  if (!info_.can_sleep || more) {
    progress_.notify();
  } else if (happened) {
    progress_.notify_waiters();
  }
  return true;
}

void PortOperations::submit(Operations some) noexcept {
  if (start_now(some)) return;
  queues_.submit(some);
  start_now(some);
}

void PortOperations::start_here(const Started& started) noexcept {
  const OneSided& operation = started.operation;
  std::byte* const at =
      transport_.windows().find(operation.window, operation.offset, operation.bytes);
  const auto refuse = [&](const char* why) {
    OperationQueues::finish(started, 0, failed_outcome(WEIR_STATUS_INVALID_ARGUMENT, why));
  };
  std::int64_t old = 0;
  if (at == nullptr && operation.bytes > 0) {
    return refuse("this rank has no window with these bytes");
  }
  if (operation.kind == OneSidedKind::put) {
    std::memcpy(at, operation.local, operation.bytes);
  } else if (operation.kind == OneSidedKind::get) {
    std::memcpy(operation.local, at, operation.bytes);
  } else if (!change_word(operation, at, old)) {
    return refuse("an atomic operation needs an aligned word");
  }
  OperationQueues::finish(started, old, {});
}

// ---- Ending -------------------------------------------------------------------------------------

Outcome PortOperations::flush(Rank to, std::int64_t timeout_ns) {
  if (to >= info_.ranks) lost_ranks_.check_alive(to, "flush");
  Account& mine = account();
  const auto complete = [&] { return mine.pending[to].load() == 0; };
  if (!progress_.wait_until(complete, timeout_ns, "operations in flight")) {
    return failed_outcome(
        WEIR_STATUS_TIMEOUT,
        fmt::format("{} operations on rank {} are still in flight", mine.pending[to].load(), to)
            .c_str());
  }
  const SpinGuard guard(mine.lock);
  return std::exchange(mine.failures[to], {});
}

}  // namespace weir::rt
