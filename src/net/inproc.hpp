// All ranks in one process: for tests, and for finding bugs of communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/link.hpp"

namespace weir::rt {

/// Carries packets between the ranks of one process, which see of each other no more than that.
///
/// With a seed, a draw decides whose packet a rank receives next, of those that are there; packets
/// of one sender stay in order.
class InprocHub {
 public:
  InprocHub(Rank ranks, std::uint64_t seed);

  /// The link of a rank. Each once.
  std::unique_ptr<Link> link(Rank rank);

  /// Makes the order of all packets one that the seed alone decides, however the threads of the
  /// ranks run. Before the links are made.
  ///
  /// A packet arrives only when all ranks wait; then the seed draws one of all that are under way,
  /// or ends the wait of a rank that only looks (Patience::none). So what there is to draw from
  /// follows from the program and what has arrived before. That holds for ranks whose calls are all
  /// of one thread, and which know nothing of the time nor of each other but packets. Of a rank
  /// with several threads one that waits is enough, as the others may wait elsewhere. A rank that
  /// is in no call for a minute while others wait ends it all, with a warning: then packets arrive
  /// as they come. The first packet of each pair of ranks is not held: they meet by it.
  void decide_by_seed() noexcept;

  /// From now on ranks that all wait for each other for ever hear of it: when all their threads
  /// wait that have used the port and have not ended, each has found nothing to do since any other
  /// one of its rank has done something, and no packet is under way. A thread that has not used the
  /// port yet might still do what is waited for.
  void report_stalls() noexcept;

  /// From now on nothing of a rank arrives anywhere, as if its process had been stopped.
  void silence(Rank rank) noexcept;
  /// Changes a byte of the next packet that a rank sends.
  void corrupt_next_of(Rank rank, std::size_t byte) noexcept;

 private:
  class InprocLink;
  struct Box;
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace weir::rt
