#include "fabric/lost_ranks.hpp"

namespace weir::rt {

std::string LostRanks::loss_reason(Rank rank) const {
  sys::Lock lock(mutex_);
  return reasons_[rank];
}

Outcome LostRanks::outcome(Rank rank) const noexcept {
  sys::Lock lock(mutex_);
  return failed_outcome(WEIR_STATUS_NETWORK_ERROR, reasons_[rank].c_str());
}

void LostRanks::check_alive(Rank rank, const char* verb) const {
  if (rank >= lost_.size()) {
    fail_argument("cannot {} rank {}: the fabric has the ranks 0 to {}", verb, rank,
                  lost_.size() - 1);
  }
  if (is_lost(rank)) fail(WEIR_STATUS_NETWORK_ERROR, "cannot {}: {}", verb, loss_reason(rank));
}

void LostRanks::mark_lost(Rank rank, const std::string& why) noexcept {
  {
    sys::Lock lock(mutex_);
    reasons_[rank] = reason(why.c_str());
  }
  lost_[rank].store(true);
}

}  // namespace weir::rt
