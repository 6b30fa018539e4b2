#include "pipeline/worker_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

constexpr std::align_val_t kItemLine{64};

}  // namespace

void FreeItems::operator()(unsigned char* memory) const noexcept {
  ::operator delete(memory, kItemLine);
}

ItemMemory allocate_items(std::size_t bytes) {
  return ItemMemory(static_cast<unsigned char*>(::operator new(bytes, kItemLine)));
}

WorkerBuffer::WorkerBuffer(std::size_t bytes_of_item, std::size_t items, std::size_t limit,
                           const std::string& stage)
    : weir_outlet{nullptr, nullptr, bytes_of_item},
      memory_(allocate_items(items * bytes_of_item)),
      first_(memory_.get()),
      capacity_(items * bytes_of_item),
      limit_(std::max(bytes_of_item > 0 ? limit / bytes_of_item * bytes_of_item : 0, capacity_)),
      stage_(stage) {
  emptied();
}

void WorkerBuffer::put(const unsigned char* items, std::size_t count) {
  const std::size_t bytes = count * item_bytes;
  if (static_cast<std::size_t>(end - next) < bytes) grow(count);
  if (bytes > 0) std::memcpy(next, items, bytes);
  next += bytes;
}

std::size_t WorkerBuffer::count(const ItemTag& tag) {
  const auto there = static_cast<std::size_t>(next - first_);
  if (there == size_ * item_bytes) return 0;
  const std::size_t put = there / item_bytes - size_;
  if (!runs_.empty() && runs_.back().tag == tag) {
    runs_.back().items += put;
  } else {
    runs_.push_back({tag, put});
  }
  size_ += put;
  return put;
}

WorkerBuffer::Batch WorkerBuffer::take_oldest(std::size_t most) noexcept {
  Run& run = runs_.front();
  const Batch batch{first_, std::min(most, run.items), run.tag};
  first_ += batch.count * item_bytes;
  size_ -= batch.count;
  run.items -= batch.count;
  if (run.items == 0) runs_.erase(runs_.begin());
  if (size_ == 0) emptied();
  return batch;
}

WorkerBuffer::Batch WorkerBuffer::take_newest(std::size_t most) noexcept {
  Run& run = runs_.back();
  const std::size_t count = std::min(most, run.items);
  next -= count * item_bytes;
  size_ -= count;
  const Batch batch{next, count, run.tag};
  run.items -= count;
  if (run.items == 0) runs_.pop_back();
  if (size_ == 0) emptied();
  return batch;
}

void WorkerBuffer::set_end() noexcept {
  end = std::min(memory_.get() + capacity_, first_ + limit_);
}

void WorkerBuffer::emptied() noexcept {
  first_ = next = memory_.get();
  set_end();
}

void WorkerBuffer::grow(std::size_t items) {
  const auto used = static_cast<std::size_t>(next - first_);
  const std::size_t wanted = used + items * item_bytes;
  if (wanted > limit_) {
    fail(WEIR_STATUS_OUT_OF_MEMORY,
         "a worker keeps {} items, {}, for stage '{}': has the loop it is in an exit? Else raise "
         "keep_bytes",
         used / item_bytes, format_size(used), stage_);
  }
  if (static_cast<std::size_t>(first_ - memory_.get()) + wanted > capacity_)
    make_room(used, wanted);
  set_end();
}

/// Moves the items to the front of the memory if that frees half of it, else to a larger
/// allocation.
void WorkerBuffer::make_room(std::size_t used, std::size_t wanted) {
  if (used <= capacity_ / 2 && wanted <= capacity_) {
    std::memmove(memory_.get(), first_, used);
  } else {
    // Up to twice the limit: after removals from the front, half is free to move to.
    const std::size_t bytes = std::max(2 * std::min(capacity_, limit_), wanted);
    ItemMemory larger = allocate_items(bytes);
    std::memcpy(larger.get(), first_, used);
    memory_ = std::move(larger);
    capacity_ = bytes;
  }
  first_ = memory_.get();
  next = first_ + used;
}

}  // namespace weir::rt
