// What carries packets between ranks: the small part that each kind of network is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "net/transport.hpp"

namespace weir::rt {

/// Bytes of a packet: of 64 KiB and what is put before them.
inline constexpr std::size_t kLinkPacketBytes = (64u << 10) + 1024;
/// Bytes that are put before what is in reserved memory, at most.
inline constexpr std::size_t kReservedFront = 128;
/// Packets of one rank that a receive() takes at once.
inline constexpr unsigned kLinkBurst = 16;

/// Facts about a link that do not change.
struct LinkInfo {
  std::string name;  ///< as in TransportInfo
  Rank rank = 0, ranks = 1;
  std::size_t packet_bytes = 0;    ///< most that send() takes
  std::size_t reserved_bytes = 0;  ///< most that reserve() gives
  bool shares_memory = false;      ///< direct() works
  bool can_sleep = false;          ///< wait() ends when a packet arrives
  bool sees_stalls = false;        ///< idle() may name a stall: threads that wait call it
  bool seeded = false;             ///< a seed decides what arrives next, when all ranks wait
};

/// Takes the packets.
class PacketSink {
 public:
  /// The bytes are gone when it returns.
  virtual void packet(Rank from, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~PacketSink() = default;
};

/// Carries packets, in order between any two ranks. One thread at a time, but where it says
/// otherwise. Nothing throws: links may be in libraries of their own.
class Link {
 public:
  virtual ~Link() = default;

  virtual const LinkInfo& info() const noexcept = 0;
  /// Sends a packet, which it has copied when it returns. False: there is no room now.
  virtual bool send(Rank to, Parts parts) noexcept = 0;
  /// Memory of which a packet can be sent without a copy, on 64 bytes; null when there is none. Any
  /// thread.
  virtual std::byte* reserve(std::size_t /*bytes*/) noexcept { return nullptr; }
  /// Takes it back. Any thread.
  virtual void unreserve(std::byte*) noexcept {}
  /// Sends a packet whose last part is at the begin of reserved memory, which is the link's again.
  /// The others have kReservedFront bytes at most. False: there is no room now, and the memory is
  /// still the caller's.
  virtual bool send_reserved(Rank, Parts) noexcept { return false; }
  /// Hands over what has arrived, a bounded number of packets. Returns whether there was anything.
  virtual bool receive(PacketSink& sink) noexcept = 0;
  /// Whether all that was sent has left this process.
  virtual bool drained() noexcept { return true; }
  /// Sees that leave() is called before the program ends the network beneath this link, as one can
  /// that has started MPI itself.
  virtual void call_before_end(void (* /*leave*/)()) noexcept {}
  /// Ends all use of the network, as the destructor does. Afterwards only reserve(), unreserve(),
  /// what concerns windows, and sleeping may be called.
  virtual void leave() noexcept {}

  /// Says why a rank's process cannot send any more, "" while it can, as far as the link knows.
  virtual std::string why_lost(Rank) noexcept { return {}; }
  /// Forgets what is under way to and from a rank, for ever. `left`: it has said that it leaves.
  virtual void cut(Rank, bool /*left*/) noexcept {}

  /// Does a part of an operation without its target's help, moving `cursor` on towards
  /// `operation.bytes`. Nothing: the link cannot, and packets must do all of it.
  virtual std::optional<Outcome> direct(const OneSided&, std::uint64_t& /*cursor*/,
                                        std::int64_t& /*old*/) noexcept {
    return std::nullopt;
  }
  virtual void expose(WindowId, void*, std::size_t) noexcept {}
  // As in Transport.
  virtual bool withdraw(WindowId) noexcept { return false; }
  virtual void settle(WindowId) noexcept {}
  virtual void* allocate(std::size_t) noexcept { return nullptr; }
  virtual weir_status commit(void*, std::size_t, std::int64_t /*deadline_ns*/) noexcept {
    return WEIR_STATUS_OUT_OF_MEMORY;
  }
  virtual bool release(void*) noexcept { return false; }
  // As in Transport. Any thread.
  virtual bool move_runs(OneSidedKind, Rank, WindowId, std::span<const WindowRun>) noexcept {
    return false;
  }
  virtual std::optional<std::uint64_t> place_of(const void*) const noexcept { return std::nullopt; }
  virtual const std::byte* memory_of(Rank, std::uint64_t, std::uint64_t) const noexcept {
    return nullptr;
  }

  // As in Transport.
  virtual std::uint64_t activity() const noexcept { return 0; }
  virtual void note_activity() noexcept {}
  virtual void note_thread() noexcept {}
  virtual std::optional<std::string> idle(IdleWait&, std::uint64_t /*since*/) {
    return std::nullopt;
  }
  virtual void resumed(IdleWait&) noexcept {}

  // As in Transport. Any thread.
  virtual std::uint32_t bell() const noexcept = 0;
  virtual void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept = 0;
  virtual void wake() noexcept = 0;
};

}  // namespace weir::rt
