// All ranks in one process: for tests, and for finding bugs of communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/link.hpp"

namespace weir::rt {

/// Carries packets between the ranks of one process, which see of each other no more than that.
///
/// With a seed, a draw decides whose packet a rank receives next; packets of one sender stay in
/// order.
class InprocHub {
 public:
  InprocHub(Rank ranks, std::uint64_t seed);

  /// The link of a rank. Each once.
  std::unique_ptr<Link> link(Rank rank);

  /// From now on ranks that all wait for each other for ever hear of it. For programs whose ranks
  /// call from one thread each: another one might still do what is waited for.
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
