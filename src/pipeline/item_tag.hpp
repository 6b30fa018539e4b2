// The epoch and timestamp of an item.
#pragma once

#include <cstdint>

namespace weir::rt {

struct ItemTag {
  static constexpr std::int64_t kNotSampled = INT64_MIN;

  std::uint64_t epoch = 0;
  /// When a source or feed put the source item of this item; sampled, while latencies are measured.
  std::int64_t timestamp_ns = kNotSampled;

  bool sampled() const noexcept { return timestamp_ns != kNotSampled; }
  friend bool operator==(const ItemTag&, const ItemTag&) = default;
};

}  // namespace weir::rt
