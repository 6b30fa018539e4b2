// Items that one worker keeps for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <weir/pipeline.h>

#include "pipeline/item_tag.hpp"

namespace weir::rt {

/// Items of one tunnel, in a row; new ones are put at its end, as an outlet of the interface.
///
/// Items come in runs of the same tag. Those that were put since the last count() are not known
/// yet.
class WorkerBuffer : public weir_outlet {
 public:
  /// `limit` bytes of items at most. Throws std::bad_alloc.
  WorkerBuffer(std::size_t bytes_of_item, std::size_t items, std::size_t limit,
               const std::string& stage);
  WorkerBuffer(const WorkerBuffer&) = delete;
  WorkerBuffer& operator=(const WorkerBuffer&) = delete;
  ~WorkerBuffer();

  /// Puts items that are elsewhere. Throws as grow() does, having put nothing.
  void put(const unsigned char* items, std::size_t count);
  /// Takes note of what was put, as items with a tag. Returns their number. Throws std::bad_alloc.
  std::size_t count(const ItemTag& tag);
  /// Forgets it. Returns whether there was something.
  bool forget_uncounted() noexcept {
    unsigned char* const counted = first_ + size_ * item_bytes;
    return std::exchange(next, counted) != counted;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Some items of one tag, up to `most`, that are not in the stash any more but stay where they
  /// are until something is put.
  struct Batch {
    const unsigned char* items;
    std::size_t count;
    ItemTag tag;
  };
  Batch take_oldest(std::size_t most) noexcept;
  Batch take_newest(std::size_t most) noexcept;
  /// The oldest items of one tag, which stay, and then taking some of them.
  Batch oldest() const noexcept { return {first_, runs_[0].items, runs_[0].tag}; }
  void drop_oldest(std::size_t items) noexcept { take_oldest(items); }

  /// Makes room for so many items more. Throws Error{out_of_memory} at the limit, std::bad_alloc.
  void grow(std::size_t items = 1);

 private:
  struct Run {
    ItemTag tag;
    std::size_t items;
  };
  std::size_t whole_items(std::size_t bytes) const noexcept;
  void set_end() noexcept;
  void emptied() noexcept;
  void make_room(std::size_t used, std::size_t wanted);

  unsigned char* memory_;
  unsigned char* first_;
  std::size_t capacity_;
  std::size_t size_ = 0;  ///< counted items
  const std::size_t limit_;
  const std::string& stage_;
  std::vector<Run> runs_;  ///< oldest first
};

}  // namespace weir::rt
