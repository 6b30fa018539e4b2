// Which ranks take part in a fabric, and how the loss of one is found.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "fabric/packet_streams.hpp"

namespace weir::rt {

/// What a rank announces when it joins.
struct Membership {
  std::string build;             ///< must be equal on all ranks
  bool sends_heartbeats = true;  ///< progress() is called often in all circumstances
  /// Maximum silence of a rank that sends heartbeats; 0: unlimited.
  std::int64_t lost_after_ns = 10'000'000'000;
  std::int64_t join_within_ns = 60'000'000'000;
  bool sends_checksums =
      false;  ///< this rank adds checksums to its packets, which receivers verify
};

/// Returns a text that identifies the build of the program and of weir.
std::string build_id();

/// Joins the ranks, and finds those that are lost: they have left, their process has died, or they
/// are silent. A rank that sends nothing else sends heartbeats, eight within the shortest timeout
/// of any rank. By the holder of the progress lock, except next_check_ns().
class Liveness {
 public:
  /// Delivers arrived packets. Returns whether there were any.
  using Receive = std::function<bool()>;

  Liveness(Link& link, PacketStreams& packets, Membership membership);

  /// Sends this rank's hello, and waits until all ranks have sent theirs. Throws Error.
  void join(const Receive& receive);
  /// Processes an arrived hello. Throws Error.
  void take_hello(Rank from, std::span<const std::byte> hello);
  /// Throws Error if a packet of another kind arrives from a rank that has not joined.
  void check_joined(Rank rank) const;

  bool is_lost(Rank rank) const noexcept { return peers_[rank].lost; }
  /// Returns whether the rank has announced that it leaves.
  bool has_left(Rank rank) const noexcept { return peers_[rank].has_left; }
  /// Returns why a rank is lost: "rank 1 has left the fabric".
  const std::string& why_lost(Rank rank) const noexcept { return peers_[rank].why; }
  /// Nothing is sent to the rank or received from it any more. No effect if it is lost already.
  void mark_lost(Rank rank, std::string why) noexcept;
  void mark_left(Rank rank, const char* how) noexcept;
  bool has_unreported() const noexcept { return reported_ < lost_.size(); }
  /// Returns a lost rank that was not returned before, in the order of the losses.
  std::optional<Rank> take_lost() noexcept;

  /// Sends heartbeats and finds lost ranks, if it is time to. Receives first everything from a rank
  /// whose process has died.
  void check(const Receive& receive) noexcept;
  /// Returns when check() has something to do. Any thread.
  std::int64_t next_check_ns() const noexcept {
    return next_check_ns_.load(std::memory_order_relaxed);
  }
  void end_checks() noexcept { next_check_ns_.store(sys::kNever); }

 private:
  struct Peer {
    std::string build;
    bool joined = false, sends_heartbeats = false;
    bool lost = false, has_left = false;
    std::string why;
  };

  bool send_hellos(std::vector<bool>& sent);
  void check_joining(Rank rank, const Receive& receive, std::int64_t deadline_ns);
  void compare_builds() const;
  void check_peer(Rank rank, const Receive& receive) noexcept;

  Link& link_;
  PacketStreams& packets_;
  const Membership membership_;
  std::vector<Peer> peers_;   ///< by rank
  std::vector<Rank> lost_;    ///< capacity for all
  std::size_t reported_ = 0;  ///< how many of lost_ have been taken
  std::int64_t interval_ns_;  ///< between heartbeats
  sys::Atomic<std::int64_t> next_check_ns_{0};
};

}  // namespace weir::rt
