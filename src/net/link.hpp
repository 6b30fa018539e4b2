// The driver interface of a network: carries packets between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "net/transport.hpp"

namespace weir::rt {

/// Maximum size of a packet: 64 KiB and headers.
inline constexpr std::size_t kLinkPacketBytes = (64u << 10) + 1024;
/// Maximum bytes that are prepended to the contents of reserved memory.
inline constexpr std::size_t kReservedFront = 128;
/// Maximum packets of one rank per receive().
inline constexpr unsigned kLinkBurst = 16;

/// Constant properties of a link.
struct LinkInfo {
  std::string name;  ///< as in TransportInfo
  Rank rank = 0, ranks = 1;
  std::size_t packet_bytes = 0;    ///< maximum for send()
  std::size_t reserved_bytes = 0;  ///< maximum for reserve()
  bool shares_memory = false;      ///< direct() works
  bool can_sleep = false;          ///< wait() ends when a packet arrives
  bool sees_stalls = false;        ///< idle() may report a stall: waiting threads call it
  bool seeded = false;             ///< a seed decides what arrives next, when all ranks wait
};

/// Receives packets.
class PacketSink {
 public:
  /// `bytes` is valid during the call only.
  virtual void packet(Rank from, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~PacketSink() = default;
};

/// Carries packets, in order between any two ranks. One thread at a time unless stated otherwise.
/// No function throws, because links may be in separate libraries.
class Link {
 public:
  virtual ~Link() = default;

  virtual const LinkInfo& info() const noexcept = 0;
  /// Sends a packet; the bytes are copied before it returns. False: no room now.
  virtual bool send(Rank to, Parts parts) noexcept = 0;
  /// Returns memory, aligned to 64 bytes, from which a packet can be sent without a copy; null if
  /// there is none. Any thread.
  virtual std::byte* reserve(std::size_t /*bytes*/) noexcept { return nullptr; }
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
  virtual void cut(Rank, bool /*left*/) noexcept {}

  /// Does a part of an operation without the target's help and advances `cursor` towards
  /// `operation.bytes`. Returns nothing if the link cannot; packets must then do all of it.
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
