// A rank's port to the fabric: messages and one-sided operations for all threads of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "fabric/lost_ranks.hpp"
#include "fabric/port_barrier.hpp"
#include "fabric/port_messages.hpp"
#include "fabric/port_operations.hpp"
#include "fabric/port_progress.hpp"
#include "fabric/port_queues.hpp"
#include "fabric/transport.hpp"
#include "fabric/wait_registry.hpp"

namespace weir::rt {

/// Connects a process to the other ranks through one transport. Any thread, unless stated
/// otherwise.
///
/// Only flush() and barrier() wait for another rank. A call to a lost rank fails with
/// WEIR_STATUS_NETWORK_ERROR and names the rank.
///
/// The thread that makes progress holds the progress lock. Only listen(), expose(), withdraw(),
/// allocate() and release() wait for it; other threads submit sends to a list, which the holder
/// takes over.
class Port {
 public:
  Port(std::unique_ptr<Transport> transport, ProgressBy progress);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  /// Sends submitted messages within a bounded time, stops progress and leaves the fabric.
  /// Listeners are not called afterwards. No other thread may be in a call, and the thread not in a
  /// listener.
  ~Port();
  /// Destroys a port, unless a listener has ended the process from inside a call of the port, which
  /// never returns: the port is leaked.
  struct Close {
    void operator()(Port* port) const noexcept {
      if (!port->inside_listener()) delete port;
    }
  };
  /// Leaves the fabric at process exit, while other threads may be in calls and inside a listener,
  /// except that it does not join the progress thread. Other ranks learn that this rank did not
  /// close the fabric. Listeners are notified that all ranks are lost, except that of
  /// Channel::user, which gets no further call. Does nothing if a listener holds the progress lock
  /// for longer than patience_ns.
  void leave_at_exit() noexcept;

  /// Maximum size of a message (head and body) that is sent in one frame.
  static constexpr std::size_t kFrameBytes = MessageQueues::kFrameBytes;

  const TransportInfo& info() const noexcept { return transport_->info(); }
  ProgressBy progress_by() const noexcept { return progress_.by(); }
  Rank rank() const noexcept { return info().rank; }
  Rank ranks() const noexcept { return info().ranks; }
  PeerInfo peer_info(Rank rank) const noexcept { return transport_->link().peer_info(rank); }
  bool alive(Rank rank) const noexcept { return rank < ranks() && !lost_ranks_.is_lost(rank); }
  /// Returns why a rank is lost: "rank 1 has left the fabric"; "" while it is alive.
  std::string why_lost(Rank rank) const { return lost_ranks_.loss_reason(rank); }

  /// Delivers earlier messages of the channel first. Null: keeps messages from now on, up to 64
  /// MiB; after it returns the previous listener is not called any more.
  void listen(Channel channel, Listener* listener);

  /// Sets the hook that the progress thread calls, without the progress lock, after it has moved
  /// something; null: none. After it returns the previous hook is not called any more. Must not be
  /// called from inside the hook.
  void set_progress_hook(ProgressHook* hook) noexcept { progress_.set_progress_hook(hook); }
  /// Excludes the calling thread from stall detection: it is not a thread of the program.
  void leave_out_this_thread() noexcept { progress_.leave_out_this_thread(); }
  /// Returns whether the caller is the progress thread of this port.
  bool on_own_thread() const noexcept { return progress_.on_own_thread(); }

  /// Sends a message of any size, in two parts, which are copied before it returns. Blocks under
  /// backpressure, except inside a listener. Throws Error; {busy} when a listener has more than 64
  /// MiB queued for the rank, or this rank has as much queued for itself without a listener.
  void send(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body = {}) {
    messages_.send(to, channel, head, body);
  }
  /// The same without backpressure, for messages whose number is bounded.
  void post(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body = {}) {
    messages_.post(to, channel, head, body);
  }

