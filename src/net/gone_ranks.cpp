#include "net/gone_ranks.hpp"

namespace weir::rt {

std::string GoneRanks::why(Rank rank) const {
  sys::Lock lock(mutex_);
  return reasons_[rank];
}

Outcome GoneRanks::outcome(Rank rank) const noexcept {
  sys::Lock lock(mutex_);
  return failed_outcome(WEIR_STATUS_NETWORK_ERROR, reasons_[rank].c_str());
}

void GoneRanks::check(Rank rank, const char* verb) const {
  if (rank >= gone_.size()) {
    fail_argument("cannot {} rank {}: the fabric has the ranks 0 to {}", verb, rank,
                  gone_.size() - 1);
  }
  if (gone(rank)) fail(WEIR_STATUS_NETWORK_ERROR, "cannot {}: {}", verb, why(rank));
}

void GoneRanks::note(Rank rank, const std::string& why) noexcept {
  {
    sys::Lock lock(mutex_);
    reasons_[rank] = reason(why.c_str());
  }
  gone_[rank].store(true);
}

}  // namespace weir::rt
