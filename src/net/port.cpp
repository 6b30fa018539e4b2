#include "net/port.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_role.hpp"
#include "net/lost_ranks.hpp"
#include "net/port_barrier.hpp"

namespace weir::rt {

class Port::Body final : private TransportSink, private PortWork {
 public:
  Body(std::unique_ptr<Transport> made, ProgressBy by);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body();
  void leave_at_exit() noexcept;

  const TransportInfo& info() const noexcept { return transport->info(); }

  const std::unique_ptr<Transport> transport;
  LostRanks lost_ranks;
  PortProgress progress;
  PortMessages messages;
  PortOperations operations;
  PortBarrier barrier;

 private:
  static constexpr std::int64_t kBetweenLooks = 1'000'000;

  void send_all(std::int64_t deadline_ns) noexcept;
  bool step() noexcept override;
  bool has_submissions() const noexcept override {
    return messages.has_submissions() || operations.has_submissions();
  }
  void take_submissions() noexcept override;
  bool unfinished() const noexcept override {
    return messages.unfinished() || operations.unfinished();
  }

  void arrived(Rank from, std::span<const std::byte> frame) noexcept override;
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;
};

Port::Body::Body(std::unique_ptr<Transport> made, ProgressBy by)
    : transport(std::move(made)),
      lost_ranks(info().ranks),
      progress(*transport, *this, by),
      messages(*transport, lost_ranks, progress),
      operations(*transport, lost_ranks, progress),
      barrier(info().rank, lost_ranks, messages, progress, info().ranks) {
  progress.start();
}

Port::Body::~Body() {
  progress.stop();
  const std::int64_t deadline = sys::deadline_after(info().patience_ns);
  progress.lock();
  messages.drop_listeners();
  send_all(deadline);
}

/// Also announces the thread as waiting: a seeded transport moves packets only when all ranks wait.
void Port::Body::send_all(std::int64_t deadline_ns) noexcept {
  IdleWait wait{.what = "room to send", .patience = Patience::some};
  for (;;) {
    const std::uint32_t bell = transport->bell();
    const std::uint64_t since = transport->activity();
    const bool happened = step();
    const std::int64_t now = sys::now_ns();
    if ((messages.empty() && operations.empty()) || now >= deadline_ns) break;
    if (happened) continue;
    try {
      static_cast<void>(transport->idle(wait, since));
    } catch (...) {  // no memory: the next pass reports it
    }
    transport->wait(bell, std::min(deadline_ns, now + kBetweenLooks));
  }
  transport->resumed(wait);
}

void Port::Body::leave_at_exit() noexcept {
  progress.begin_to_stop();
  const std::int64_t deadline = sys::deadline_after(info().patience_ns);
  {
    const PortProgress::ProgressLock progress_lock(progress, deadline);
    if (!progress_lock) return;
    messages.listen(Channel::user, nullptr);
    send_all(deadline);
    transport->leave_at_exit();
    step();
  }
  progress.notify();
}

bool Port::Body::step() noexcept {
  bool happened = messages.take_submissions();
  happened |= operations.take_submissions();
  happened |= transport->progress(*this);
  happened |= messages.take_submissions();
  happened |= operations.take_submissions();
  happened |= messages.push();
  happened |= operations.push();
  happened |= messages.deliver_own();
  return happened;
}

void Port::Body::take_submissions() noexcept {
  if (messages.take_submissions()) messages.push();
  if (operations.take_submissions()) operations.push();
}

void Port::Body::arrived(Rank from, std::span<const std::byte> frame) noexcept {
  try {
    messages.arrived(from, frame);
  } catch (const Error& error) {
    transport->drop(from, reason("sent a frame that is refused: ", error.what()));
  } catch (...) {
    transport->drop(from, reason("sent a message that there is no memory for"));
  }
}

void Port::Body::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  operations.completed(token, old, std::move(outcome));
}

void Port::Body::lost(Rank rank, const std::string& why) noexcept {
  lost_ranks.mark_lost(rank, why);
  operations.push();
  messages.lost(rank, why);
}

namespace {

/// Only gets write to `local`.
OneSided operation(OneSidedKind kind, Rank target, WindowId window, std::uint64_t offset,
                   const std::byte* local, std::size_t bytes) {
  return {.kind = kind,
          .target = target,
          .window = window,
          .offset = offset,
          .local = const_cast<std::byte*>(local),
          .bytes = bytes};
}

}  // namespace

Port::Port(std::unique_ptr<Transport> transport, ProgressBy progress)
    : body_(std::make_unique<Body>(std::move(transport), progress)) {}
Port::~Port() {
  // A handler has ended the process from inside a call of the body and never returns to it: leak
  // the body.
  if (body_->progress.is_held()) static_cast<void>(body_.release());
}
void Port::leave_at_exit() noexcept { body_->leave_at_exit(); }

