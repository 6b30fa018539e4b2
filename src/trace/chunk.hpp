// The buffer into which one thread records.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/threads.hpp"

namespace weir::rt::trace {

/// Items written by one thread, read by any.
template <class Item, std::uint32_t kItems>
class Chunk {
 public:
  /// Writer: whether there is room for another item.
  bool has_room() const noexcept { return written_.load(std::memory_order_relaxed) < kItems; }
  /// Writer: adds an item. There is room.
  void append(const Item& item) noexcept {
    const std::uint32_t at = written_.load(std::memory_order_relaxed);
    items_[at] = item;
    written_.store(at + 1, std::memory_order_release);
  }
  /// Any thread: the items so far.
  std::span<const Item> items() const noexcept {
    return {items_.data(), written_.load(std::memory_order_acquire)};
  }

 private:
  sys::Atomic<std::uint32_t> written_{0};  ///< publishes them
  std::array<Item, kItems> items_;
};

}  // namespace weir::rt::trace
