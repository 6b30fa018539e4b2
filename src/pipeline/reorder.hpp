// A reorder buffer: workers finish batches in any order, and the buffer sends them in the order in
// which they were taken.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/threads.hpp"
#include "pipeline/worker_buffer.hpp"

namespace weir::rt {

/// Destinations of the items that a stage puts.
struct Outputs {
  std::vector<WorkerBuffer*> buffers;  ///< in the order of the stage's outputs
  std::vector<weir_outlet*> outlets;   ///< the same

  void add(WorkerBuffer& buffer) {
    buffers.push_back(&buffer);
    outlets.push_back(&buffer);
  }
  bool empty() const noexcept {
    for (const WorkerBuffer* buffer : buffers) {
      if (!buffer->empty()) return false;
    }
    return true;
  }
};

/// A window of batches in flight, each with its output. One thread at a time takes a batch, one at
/// a time sends completed batches in order; neither waits for the other.
class Reorder {
 public:
  struct Block {
    sys::Atomic<bool> ready{false};
    std::vector<std::unique_ptr<WorkerBuffer>> memory;
    Outputs outputs;
    // For a batch in flight on a device.
    std::uint64_t first = 0;  ///< number of its first item
    std::size_t count = 0;
    ItemTag tag;  ///< sampled if any item is sampled
    std::int64_t launched_ns = 0, completed_ns = 0;
    bool collected = false;
  };
  explicit Reorder(std::size_t window) : blocks_(window) {}

  std::vector<Block>& blocks() noexcept { return blocks_; }

  /// Whether there is room for another batch.
  bool open() const noexcept {
    return taken_.load(std::memory_order_seq_cst) <
           sent_.load(std::memory_order_seq_cst) + blocks_.size();
  }
  /// Calls take(block), which returns whether it took a batch. Returns the block of the batch; null
  /// if take() took none, another thread is taking, or the window is full.
  template <class Take>
  Block* take(Take&& take) noexcept {
    if (taking_.exchange(true, std::memory_order_seq_cst)) return nullptr;
    Block* block = nullptr;
    const std::uint64_t number = taken_.load(std::memory_order_relaxed);
    Block& next = blocks_[number % blocks_.size()];
    if (open() && take(next)) {
      block = &next;
      taken_.store(number + 1, std::memory_order_seq_cst);
    }
    taking_.store(false, std::memory_order_seq_cst);
    return block;
  }

  /// Whether the oldest batch is done.
  bool ready() const noexcept {
    const std::uint64_t number = sent_.load(std::memory_order_seq_cst);
    return blocks_[number % blocks_.size()].ready.load(std::memory_order_seq_cst);
  }
  /// Calls send(block) for the completed batches, oldest first; send() returns whether it sent all
  /// items. Returns whether send() was called.
  template <class Send>
  bool send(Send&& send) noexcept {
    if (!ready() || sending_.exchange(true, std::memory_order_seq_cst)) return false;
    bool tried = false;
    while (ready()) {
      const std::uint64_t number = sent_.load(std::memory_order_relaxed);
      assert(number < taken_.load(std::memory_order_relaxed));  // each batch is sent once
      Block& block = blocks_[number % blocks_.size()];
      tried = true;
      if (!send(block)) break;
      block.ready.store(false, std::memory_order_relaxed);
      sent_.store(number + 1, std::memory_order_seq_cst);
    }
    sending_.store(false, std::memory_order_seq_cst);
    return tried;
  }
  /// Number of batches taken and not complete; approximate while a thread takes or sends.
  std::size_t under_way() const noexcept {
    std::size_t found = 0;
    const std::uint64_t taken = taken_.load(std::memory_order_seq_cst);
    for (std::uint64_t at = sent_.load(std::memory_order_seq_cst); at < taken; ++at) {
      if (!blocks_[at % blocks_.size()].ready.load(std::memory_order_seq_cst)) ++found;
    }
    return found;
  }
  /// Whether no batch is in flight.
  bool empty() const noexcept {
    const std::uint64_t sent = sent_.load(std::memory_order_acquire);
    return taken_.load(std::memory_order_acquire) == sent;
  }

 private:
  std::vector<Block> blocks_;
  sys::Atomic<bool> taking_{false}, sending_{false};
  sys::Atomic<std::uint64_t> taken_{0}, sent_{0};
};

}  // namespace weir::rt
