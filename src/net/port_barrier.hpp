// The barrier of all ranks that live.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "net/port_messages.hpp"

namespace weir::rt {

/// All tell all how many barriers they have reached, so that none depends on a particular rank.
/// One thread of each rank.
class PortBarrier final : private Listener {
 public:
  PortBarrier(Rank rank, const LostRanks& lost_ranks, PortMessages& messages,
              PortProgress& progress, Rank ranks);

  /// As in Port. After a timeout the next call waits for the same barrier.
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
  std::vector<sys::Atomic<std::uint64_t>> theirs_;  ///< that each rank has reached
  std::uint64_t own_ = 0;                           ///< that this rank has reached
  bool open_ = false;                               ///< the last one has not been seen to be over
  bool announced_ = false;                          ///< all have been told of it
};

}  // namespace weir::rt
