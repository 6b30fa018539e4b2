// Items in the memory of a ring.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace weir::rt {

/// The epoch and timestamp of an item.
struct ItemTag {
  static constexpr std::int64_t kNotSampled = INT64_MIN;

  std::uint64_t epoch = 0;
  /// When a source or feed put the source item of this item; sampled, while latencies are measured.
  std::int64_t timestamp_ns = kNotSampled;

  bool sampled() const noexcept { return timestamp_ns != kNotSampled; }
  friend bool operator==(const ItemTag&, const ItemTag&) = default;
};

/// Items to be put, all with one tag.
struct ItemsToPut {
  const unsigned char* items;
  ItemTag tag;
};
/// Destination of taken items; `items` null: they are discarded.
struct ItemsToTake {
  unsigned char* items;
  ItemTag* tags;
};

/// Slots of items, each with its tag.
class ItemCells {
 public:
  ItemCells(std::size_t slots, std::size_t item_bytes)
      : item_bytes_(item_bytes),
        items_(std::make_unique<unsigned char[]>(slots * item_bytes)),
        tags_(std::make_unique<ItemTag[]>(slots)) {}

  void write(std::size_t slot, const ItemsToPut& from, std::size_t first,
             std::size_t count) noexcept {
    std::memcpy(&items_[slot * item_bytes_], from.items + first * item_bytes_, count * item_bytes_);
    std::fill_n(&tags_[slot], count, from.tag);
  }
  void read(std::size_t slot, const ItemsToTake& to, std::size_t first,
            std::size_t count) const noexcept {
    if (to.items != nullptr) {
      std::memcpy(to.items + first * item_bytes_, &items_[slot * item_bytes_], count * item_bytes_);
    }
    std::copy_n(&tags_[slot], count, to.tags + first);
  }

 private:
  std::size_t item_bytes_;
  std::unique_ptr<unsigned char[]> items_;
  std::unique_ptr<ItemTag[]> tags_;
};

}  // namespace weir::rt
