// A rank's port to the fabric: messages and one-sided operations for all threads of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "net/transport.hpp"

namespace weir::rt {

/// Who a message is for. Each part of weir that talks over the fabric has one.
enum class Channel : std::uint8_t { control, collective, user, conveyor, grid, rank, share };

/// Who moves the fabric on.
enum class ProgressBy : std::uint8_t {
  thread,  ///< a thread of the port: spins while something is under way, then sleeps
  caller,  ///< only those who call progress() or wait for something
  hybrid,  ///< those who wait, and the thread when nobody does
};

/// Takes the messages of a channel.
class Listener {
 public:
  /// A message, in the order in which `from` sent to this channel. The bytes are gone when it
  /// returns. On the thread that makes progress, one at a time; may send, must not wait.
  virtual void arrived(Rank from, std::span<const std::byte> message) noexcept = 0;
  /// A rank is gone: it was lost, or it has left. Nothing of it comes afterwards. Same thread. Who
  /// begins to listen is told at once of those that are gone already.
  virtual void lost(Rank rank, const std::string& why) noexcept = 0;

 protected:
  ~Listener() = default;
};

/// Takes the end of an operation.
class Completion {
 public:
  /// `old` is what an atomic operation found. On the thread that makes progress; must not wait.
  virtual void completed(std::int64_t old, const Outcome& outcome) noexcept = 0;

 protected:
  ~Completion() = default;
};

/// Connects a process to the others by one transport. Any thread, unless it says otherwise.
///
/// Nothing here waits for another rank but flush() and barrier(). A call to a rank that is lost
/// fails as WEIR_STATUS_NETWORK_ERROR and names it.
///
/// Who moves the fabric on holds the turn, which nobody waits for but listen(), expose() and
/// withdraw(): what other threads send meanwhile goes into a list that the holder takes over.
class Port {
 public:
  Port(std::unique_ptr<Transport> transport, ProgressBy progress);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  /// Sends what has been sent, within a bounded time, stops progress and leaves the fabric.
  /// Listeners hear nothing afterwards. No other thread may be in a call.
  ~Port();

  /// Most bytes of a message (head and body) that travel in one piece.
  static constexpr std::size_t kFrameBytes = (64u << 10) + 512;

  const TransportInfo& info() const noexcept;
  ProgressBy progress_by() const noexcept;
  Rank rank() const noexcept;
  Rank ranks() const noexcept;
  bool alive(Rank rank) const noexcept;
  /// Why a rank is gone: "rank 1 has left the fabric"; "" while it is alive.
  std::string why_gone(Rank rank) const;

  /// Messages of a channel that came before are delivered first. Null: keep them again, up to 64
  /// MiB; after it returns the former listener hears nothing.
  void listen(Channel channel, Listener* listener);

  /// Sends a message of any size, made of two parts, which have been copied when it returns. Blocks
  /// while the way is full, except on the thread that makes progress. Throws Error; {busy} when
  /// this rank has sent more to itself than is kept for a listener.
  void send(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body = {});

  /// Lets the others at memory; they need the number. Throws Error.
  WindowId expose(void* memory, std::size_t bytes);
  void withdraw(WindowId window) noexcept;
  /// Returns zeroed memory that others reach fastest when it is exposed. Throws Error.
  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;

  // One-sided operations. `done` is called once, possibly before they return; null: nobody waits.
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
  /// Throws Error{busy} inside a listener, which must not wait.
  bool wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, const char* what);

  /// Whether this thread is in a listener or a completion, and must not wait.
  bool inside_listener() const noexcept;

  /// Moves the fabric on, unless somebody else is at it. Returns whether something happened.
  bool progress() noexcept;
  /// Gives up on a rank: it counts as lost. One that is gone already stays as it is.
  void drop(Rank rank, const std::string& why) noexcept;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace weir::rt
