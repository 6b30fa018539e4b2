// Decides whether searching for repeated addresses pays.
#pragma once

#include <algorithm>
#include <cstddef>

namespace weir::rt {

/// Decides for each block of one destination whether it combines items. A lookup costs several
/// times as much as appending an item, so that combining must save items. After a combining block
/// with too few repeats the policy pauses combining for a number of blocks, which doubles each
/// time.
class CombinePolicy {
 public:
  bool combines() const noexcept { return plain_left_ == 0; }

  /// Records a sent block: `items` were put into it, of which `repeats` were combined.
  void sent(std::size_t items, std::size_t repeats) noexcept {
    if (!combines()) {
      --plain_left_;
    } else if (repeats * kWorthOneIn >= items) {
      pause_ = kFirstPause;
    } else {
      plain_left_ = pause_;
      pause_ = std::min(2 * pause_, kLongestPause);
    }
  }

 private:
  static constexpr std::size_t kWorthOneIn = 4;
  static constexpr std::size_t kFirstPause = 16, kLongestPause = 256;

  std::size_t plain_left_ = 0;
  std::size_t pause_ = kFirstPause;
};

}  // namespace weir::rt
