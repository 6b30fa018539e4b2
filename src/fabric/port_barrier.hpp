// The barrier of all live ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "fabric/port_messages.hpp"

namespace weir::rt {

/// Each rank sends to all others how many barriers it has reached, so that the barrier does not
/// depend on a particular rank. One thread per rank.
class PortBarrier final : private Listener {
 public:
  PortBarrier(Rank rank, const LostRanks& lost_ranks, PortMessages& messages,
              PortProgress& progress, Rank ranks);

  /// See Port. After a timeout the next call waits for the same barrier.
  Outcome wait(std::int64_t timeout_ns);

 private:
  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank, const std::string&) noexcept override {}
  void announce();
  bool is_complete(Rank& late) const noexcept;

  const Rank rank_;
  const LostRanks& lost_ranks_;
  PortMessages& messages_;
  PortProgress& progress_;
  std::vector<sys::Atomic<std::uint64_t>> theirs_;  ///< by rank: number of barriers reached
  /// Number of barriers that this rank has reached.
  std::uint64_t own_ = 0;
  /// The last barrier is not known to be complete.
  bool open_ = false;
  bool announced_ = false;  ///< all ranks have been notified of own_
};

}  // namespace weir::rt
