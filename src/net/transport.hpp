// The driver interface of a fabric: what a network must do to connect ranks.
//
// A transport moves bytes and knows nothing of what they mean. It belongs to one thread at a time:
// Port, above it, takes calls from all threads.
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

/// Memory of a rank that the others may put to and get from. Numbers are the owner's, from 0.
using WindowId = std::uint32_t;

/// Says why something is given up: "failed" when there is no memory for more.
inline std::string reason(const char* what, const char* detail = "") noexcept {
  try {
    return std::string(what) + detail;
  } catch (...) {
    return "failed";
  }
}

/// Bytes that are to be sent one part after the other.
using Parts = std::span<const std::span<const std::byte>>;

/// Facts about a transport that do not change.
struct TransportInfo {
  std::string name;  ///< "inproc", "shm", "mpi (Open MPI 4.1.4)"
  Rank rank = 0, ranks = 1;
  std::size_t frame_bytes = 0;     ///< most that send() takes
  std::size_t reserved_bytes = 0;  ///< most that reserve() gives
  bool shares_memory = false;      ///< all ranks are on one machine and put() is a copy
  bool owner_must_poll = true;     ///< one-sided operations wait for the target's progress()
  bool can_sleep = false;          ///< wait() blocks until something arrives
  bool sees_stalls = false;        ///< idle() may name a stall: threads that wait call it
  bool seeded = false;             ///< a seed decides what arrives next, when all ranks wait
  std::int64_t patience_ns = 0;    ///< with what is still to be sent when it ends
  std::int64_t lost_after_ns = 0;  ///< silence of a rank that is lost then; 0: never
};

enum class OneSidedKind : std::uint8_t { put, get, fetch_add, compare_swap };

/// How long a thread that has found nothing to do will wait.
enum class Patience : std::uint8_t {
  none,     ///< it polls
  some,     ///< until a time
  endless,  ///< until something arrives
};

/// The wait of a thread that has found nothing to do: the transport knows it from its first idle()
/// to resumed(). The other members are the transport's.
struct IdleWait {
  const char* what = "";  ///< behind "waits for"
  Patience patience = Patience::endless;
  bool known = false;
  std::uint64_t since = 0;              ///< its thread has found nothing to do in this activity()
  std::optional<std::string> end = {};  ///< what ends it
};

/// A one-sided operation on [offset, offset + bytes) of a window. Atomic ones are on 8 aligned
/// bytes.
struct OneSided {
  OneSidedKind kind = OneSidedKind::put;
  Rank target = 0;
  WindowId window = 0;
  std::uint64_t offset = 0;
  std::byte* local = nullptr;  ///< put: from here; get: to here; until it is completed
  std::size_t bytes = 0;
  std::int64_t operand = 0;  ///< added, or what to put in place of `expected`
  std::int64_t expected = 0;
  void* token = nullptr;  ///< for TransportSink::completed()
};

/// Some bytes of a window, and their place here: put from there, or got to there.
struct WindowRun {
  std::uint64_t offset = 0;
  std::byte* local = nullptr;
  std::size_t bytes = 0;
};

/// Who is told. Called inside Transport::progress() only.
class TransportSink {
 public:
  /// A frame, in the order in which `from` sent its frames to this rank. The bytes are gone when it
  /// returns.
  virtual void arrived(Rank from, std::span<const std::byte> frame) noexcept = 0;
  /// An operation is over: its bytes are in the target, or in `local`. `old` is the value that an
  /// atomic operation found.
  virtual void completed(void* token, std::int64_t old, Outcome outcome) noexcept = 0;
  /// A rank is gone, or answers no more. Once for each; nothing of it comes afterwards, and what
  /// was under way to it has been completed() as failed.
  virtual void lost(Rank rank, const std::string& why) noexcept = 0;

 protected:
  ~TransportSink() = default;
};

