// What an item carries beside its bytes.
#pragma once

#include <cstdint>

namespace weir::rt {

struct ItemTag {
  static constexpr std::int64_t kNotSampled = INT64_MIN;

  std::uint64_t epoch = 0;
  /// When that was put by a source or feed of which the item came: of a few, while somebody asks.
  std::int64_t timestamp_ns = kNotSampled;

  bool sampled() const noexcept { return timestamp_ns != kNotSampled; }
  friend bool operator==(const ItemTag&, const ItemTag&) = default;
};

}  // namespace weir::rt
