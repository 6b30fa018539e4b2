// Whether it pays to look for repeated lines.
#pragma once

#include <algorithm>
#include <cstddef>

namespace weir::rt {

/// Decides for each block of one destination whether it is to combine. Looking costs several times
/// what appending an item costs, so that it must save items: a block that combines tells how many
/// were repeats, and after one with too few come blocks that do not look, more each time.
class CombinePolicy {
 public:
  bool combines() const noexcept { return plain_left_ == 0; }

  /// A block is sent: `items` were put into it, of which `repeats` were combined.
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
