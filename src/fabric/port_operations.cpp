#include "fabric/port_operations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/thread_role.hpp"
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

PortOperations::PortOperations(Transport& transport, const LostRanks& lost_ranks,
                               PortProgress& progress)
    : transport_(transport),
      info_(transport.info()),
      lost_ranks_(lost_ranks),
      progress_(progress),
      serial_(next_serial()),
      waiting_(info_.ranks) {}

bool PortOperations::empty() const noexcept {
  return std::all_of(waiting_.begin(), waiting_.end(),
                     [](const Operations& each) { return each.empty(); });
}

// ---- Windows ------------------------------------------------------------------------------------

WindowId PortOperations::expose(void* memory, std::size_t bytes, std::int64_t deadline_ns) {
  if (memory == nullptr && bytes > 0) fail_argument("the memory of a window is NULL");
  const PortProgress::ProgressLock progress_lock(progress_, deadline_ns);
  if (!progress_lock)
    fail(WEIR_STATUS_TIMEOUT, "no window in time: a handler of messages is at work");
  transport_.expose(next_window_, memory, bytes);
  return next_window_++;
}

void PortOperations::withdraw(WindowId window) noexcept {
  bool entered = false;
  {
    const PortProgress::ProgressLock progress_lock(progress_);
    entered = transport_.withdraw(window);
  }
  if (entered) transport_.link().settle(window);
}

void* PortOperations::allocate(std::size_t bytes, std::int64_t deadline_ns) {
  void* memory = nullptr;
  {
    const PortProgress::ProgressLock progress_lock(progress_, deadline_ns);
    if (!progress_lock) return nullptr;
    memory = transport_.link().allocate(bytes);
  }
  // takes seconds for large sizes: other threads can make progress meanwhile
  if (memory != nullptr) {
    const weir_status status = transport_.link().commit(memory, bytes, deadline_ns);
    if (status == WEIR_STATUS_OK) return memory;
    release(memory);
    if (status == WEIR_STATUS_TIMEOUT) return nullptr;
  }
  memory = std::calloc(std::max<std::size_t>(bytes, 1), 1);
  if (memory == nullptr) fail(WEIR_STATUS_OUT_OF_MEMORY, "no memory for a window of {} B", bytes);
  return memory;
}

void PortOperations::release(void* memory) noexcept {
  const PortProgress::ProgressLock progress_lock(progress_);
  if (!transport_.link().release(memory)) std::free(memory);
}

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
    take_submissions();
    if (!some.empty()) {
      Operations& queue = waiting_[some.front().operation.target];
      queue.splice(queue.end(), some);
    }
    push();
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
  {
    const sys::Lock lock(mutex_);
    submitted_.splice(submitted_.end(), some);
  }
  submissions_.fetch_add(1);
  start_now(some);
}

void PortOperations::start_here(const Started& started) noexcept {
  const OneSided& operation = started.operation;
  std::byte* const at =
      transport_.windows().find(operation.window, operation.offset, operation.bytes);
  const auto refuse = [&](const char* why) {
    finish(started, 0, failed_outcome(WEIR_STATUS_INVALID_ARGUMENT, why));
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
  finish(started, old, {});
}

bool PortOperations::take_submissions() noexcept {
  if (submissions_.load() == 0) return false;
  const sys::Lock lock(mutex_);
  submissions_.store(0);
  while (!submitted_.empty()) {
    Operations& queue = waiting_[submitted_.front().operation.target];
    queue.splice(queue.end(), submitted_, submitted_.begin());
  }
  return true;
}

bool PortOperations::push() noexcept {
  return push_to_all(info_.ranks, [this](Rank rank) { return push_to(rank); });
}

bool PortOperations::push_to(Rank to) {
  Operations& queue = waiting_[to];
  bool moved = false;
  while (!queue.empty()) {
    const auto first = queue.begin();
    const bool lost_ranks = lost_ranks_.is_lost(to);
    if (!lost_ranks && !transport_.start(first->operation)) break;
    under_way_.splice(under_way_.end(), queue, first);
    moved = true;
    if (lost_ranks) completed(first->operation.token, 0, lost_ranks_.outcome(to));
  }
  return moved;
}

// ---- Ending -------------------------------------------------------------------------------------

void PortOperations::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  const Started& started = *static_cast<const Started*>(token);
  Operations one;
  one.splice(one.begin(), under_way_, started.self);
  finish(started, old, std::move(outcome));
}

void PortOperations::finish(const Started& started, std::int64_t old, Outcome outcome) noexcept {
  Account& account = *started.account;
  const Rank to = started.operation.target;
  if (started.done != nullptr) {
    const NoWaitScope scope;
    started.done->completed(old, outcome);
  } else if (!outcome.ok()) {
    const SpinGuard guard(account.lock);
    if (account.failures[to].ok()) account.failures[to] = std::move(outcome);
  }
  account.pending[to].fetch_sub(1);
}

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
