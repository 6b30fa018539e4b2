// One-sided operations that other ranks do on the windows of this rank by packets.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "fabric/liveness.hpp"
#include "fabric/one_sided.hpp"
#include "fabric/packet_streams.hpp"

namespace weir::rt {

/// Executes the puts, gets and atomic operations that arrive as packets, and answers them as far as
/// the link has room: large gets are streamed from the window in packet-sized pieces. By the holder
/// of the progress lock.
class WindowServer {
 public:
  WindowServer(PacketStreams& packets, Liveness& liveness, WindowTable& windows)
      : packets_(packets), liveness_(liveness), windows_(windows) {}

  /// Processes a packet with an operation of another rank. Throws Error if it is too short.
  void take(Rank from, PacketKind kind, std::span<const std::byte> body);
  /// Sends answers, those to lost ranks excepted. Returns whether one was sent.
  bool push() noexcept;
  bool has_answers() const noexcept { return !answers_.empty(); }
  /// Drops the answers to a lost rank.
  void forget(Rank rank) noexcept;

 private:
  struct Answer {
    Rank to = 0;
    PacketKind kind;
    std::uint64_t token = 0;
    WindowId window = 0;
    std::uint64_t offset = 0, bytes = 0, cursor = 0;  ///< of a get
    std::int64_t old = 0;
    weir_status status = WEIR_STATUS_OK;
  };

  void take_put(Rank from, std::span<const std::byte> rest);
  void take_get(Rank from, std::span<const std::byte> rest);
  void take_change(Rank from, std::span<const std::byte> rest);
  bool push(Answer& answer) noexcept;

  PacketStreams& packets_;
  Liveness& liveness_;
  WindowTable& windows_;
  std::deque<Answer> answers_;
};

}  // namespace weir::rt
