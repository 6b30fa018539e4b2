// Items that one worker keeps for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weir/pipeline.h>

#include "pipeline/item_cells.hpp"

namespace weir::rt {

/// Memory for items, aligned for any type.
struct FreeItems {
  void operator()(unsigned char* memory) const noexcept;
};
using ItemMemory = std::unique_ptr<unsigned char[], FreeItems>;
/// Throws std::bad_alloc.
ItemMemory allocate_items(std::size_t bytes);

/// A contiguous queue of items of one tunnel; stages append to it, as an outlet of the interface.
///
/// It stores runs of items with the same tag. Items appended since the last count() do not belong
/// to a run yet.
class WorkerBuffer : public weir_outlet {
 public:
  /// Holds at most `limit` bytes of items. Throws std::bad_alloc.
  WorkerBuffer(std::size_t bytes_of_item, std::size_t items, std::size_t limit,
               const std::string& stage);
  WorkerBuffer(const WorkerBuffer&) = delete;
  WorkerBuffer& operator=(const WorkerBuffer&) = delete;

  /// Appends copies of items. Throws as grow() does, without a change.
  void put(const unsigned char* items, std::size_t count);
  /// Makes the items appended since the last call a run with a tag. Returns their number. Throws
  /// std::bad_alloc.
  std::size_t count(const ItemTag& tag);
  /// Discards the items appended since the last count(). Returns whether there were any.
  bool forget_uncounted() noexcept {
    unsigned char* const counted = first_ + size_ * item_bytes;
    return std::exchange(next, counted) != counted;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Up to `most` items of one tag, removed from the buffer; their memory stays valid until the
  /// next append.
  struct Batch {
    const unsigned char* items;
    std::size_t count;
    ItemTag tag;
  };
  Batch take_oldest(std::size_t most) noexcept;
  Batch take_newest(std::size_t most) noexcept;
  /// Returns the oldest run without removing it; drop_oldest() then removes some of its items.
  Batch oldest() const noexcept { return {first_, runs_[0].items, runs_[0].tag}; }
  void drop_oldest(std::size_t items) noexcept { take_oldest(items); }

  /// Makes room for `items` more items. Throws Error{out_of_memory} at the limit, std::bad_alloc.
  void grow(std::size_t items = 1);

 private:
  struct Run {
    ItemTag tag;
    std::size_t items;
  };
  void set_end() noexcept;
  void emptied() noexcept;
  void make_room(std::size_t used, std::size_t wanted);

  ItemMemory memory_;
  unsigned char* first_;
  std::size_t capacity_;
  std::size_t size_ = 0;  ///< counted items
  const std::size_t limit_;
  const std::string& stage_;
  std::vector<Run> runs_;  ///< oldest first
};

}  // namespace weir::rt
