// The driver interface of a fabric: what a network must do to connect ranks.
//
// A transport moves bytes and does not interpret them. One thread uses it at a time: Port, above
// it, accepts calls from all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"

namespace weir::rt {

using Rank = std::uint32_t;

/// Number of a memory that other ranks may put to and get from; assigned by the owner, from 0.
using WindowId = std::uint32_t;

/// Builds the reason of a failure; "failed" if there is no memory for the text.
inline std::string reason(const char* what, const char* detail = "") noexcept {
  try {
    return std::string(what) + detail;
  } catch (...) {
    return "failed";
  }
}

/// Parts that are sent one after the other.
using Parts = std::span<const std::span<const std::byte>>;

/// Constant properties of a transport.
struct TransportInfo {
  std::string name;  ///< "inproc", "shm", "mpi (Open MPI 4.1.4)"
  Rank rank = 0, ranks = 1;
  std::size_t frame_bytes = 0;     ///< maximum for send()
  std::size_t reserved_bytes = 0;  ///< maximum for reserve()
  bool shares_memory = false;      ///< all ranks are on one machine and put() is a copy
  bool owner_must_poll = true;     ///< one-sided operations need the target's progress()
  bool can_sleep = false;          ///< wait() blocks until something arrives
  bool sees_stalls = false;        ///< idle() may report a stall: waiting threads call it
  bool seeded = false;             ///< a seed decides what arrives next, when all ranks wait
  std::int64_t patience_ns = 0;    ///< maximum time for unsent data when it leaves
  std::int64_t lost_after_ns = 0;  ///< silence after which a rank is lost; 0: unlimited
};

enum class OneSidedKind : std::uint8_t { put, get, fetch_add, compare_swap };

/// How long a thread that has nothing to do will wait.
enum class Patience : std::uint8_t {
  none,     ///< not at all: it polls
  some,     ///< until a deadline
  endless,  ///< until something arrives
};

/// The wait of a thread that has nothing to do. The transport knows it from its first idle() to
/// resumed() and owns the other members.
struct IdleWait {
  const char* what = "";  ///< follows "waits for"
  Patience patience = Patience::endless;
  bool known = false;
  /// The activity() in which its thread has found nothing to do.
  std::uint64_t since = 0;
  std::optional<std::string> end = {};  ///< why it ends
};

/// A one-sided operation on [offset, offset + bytes) of a window. Atomic operations need 8 aligned
/// bytes.
struct OneSided {
  OneSidedKind kind = OneSidedKind::put;
  Rank target = 0;
  WindowId window = 0;
  std::uint64_t offset = 0;
  std::byte* local = nullptr;  ///< put: source; get: target; used until completion
  std::size_t bytes = 0;
  std::int64_t operand = 0;  ///< added, or the replacement for `expected`
  std::int64_t expected = 0;
  void* token = nullptr;  ///< for TransportSink::completed()
};

/// Bytes of a window and their local address: source of a put, target of a get.
struct WindowRun {
  std::uint64_t offset = 0;
  std::byte* local = nullptr;
  std::size_t bytes = 0;
};

/// Receives what Transport::progress() finds; called inside it only.
class TransportSink {
 public:
  /// A frame, in the order in which `from` sent its frames to this rank. The bytes are valid during
  /// the call only.
  virtual void arrived(Rank from, std::span<const std::byte> frame) noexcept = 0;
  /// An operation is complete: its bytes are in the target, or in `local`. `old` is the previous
  /// value of an atomic operation.
  virtual void completed(void* token, std::int64_t old, Outcome outcome) noexcept = 0;
  /// A rank has left or does not answer any more. Called once per rank; nothing of it follows, and
  /// operations in flight to it have been completed() as failed.
  virtual void lost(Rank rank, const std::string& why) noexcept = 0;

 protected:
  ~TransportSink() = default;
};

/// A network as one rank sees it. The destructor leaves the network and waits a bounded time until
/// everything has been sent.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual const TransportInfo& info() const noexcept = 0;

