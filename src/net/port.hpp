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
#include "net/port_messages.hpp"
#include "net/port_operations.hpp"
#include "net/port_progress.hpp"
#include "net/transport.hpp"

namespace weir::rt {

/// Connects a process to the others by one transport. Any thread, unless it says otherwise.
///
/// Nothing here waits for another rank but flush() and barrier(). A call to a rank that is lost
/// fails as WEIR_STATUS_NETWORK_ERROR and names it.
///
/// The thread that makes progress holds the progress lock. Only listen(), expose(), withdraw(),
/// allocate() and release() wait for it; sends of other threads go to a list that the holder takes
/// over.
class Port {
 public:
  Port(std::unique_ptr<Transport> transport, ProgressBy progress);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  /// Sends what has been sent, within a bounded time, stops progress and leaves the fabric.
  /// Listeners hear nothing afterwards. No other thread may be in a call.
  ~Port();
  /// Leaves the fabric at process exit, while other threads may be in calls and inside a listener,
  /// except that it does not join the progress thread. Other ranks learn that this rank did not
  /// close the fabric. Listeners are notified that all ranks are lost, except that of
  /// Channel::user, which gets no further call. Does nothing if a listener holds the progress lock
  /// for longer than patience_ns.
  void leave_at_exit() noexcept;

  /// Most bytes of a message (head and body) that travel in one piece.
  static constexpr std::size_t kFrameBytes = PortMessages::kFrameBytes;

  const TransportInfo& info() const noexcept;
  ProgressBy progress_by() const noexcept;
  Rank rank() const noexcept;
  Rank ranks() const noexcept;
  bool alive(Rank rank) const noexcept;
  /// Why a rank is gone: "rank 1 has left the fabric"; "" while it is alive.
  std::string why_lost(Rank rank) const;

  /// Messages of a channel that came before are delivered first. Null: keep them again, up to 64
  /// MiB; after it returns the former listener hears nothing.
  void listen(Channel channel, Listener* listener);

  /// Who is told, without the turn, when the port's own thread has moved something. Null: nobody;
  /// after it returns the former attendant hears nothing. Not from set_progress_hook().
  void set_progress_hook(ProgressHook* hook) noexcept;
  /// The calling thread is none of the program's: whether it waits says nothing of a stall.
  void leave_out_this_thread() noexcept;
  /// Whether this is the port's own thread.
  bool on_own_thread() const noexcept;

  /// Sends a message of any size, made of two parts, which have been copied when it returns. Blocks
  /// while the way is full, except inside a listener. Throws Error; {busy} when a listener has sent
  /// 64 MiB more than the way takes, or this rank that much to itself that nobody listens to.
  void send(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body = {});
  /// Does so without asking for room: for messages of which there are only so many at a time.
  void post(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body = {});

  /// Memory in which the body of a message for another rank can be made, so that it need not be
  /// copied: on 64 bytes, info().reserved_bytes at most. Null where that is of no use, or there is
  /// none.
  std::byte* reserve(std::size_t bytes) noexcept;
  void unreserve(std::byte* memory) noexcept;
  /// The same as send(), with a head of 48 bytes at most, and a body at the begin of reserved
  /// memory, which is the port's again, also when it throws.
  void send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body);
  /// The same without asking for room, as post() does.
  void post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body);

  /// Lets the others at memory; they need the number. Throws Error; {timeout} when somebody else
  /// has held the turn until the deadline.
  WindowId expose(void* memory, std::size_t bytes, std::int64_t deadline_ns = sys::kNever);
  /// Returns when no operation is in it, but waits a second at most for a process that is stopped
  /// in the midst of one. Others move the fabric on meanwhile, but of a listener, which has the
  /// turn.
  void withdraw(WindowId window) noexcept;
  /// Returns zeroed memory that others reach fastest when it is exposed; null: somebody else has
  /// held the turn until the deadline, or not all of it was there then. Others move the fabric on
  /// while the system brings the memory. Throws Error.
  void* allocate(std::size_t bytes, std::int64_t deadline_ns = sys::kNever);
  void release(void* memory) noexcept;
  /// Says where memory from allocate() is for the others, if they can read it without a copy.
  std::optional<std::uint64_t> place_of(const void* memory) const noexcept;
  /// Returns what another rank, or this one, may have there; null when that is nowhere.
  const std::byte* memory_of(Rank owner, std::uint64_t place, std::uint64_t bytes) const noexcept;

  /// Puts or gets some runs at once, where that takes nobody else's help. False: put() and get()
  /// must do it, also what has been done.
  bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                 std::span<const WindowRun> runs) noexcept;

  // One-sided operations. `done` is called once, possibly before they return; null: nobody waits.
  // They block while 1,024 of the thread to a rank are under way. A listener cannot: of those that
  // nobody waits for it may have 65,536, then they throw Error{busy}.
  void put(Rank to, WindowId window, std::uint64_t offset, std::span<const std::byte> from,
           Completion* done);
  void get(Rank from, WindowId window, std::uint64_t offset, std::span<std::byte> to,
           Completion* done);
  void fetch_add(Rank to, WindowId window, std::uint64_t offset, std::int64_t operand,
                 Completion* done);
  void compare_swap(Rank to, WindowId window, std::uint64_t offset, std::int64_t expected,
                    std::int64_t desired, Completion* done);
  /// Waits until the operations to `to` that this thread has started are over; returns the first
  /// failure since the last flush() among those without a Completion.
  Outcome flush(Rank to, std::int64_t timeout_ns);

  /// Waits until all ranks that live have called it. Every rank, one thread each.
  Outcome barrier(std::int64_t timeout_ns);

  /// Waits until `done()`, which is called often and by this thread only; moves the fabric on
  /// meanwhile, as the strategy has it. `what` names it in reports. Returns false at the deadline.
  /// Throws Error{busy} inside a listener, which must not wait, and what done() throws.
  bool wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, WaitName what);
  /// What threads wait for, also those that others wake.
  WaitRegistry& waits() noexcept;

  /// Whether this thread is in a listener or a completion, and must not wait.
  bool inside_listener() const noexcept;

  /// Calls act() like a listener: nobody else moves the fabric on meanwhile, and it must not wait.
  void as_listener(const std::function<void()>& act);

  /// Moves the fabric on, unless somebody else is at it. Returns whether something happened.
  bool progress() noexcept;
  /// This thread, which has called progress() again and again, goes to sleep elsewhere.
  void about_to_block() noexcept;
  /// Gives up on a rank: it counts as lost. One that is gone already stays as it is.
  void drop(Rank rank, const std::string& why) noexcept;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace weir::rt
