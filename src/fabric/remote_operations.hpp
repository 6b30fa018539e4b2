// One-sided operations of this rank on the windows of other ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/liveness.hpp"
#include "fabric/packet_streams.hpp"
#include "fabric/transport_sink.hpp"

namespace weir::rt {

/// The operations in flight: at most kMost. The link does them directly if it can; otherwise
/// packets do, which the target's progress processes. Large puts are streamed in packet-sized
/// pieces from their memory, so that neither rank buffers them. By the holder of the progress lock.
///
/// Each operation that start() takes is completed exactly once, by deliver().
class RemoteOperations {
 public:
  RemoteOperations(Link& link, PacketStreams& packets, const Liveness& liveness);

  /// Starts an operation. False: too many are in flight.
  bool start(const OneSided& operation);
  /// Continues operations as far as the link has room. Returns whether one moved.
  bool push() noexcept;
  /// Processes the answer of a target. Throws Error if it answers no operation on that rank.
  void take_reply(Rank from, PacketKind kind, std::span<const std::byte> body);
  /// Fails all operations on a lost rank.
  void fail_all_on(Rank rank, const std::string& why) noexcept;
  /// Delivers completions. Returns whether there were any.
  bool deliver(TransportSink& sink) noexcept;
  /// Returns whether operations need progress although no packet will arrive.
  bool unfinished() const noexcept { return !unsent_.empty() || !completed_.empty(); }

 private:
  static constexpr std::size_t kMost = 256;

  struct Slot {
    OneSided operation;
    std::uint64_t cursor = 0;  ///< bytes that are done (direct, get) or sent (put)
    std::uint32_t generation = 0;
    bool live = false;
    bool direct = false;  ///< the link may do it; otherwise packets do all of it
  };
  struct Completed {
    void* token;
    std::int64_t old;
    Outcome outcome;
  };

  bool push(Slot& slot, std::uint32_t index, bool& moved) noexcept;
  bool push_packets(Slot& slot, std::uint32_t index, bool& moved) noexcept;
  Slot* find(std::uint64_t token, Rank from) noexcept;
  void complete(Slot& slot, std::int64_t old, Outcome outcome) noexcept;

  Link& link_;
  PacketStreams& packets_;
  const Liveness& liveness_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> unsent_;              ///< slots with packets to send or direct work
  std::vector<Completed> completed_, delivering_;  ///< with the live slots at most kMost
};

}  // namespace weir::rt