const TransportInfo& Port::info() const noexcept { return body_->info(); }
ProgressBy Port::progress_by() const noexcept { return body_->progress.by(); }
Rank Port::rank() const noexcept { return body_->info().rank; }
Rank Port::ranks() const noexcept { return body_->info().ranks; }
bool Port::alive(Rank rank) const noexcept {
  return rank < ranks() && !body_->lost_ranks.is_lost(rank);
}
std::string Port::why_lost(Rank rank) const { return body_->lost_ranks.loss_reason(rank); }

void Port::listen(Channel channel, Listener* listener) {
  body_->messages.listen(channel, listener);
  body_->progress.notify();  // another thread may wait for a kept message
}
void Port::send(Rank to, Channel channel, std::span<const std::byte> head,
                std::span<const std::byte> body) {
  body_->messages.send(to, channel, head, body);
}

void Port::post(Rank to, Channel channel, std::span<const std::byte> head,
                std::span<const std::byte> body) {
  body_->messages.post(to, channel, head, body);
}

std::byte* Port::reserve(std::size_t bytes) noexcept { return body_->transport->reserve(bytes); }
void Port::unreserve(std::byte* memory) noexcept { body_->transport->unreserve(memory); }
void Port::send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                         std::span<std::byte> body) {
  body_->messages.send_reserved(to, channel, head, body);
}
void Port::post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                         std::span<std::byte> body) {
  body_->messages.post_reserved(to, channel, head, body);
}

WindowId Port::expose(void* memory, std::size_t bytes, std::int64_t deadline_ns) {
  return body_->operations.expose(memory, bytes, deadline_ns);
}
void Port::withdraw(WindowId window) noexcept { body_->operations.withdraw(window); }
void* Port::allocate(std::size_t bytes, std::int64_t deadline_ns) {
  return body_->operations.allocate(bytes, deadline_ns);
}
void Port::release(void* memory) noexcept { body_->operations.release(memory); }
std::optional<std::uint64_t> Port::place_of(const void* memory) const noexcept {
  return body_->transport->place_of(memory);
}
const std::byte* Port::memory_of(Rank owner, std::uint64_t place,
                                 std::uint64_t bytes) const noexcept {
  return body_->transport->memory_of(owner, place, bytes);
}

bool Port::move_runs(OneSidedKind kind, Rank target, WindowId window,
                     std::span<const WindowRun> runs) noexcept {
  return target != rank() && alive(target) &&
         body_->transport->move_runs(kind, target, window, runs);
}

void Port::put(Rank to, WindowId window, std::uint64_t offset, std::span<const std::byte> from,
               Completion* done) {
  body_->operations.start(
      operation(OneSidedKind::put, to, window, offset, from.data(), from.size()), done);
}

void Port::get(Rank from, WindowId window, std::uint64_t offset, std::span<std::byte> to,
               Completion* done) {
  body_->operations.start(operation(OneSidedKind::get, from, window, offset, to.data(), to.size()),
                          done);
}

void Port::fetch_add(Rank to, WindowId window, std::uint64_t offset, std::int64_t operand,
                     Completion* done) {
  OneSided add = operation(OneSidedKind::fetch_add, to, window, offset, nullptr, sizeof operand);
  add.operand = operand;
  body_->operations.start(add, done);
}

void Port::compare_swap(Rank to, WindowId window, std::uint64_t offset, std::int64_t expected,
                        std::int64_t desired, Completion* done) {
  OneSided swap =
      operation(OneSidedKind::compare_swap, to, window, offset, nullptr, sizeof desired);
  swap.operand = desired;
  swap.expected = expected;
  body_->operations.start(swap, done);
}

Outcome Port::flush(Rank to, std::int64_t timeout_ns) {
  return body_->operations.flush(to, timeout_ns);
}
Outcome Port::barrier(std::int64_t timeout_ns) { return body_->barrier.wait(timeout_ns); }
bool Port::wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, WaitName what) {
  return body_->progress.wait_until(done, timeout_ns, what);
}
WaitRegistry& Port::waits() noexcept { return body_->progress.waits(); }
void Port::as_listener(const std::function<void()>& act) {
  {
    const PortProgress::ProgressLock progress_lock(body_->progress);
    const NoWaitScope scope;
    act();
  }
  body_->progress.notify();  // after the unlock: the lock kept waiting threads from making progress
}
bool Port::inside_listener() const noexcept { return body_->progress.is_held(); }
void Port::leave_out_this_thread() noexcept { body_->progress.leave_out_this_thread(); }
void Port::set_progress_hook(ProgressHook* hook) noexcept {
  body_->progress.set_progress_hook(hook);
}
bool Port::on_own_thread() const noexcept { return body_->progress.on_own_thread(); }
bool Port::progress() noexcept { return body_->progress.poll(); }
void Port::about_to_block() noexcept { body_->progress.about_to_block(); }
void Port::drop(Rank rank, const std::string& why) noexcept {
  {
    const PortProgress::ProgressLock progress_lock(body_->progress);
    body_->transport->drop(rank, why);
  }
  body_->progress.notify();  // progress must notify the listeners
}

}  // namespace weir::rt
