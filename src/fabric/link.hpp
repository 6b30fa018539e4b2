// The driver interface of a network: carries packets between ranks, and lets them share memory.
//
// A link moves bytes and does not interpret them. The library for an MPI is compiled against this
// header alone.
#pragma once

#include <cstddef>
#include <cstdint>
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

enum class OneSidedKind : std::uint8_t { put, get, fetch_add, compare_swap };

/// How long a thread that has nothing to do will wait.
enum class Patience : std::uint8_t {
  none,     ///< not at all: it polls
  some,     ///< until a deadline
  endless,  ///< until something arrives
};

/// The wait of a thread that has nothing to do. The link knows it from its first idle() to
/// resumed() and owns the members from `known` on.
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

/// Maximum size of a packet: 64 KiB and headers.
inline constexpr std::size_t kLinkPacketBytes = (64u << 10) + 1024;
/// Maximum bytes that are prepended to the contents of reserved memory.
inline constexpr std::size_t kReservedFront = 128;
/// Maximum packets of one rank per receive().
inline constexpr unsigned kLinkBurst = 16;

/// Constant properties of a link.
struct LinkInfo {
  std::string name;  ///< "inproc", "shm", "mpi (Open MPI 4.1.4)"
  Rank rank = 0, ranks = 1;
  std::size_t packet_bytes = 0;    ///< maximum for send()
  std::size_t reserved_bytes = 0;  ///< maximum for reserve()
  bool shares_memory = false;      ///< direct() works, at least for some ranks
  bool can_sleep = false;          ///< wait() ends when a packet arrives
  bool sees_stalls = false;        ///< idle() may report a stall: waiting threads call it
  bool seeded = false;             ///< a seed decides what arrives next, when all ranks wait
};

/// Constant properties of a link for one rank.
struct PeerInfo {
  const char* name;    ///< of what carries packets to it; lives as long as the link
  bool shares_memory;  ///< it can access memory from allocate() of this rank in place
};

/// Receives packets.
class PacketSink {
 public:
  /// `bytes` is valid during the call only.
  virtual void packet(Rank from, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~PacketSink() = default;
};

/// Carries packets, in order between any two ranks. One thread at a time, the holder of the
/// progress lock, unless stated otherwise. Only idle() throws, because links may be in separate
/// libraries.
class Link {
 public:
  virtual ~Link() = default;

  virtual const LinkInfo& info() const noexcept = 0;
  virtual PeerInfo peer_info(Rank) const noexcept {
    return {info().name.c_str(), info().shares_memory};
  }
  /// Sends a packet; the bytes are copied before it returns. False: no room now; try again after
  /// receive(). Not to the own rank.
  virtual bool send(Rank to, Parts parts) noexcept = 0;
  /// Returns memory, aligned to 64 bytes, from which a packet to a rank can be sent without a copy;
  /// null if there is none. Any thread.
  virtual std::byte* reserve(Rank /*to*/, std::size_t /*bytes*/) noexcept { return nullptr; }
  /// Returns reserved memory to the link. Any thread.
  virtual void unreserve(std::byte*) noexcept {}
  /// Sends a packet whose last part is at the begin of reserved memory, which returns to the link.
  /// The other parts have at most kReservedFront bytes. False: no room now; the caller keeps the
  /// memory.
  virtual bool send_reserved(Rank, Parts) noexcept { return false; }
  /// Delivers arrived packets, a bounded number. Returns whether there were any.
  virtual bool receive(PacketSink& sink) noexcept = 0;
  /// Returns whether all sent packets have left this process.
  virtual bool drained() noexcept { return true; }
  /// Called when a packet of a rank has arrived by another link: what this link has sent to the
  /// rank before, it has received.
  virtual void note_joined(Rank) noexcept {}
  /// Registers a function to call before the program shuts down the network beneath this link,
  /// which a program that initialised MPI itself may do.
  virtual void call_before_end(void (* /*leave*/)()) noexcept {}
  /// Stops using the network, as the destructor does. Afterwards only reserve(), unreserve(), the
  /// window functions and the sleeping functions may be called.
  virtual void leave() noexcept {}

  /// Returns why a rank's process cannot send any more, as far as the link knows; "" while it can.
  virtual std::string why_lost(Rank) noexcept { return {}; }
  /// Discards everything in flight to and from a rank, permanently. `left`: the rank has announced
  /// that it leaves.
  virtual void cut(Rank, bool /*announced*/) noexcept {}

  // Windows. A link without shared memory leaves them to packets.
  /// Does a part of an operation without the target's help and advances `cursor` towards
  /// `operation.bytes`. Returns nothing if the link cannot; packets must then do all of it.
  virtual std::optional<Outcome> direct(const OneSided&, std::uint64_t& /*cursor*/,
                                        std::int64_t& /*old*/) noexcept {
    return std::nullopt;
  }
  /// Makes memory accessible to direct() of the other ranks under a number that is new on this
  /// rank.
  virtual void expose(WindowId, void*, std::size_t) noexcept {}
  /// Ends the access: operations in flight on the window fail or complete. Returns whether some may
  /// still use it.
  virtual bool withdraw(WindowId) noexcept { return false; }
  /// Waits for these operations, at most one second: a process may be stopped in the middle of one.
  /// Any thread.
  virtual void settle(WindowId) noexcept {}
  /// Reserves addresses for memory that other ranks access fastest when it is exposed; null if
  /// there are none. commit() allocates the memory.
  virtual void* allocate(std::size_t) noexcept { return nullptr; }
  /// Allocates zeroed memory for the addresses that allocate(bytes) returned. TIMEOUT: not complete
  /// at the deadline; OUT_OF_MEMORY: the system has none. The caller must then release() it. Any
  /// thread.
  virtual weir_status commit(void*, std::size_t, std::int64_t /*deadline_ns*/) noexcept {
    return WEIR_STATUS_OUT_OF_MEMORY;
  }
  /// Frees memory from allocate(); memory that an operation still uses is not reused. False: the
  /// memory is not from allocate().
  virtual bool release(void*) noexcept { return false; }
  /// Puts or gets several runs, if that needs no help of another process. False: the caller must
  /// use operations for all runs. Any thread.
  virtual bool move_runs(OneSidedKind, Rank, WindowId, std::span<const WindowRun>) noexcept {
    return false;
  }
  /// Returns the position of memory from allocate() for the other ranks, if they can read it in
  /// place. Any thread.
  virtual std::optional<std::uint64_t> offset_of(const void*) const noexcept {
    return std::nullopt;
  }
  /// Returns the memory of another rank, or of this one, at a position; null if it is not valid.
  /// Any thread.
  virtual const std::byte* memory_of(Rank, std::uint64_t, std::uint64_t) const noexcept {
    return nullptr;
  }

  // Stall detection, if the link sees all ranks.
  /// Changes whenever a thread of this rank may have something new to do. Any thread.
  virtual std::uint64_t activity() const noexcept { return 0; }
  /// Called when progress has changed something that other threads of this rank may wait for.
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

  // Sleeping. Any thread.
  /// Changes when a wait() with an earlier value must end.
  virtual std::uint32_t bell() const noexcept = 0;
  /// Sleeps until the bell differs from `bell`, receive() may have something to do, or the deadline
  /// (sys::now_ns()) passes. May return early.
  virtual void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept = 0;
  /// Changes the bell and wakes sleeping threads.
  virtual void wake() noexcept = 0;
};

}  // namespace weir::rt
