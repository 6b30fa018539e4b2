// Items for ranks that compute unequally fast.
//
//   PROGRAM ... [--items 300] [--item-us 1000] [--slow-by 1]
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/program.hpp"

namespace weir_bench {

/// Items that are alike. Rank i computes i + 1 times as fast as rank 0; the last one becomes slower
/// by --slow-by when half of the work is done, if all ranks were always busy.
class RankItems {
 public:
  RankItems(const Arguments& arguments, unsigned rank, unsigned ranks)
      : count_(static_cast<std::uint64_t>(arguments.number("--items", 300))),
        item_s_(1e-6 * static_cast<double>(arguments.number("--item-us", 1000))),
        speed_(rank + 1),
        last_speed_(ranks),
        slow_by_(static_cast<double>(arguments.number("--slow-by", 1))),
        own_slow_by_(rank + 1 == ranks ? slow_by_ : 1) {
    for (unsigned each = 0; each < ranks; ++each) speeds_ += each + 1;
  }

  std::uint64_t count() const { return count_; }
  /// Seconds that all items take at least.
  double ideal_s() const {
    return half_s() + work_s() / 2 / (speeds_ - last_speed_ + last_speed_ / slow_by_);
  }

  /// Keeps a core busy for as long as so many items take on this rank, which begins when this is
  /// called first. From one thread.
  void compute(std::uint64_t items) {
    const double start = now();
    if (slow_at_ == 0) slow_at_ = start + half_s();
    double end = start + static_cast<double>(items) * item_s_ / speed_;
    const double slow_from = std::max(start, slow_at_);
    if (end > slow_from) end = slow_from + (end - slow_from) * own_slow_by_;
    while (now() < end) {
    }
  }

 private:
  double work_s() const { return static_cast<double>(count_) * item_s_; }
  double half_s() const { return work_s() / 2 / speeds_; }

  std::uint64_t count_;
  double item_s_, speed_, last_speed_, slow_by_, own_slow_by_, speeds_ = 0;
  double slow_at_ = 0;
};

}  // namespace weir_bench