  /// Sends a frame; the bytes are copied before it returns. False: no room now; try again after
  /// progress(). Not to the own rank.
  virtual bool send(Rank to, Parts parts) = 0;
  /// Returns memory, aligned to 64 bytes, from which the last part of a frame can be sent without a
  /// copy; null if there is none. Any thread.
  virtual std::byte* reserve(std::size_t bytes) noexcept = 0;
  /// Returns reserved memory. Any thread.
  virtual void unreserve(std::byte* memory) noexcept = 0;
  /// Like send(), with the last part at the begin of reserved memory, which returns to the
  /// transport. The other parts have at most 64 bytes. False: the caller keeps the memory.
  virtual bool send_reserved(Rank to, Parts parts) = 0;
  /// Starts an operation. False: no room now. Operations are not ordered relative to each other or
  /// to frames; a caller that needs order waits for completed(). Not on the own rank.
  virtual bool start(const OneSided& operation) = 0;
  /// Makes memory accessible to the other ranks under a number that this rank has not used before.
  virtual void expose(WindowId window, void* memory, std::size_t bytes) = 0;
  /// Ends the access: operations in flight on the window fail or complete. Returns whether some may
  /// still use it.
  virtual bool withdraw(WindowId window) noexcept = 0;
  /// Waits for these operations, at most one second: a process may be stopped in the middle of one.
  /// Any thread, concurrently with other calls.
  virtual void settle(WindowId window) noexcept = 0;
  /// Reserves addresses for memory that other ranks access fastest when it is exposed; null if
  /// there are none. commit() allocates the memory.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Allocates zeroed memory for the addresses that allocate(bytes) returned. TIMEOUT: not complete
  /// at the deadline; OUT_OF_MEMORY: the system has none. The caller must then release() it. Any
  /// thread, concurrently with other calls.
  virtual weir_status commit(void* memory, std::size_t bytes,
                             std::int64_t deadline_ns) noexcept = 0;
  /// Frees memory from allocate(); memory that an operation still uses is not reused. False: the
  /// memory is not from allocate().
  virtual bool release(void* memory) noexcept = 0;
  /// Puts or gets several runs, if that needs no help of another process. False: the caller must
  /// start() operations for all runs. Any thread, concurrently with other calls.
  virtual bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                         std::span<const WindowRun> runs) noexcept = 0;
  // Reading memory of other ranks in place. Any thread, concurrently with other calls.
  /// Returns the position of memory from allocate() for the other ranks, if they can read it.
  virtual std::optional<std::uint64_t> place_of(const void* memory) const noexcept = 0;
  /// Returns the memory of another rank, or of this one, at a position; null if it is not valid.
  virtual const std::byte* memory_of(Rank owner, std::uint64_t place,
                                     std::uint64_t bytes) const noexcept = 0;

  /// Makes progress. Returns whether something happened.
  virtual bool progress(TransportSink& sink) noexcept = 0;
  /// Returns whether operations need progress() although no external event will trigger it.
  virtual bool unfinished() const noexcept = 0;
  /// Declares a rank lost. The next progress() reports it.
  virtual void drop(Rank rank, const std::string& why) noexcept = 0;
  /// Leaves before the transport is destroyed, because the process ends. The other ranks learn that
  /// this rank has not closed the fabric. For this rank all of them are lost, as the next
  /// progress() reports.
  virtual void leave_at_exit() noexcept = 0;

  // Stall detection, if the transport sees all ranks.
  /// Changes whenever a thread of this rank may have something new to do.
  virtual std::uint64_t activity() const noexcept { return 0; }
  /// Called when progress() has changed something that other threads of this rank may wait for.
  virtual void note_activity() noexcept {}
  /// Registers the calling thread of the program: nothing is a stall until this thread waits or
  /// ends. Any thread.
  virtual void note_thread() noexcept {}
  /// Reports that the thread has found nothing to do since activity() was `since`. Returns why its
  /// wait ends: a text that says which rank waits for what if all ranks wait forever; "" if it
  /// polls and all others wait. Nothing: the thread waits, and reports again when activity() has
  /// changed.
  virtual std::optional<std::string> idle(IdleWait&, std::uint64_t /*since*/) {
    return std::nullopt;
  }
  /// Its thread does not wait any more. Any thread.
  virtual void resumed(IdleWait&) noexcept {}

  // Sleeping. Any thread, concurrently with other calls.
  /// Changes when a wait() with an earlier value must end.
  virtual std::uint32_t bell() const noexcept = 0;
  /// Sleeps until the bell differs from `bell`, progress() may have something to do, or the
  /// deadline (sys::now_ns()) passes. May return early.
  virtual void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept = 0;
  /// Changes the bell and wakes sleeping threads.
  virtual void wake() noexcept = 0;
};

}  // namespace weir::rt
