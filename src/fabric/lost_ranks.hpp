// The lost ranks of a fabric, with reasons.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "fabric/link.hpp"

namespace weir::rt {

/// Any thread.
class LostRanks {
 public:
  explicit LostRanks(Rank ranks) : lost_(ranks), reasons_(ranks) {}

  bool is_lost(Rank rank) const noexcept { return lost_[rank].load(); }
  /// Returns why a rank is lost: "rank 1 has left the fabric"; "" while it is alive.
  std::string loss_reason(Rank rank) const;
  /// Returns the outcome of operations to a lost rank.
  Outcome outcome(Rank rank) const noexcept;
  /// Throws Error unless the rank exists and is alive. `verb` is the refused action: "send to".
  void check_alive(Rank rank, const char* verb) const;

  void mark_lost(Rank rank, const std::string& why) noexcept;

 private:
  std::vector<sys::Atomic<bool>> lost_;
  mutable sys::Mutex mutex_;
  std::vector<std::string> reasons_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