/// A network as one rank sees it. Its destructor leaves: it waits a bounded time for what has been
/// sent to go out.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual const TransportInfo& info() const noexcept = 0;

  /// Sends a frame, which it has copied when it returns. False: there is no room now; try again
  /// after progress(). Never to oneself.
  virtual bool send(Rank to, Parts parts) = 0;
  /// Memory of which the last part of a frame can be sent without a copy, on 64 bytes; null when
  /// there is none. Any thread.
  virtual std::byte* reserve(std::size_t bytes) noexcept = 0;
  /// Takes it back. Any thread.
  virtual void unreserve(std::byte* memory) noexcept = 0;
  /// The same as send(), with the last part at the begin of reserved memory, which is the
  /// transport's again. The others have 64 bytes at most. False: the memory is still the caller's.
  virtual bool send_reserved(Rank to, Parts parts) = 0;
  /// Starts an operation. False: there is no room now. Operations are not ordered with each other
  /// nor with frames; who needs order waits for completed(). Never to oneself.
  virtual bool start(const OneSided& operation) = 0;
  /// Lets the others at memory, under a number that this rank has not used before.
  virtual void expose(WindowId window, void* memory, std::size_t bytes) = 0;
  /// Ends that: operations on it that are under way fail or end. Returns whether some may be in it
  /// still.
  virtual bool withdraw(WindowId window) noexcept = 0;
  /// Waits for these, but not longer than a second: a process may be stopped in the midst of one.
  /// Any thread, beside the other calls.
  virtual void settle(WindowId window) noexcept = 0;
  /// Returns addresses for memory that others reach fastest when it is exposed, null when there
  /// are none. commit() brings the memory.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Brings the memory, zeroed, behind what allocate() returned for so many bytes. TIMEOUT: not all
  /// of it until the deadline; OUT_OF_MEMORY: there is none. Then release() it. Any thread, beside
  /// the other calls.
  virtual weir_status commit(void* memory, std::size_t bytes,
                             std::int64_t deadline_ns) noexcept = 0;
  /// Gives it back; what an operation is still in is not used again. False: it is not from here.
  virtual bool release(void* memory) noexcept = 0;
  /// Puts or gets some runs, where that takes nobody else's help. False: start() must do it, also
  /// what has been done. Any thread, beside the other calls.
  virtual bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                         std::span<const WindowRun> runs) noexcept = 0;
  // Reading what others have allocated, without a copy. Any thread, beside the other calls.
  /// Says where memory from allocate() is for the others, if they can read it.
  virtual std::optional<std::uint64_t> place_of(const void* memory) const noexcept = 0;
  /// Returns what another rank, or this one, may have there; null when that is nowhere.
  virtual const std::byte* memory_of(Rank owner, std::uint64_t place,
                                     std::uint64_t bytes) const noexcept = 0;

  /// Moves everything on that can move. Returns whether something happened.
  virtual bool progress(TransportSink& sink) noexcept = 0;
  /// Whether progress() has something to do for operations that nothing from outside will ask for.
  virtual bool unfinished() const noexcept = 0;
  /// Gives up on a rank as if it had been lost. The next progress() says so.
  virtual void drop(Rank rank, const std::string& why) noexcept = 0;
  /// Leaves before the transport ends, because the process does: the others hear that this rank has
  /// not closed the fabric. All of them are gone for this rank then, as the next progress() says.
  virtual void leave_at_exit() noexcept = 0;

  // Ranks that all wait for each other, where the transport sees all of them.
  /// Changes whenever there may be something new for a thread of this rank.
  virtual std::uint64_t activity() const noexcept { return 0; }
  /// progress() has changed something that other threads of this rank may wait for.
  virtual void note_activity() noexcept {}
  /// The calling thread of the program uses this rank: until it ends, nothing is a stall while it
  /// does not wait. Any thread.
  virtual void note_thread() noexcept {}
  /// The thread has found nothing to do since activity() was `since`. Returns what ends its wait:
  /// which rank waits for what, when all ranks wait for ever; "", when it polls and all others
  /// wait. Nothing: it is to wait, and to say so again when activity() has changed.
  virtual std::optional<std::string> idle(IdleWait&, std::uint64_t /*since*/) {
    return std::nullopt;
  }
  /// Its thread waits no more. Any thread.
  virtual void resumed(IdleWait&) noexcept {}

  // Sleeping. Any thread, beside the other calls.
  /// Changes when a wait() that has been given an earlier value is to end.
  virtual std::uint32_t bell() const noexcept = 0;
  /// Sleeps until the bell has another value than this, there may be something for progress(), or
  /// the deadline of sys::now_ns(). May return early.
  virtual void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept = 0;
  /// Rings the bell.
  virtual void wake() noexcept = 0;
};

}  // namespace weir::rt
