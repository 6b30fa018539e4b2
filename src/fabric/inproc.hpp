// All ranks in one process: for tests and for debugging communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fabric/link.hpp"

namespace weir::rt {

/// Carries packets between ranks of one process, which share nothing else.
///
/// With a seed, each receive draws one of the arrived packets; packets of one sender stay in order.
class InprocHub {
 public:
  InprocHub(Rank ranks, std::uint64_t seed);

  /// Returns the link of a rank; at most one per rank.
  std::unique_ptr<Link> link(Rank rank);

  /// Makes the seed alone determine the order of all packets, however the threads of the ranks are
  /// scheduled. Call it before link().
  ///
  /// A packet arrives only when all ranks wait. The seed then draws one of all packets in flight,
  /// or ends the wait of a rank that polls (Patience::none), so that the choices depend only on the
  /// program and on earlier arrivals. This holds if each rank calls the fabric from one thread, and
  /// if ranks depend neither on the time nor on each other except through packets. Of a rank with
  /// several threads, one waiting thread is enough, because the others may wait elsewhere. If a
  /// rank makes no call for a minute while others wait, a warning is logged and packets arrive in
  /// the order of sending from then on. The first packet of each pair of ranks is not held, because
  /// the ranks join with it.
  void decide_by_seed() noexcept;

  /// Makes waits fail when all ranks wait for each other forever: all threads wait that have used
  /// the port and have not ended, each has found nothing to do since any other thread of its rank
  /// last did something, and no packet is in flight. A thread that has not used the port yet is not
  /// counted, though it could end a wait.
  void report_stalls() noexcept;

 private:
  class InprocLink;
  struct Box;
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace weir::rt