  /// Returns memory, aligned to 64 bytes, for the body of a message to a rank, so that it need not
  /// be copied; at most info().reserved_bytes. Null if there is none, or if it would not avoid a
  /// copy.
  std::byte* reserve(Rank to, std::size_t bytes) noexcept { return transport_->reserve(to, bytes); }
  void unreserve(std::byte* memory) noexcept { transport_->link().unreserve(memory); }
  /// Like send(), with a head of at most 48 bytes and a body at the begin of reserved memory, which
  /// returns to the port, also when the call throws.
  void send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body) {
    messages_.send_reserved(to, channel, head, body);
  }
  /// The same without backpressure, like post().
  void post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body) {
    messages_.post_reserved(to, channel, head, body);
  }

  /// Makes memory accessible to other ranks and returns its number, which they need. Throws Error;
  /// {timeout} if another thread holds the progress lock until the deadline.
  WindowId expose(void* memory, std::size_t bytes, std::int64_t deadline_ns = sys::kNever);
  /// Ends the access and waits until no operation uses the window, at most one second: the process
  /// of an operation may be stopped. Meanwhile other threads can make progress, unless a listener
  /// calls it, which holds the progress lock.
  void withdraw(WindowId window) noexcept;
  /// Returns zeroed memory in a place that other ranks access fastest when it is exposed. Null if
  /// another thread holds the progress lock until the deadline, or if the system has not provided
  /// all of the memory by then; other threads can make progress meanwhile. Throws Error.
  void* allocate(std::size_t bytes, std::int64_t deadline_ns = sys::kNever);
  void release(void* memory) noexcept;
  /// Returns the position of memory from allocate() for the other ranks, if they can read it in
  /// place.
  std::optional<std::uint64_t> offset_of(const void* memory) const noexcept {
    return transport_->offset_of(memory);
  }
  /// Returns the memory of another rank, or of this one, at a position; null if the position is not
  /// valid.
  const std::byte* memory_of(Rank owner, std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return transport_->link().memory_of(owner, offset, bytes);
  }

  /// Puts or gets several runs at once, if that needs no help of another process. False: the caller
  /// must use put() or get() for all runs.
  bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                 std::span<const WindowRun> runs) noexcept {
    return target != rank() && alive(target) &&
           transport_->link().move_runs(kind, target, window, runs);
  }

  // One-sided operations. `done` is called once, possibly before the call returns; null: no
  // callback. A call blocks while the thread has 1,024 operations in flight to the rank. A listener
  // does not block: a call without `done` throws Error{busy} when it has 65,536.
  void put(Rank to, WindowId window, std::uint64_t offset, std::span<const std::byte> from,
           Completion* done) {
    std::byte* const source = const_cast<std::byte*>(from.data());  // only gets write to it
    operations_.start({OneSidedKind::put, to, window, offset, source, from.size()}, done);
  }
  void get(Rank from, WindowId window, std::uint64_t offset, std::span<std::byte> to,
           Completion* done) {
    operations_.start({OneSidedKind::get, from, window, offset, to.data(), to.size()}, done);
  }
  void fetch_add(Rank to, WindowId window, std::uint64_t offset, std::int64_t operand,
                 Completion* done) {
    operations_.start({OneSidedKind::fetch_add, to, window, offset, nullptr, 8, operand}, done);
  }
  void compare_swap(Rank to, WindowId window, std::uint64_t offset, std::int64_t expected,
                    std::int64_t desired, Completion* done) {
    operations_.start(
        {OneSidedKind::compare_swap, to, window, offset, nullptr, 8, desired, expected}, done);
  }
  /// Waits until this thread's operations on `to` are complete. Returns the first failure since the
  /// last flush() of an operation without a Completion.
  Outcome flush(Rank to, std::int64_t timeout_ns) { return operations_.flush(to, timeout_ns); }

  /// Waits until all live ranks have called it. All ranks call it, with one thread each.
  Outcome barrier(std::int64_t timeout_ns) { return barrier_.wait(timeout_ns); }

  /// Waits until `done()` returns true and makes progress meanwhile, as ProgressBy says. Only this
  /// thread calls done(), often; it reads what other threads change sequentially consistently or
  /// under a mutex. `what` names the wait in reports. Returns false at the deadline.
  /// Throws Error{busy} inside a listener, which must not wait, and what done() throws.
  bool wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, WaitName what) {
    return progress_.wait_until(done, timeout_ns, what);
  }
  /// Returns the waits of this rank's threads, including those that other threads wake.
  WaitRegistry& waits() noexcept { return waits_; }

  /// Returns whether this thread is in a listener or completion callback and must not wait.
  bool inside_listener() const noexcept { return progress_.is_held(); }

  /// Runs work at once or, inside a listener, after this thread has released the progress lock.
  void run_without_lock(UnlockedWork& work) noexcept { progress_.run_without_lock(work); }
  class ListenerScope;

  /// Makes progress, unless another thread does so. Returns whether something happened.
  bool progress() noexcept { return progress_.poll(); }
  /// Announces that this thread, which has called progress() repeatedly, is going to sleep
  /// elsewhere.
  void about_to_block() noexcept { progress_.about_to_block(); }
  /// Declares a rank lost, with the reason `what` and `detail`. No effect if it is lost already.
  void drop(Rank rank, const char* what, const char* detail = "") noexcept;

 private:
  const std::unique_ptr<Transport> transport_;
  LostRanks lost_ranks_;
  WaitRegistry waits_;
  MessageQueues message_queues_;
  OperationQueues operation_queues_;
  PortPass pass_;
  PortProgress progress_;
  PortMessages messages_;
  PortOperations operations_;
  PortBarrier barrier_;
  WindowId next_window_ = 0;  ///< by the holder of the progress lock
};

/// During its lifetime the thread is like one in a listener: it holds the progress lock and must
/// not wait.
class Port::ListenerScope {
 public:
  explicit ListenerScope(Port& port) noexcept : notice_{port.progress_}, lock_(port.progress_) {}

 private:
  struct Notice {
    PortProgress& progress;
    ~Notice() { progress.notify(); }
  } notice_;  // after the unlock: the lock kept waiting threads from making progress
  const PortProgress::ProgressLock lock_;
  const NoWaitScope no_wait_;
};

}  // namespace weir::rt
