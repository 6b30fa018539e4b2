#include "core/action_queue.hpp"

#include <utility>

namespace weir::rt {

ActionQueue::ActionQueue() : tail_(new Chunk), head_(tail_) {}

ActionQueue::~ActionQueue() {
  for (Chunk* chunk = head_; chunk != tail_;) delete std::exchange(chunk, chunk->next);
  delete tail_;
  delete fresh_;
  delete spare_.load(std::memory_order_relaxed);
}

void ActionQueue::make_room() {
  fresh_ = spare_.exchange(nullptr, std::memory_order_acquire);
  if (fresh_ == nullptr) fresh_ = new Chunk;
}

void ActionQueue::link_fresh() noexcept {
  tail_->next = fresh_;
  tail_ = std::exchange(fresh_, nullptr);
}

void ActionQueue::recycle(Chunk* chunk) noexcept {
  delete spare_.exchange(chunk, std::memory_order_acq_rel);
}

bool ActionQueue::go_idle() noexcept {
  std::uint64_t word = popped_ << kCountShift;
  return word_.compare_exchange_strong(word, word | kIdle, std::memory_order_acq_rel,
                                       std::memory_order_acquire) ||
         word == (popped_ << kCountShift | kIdle);
}

}  // namespace weir::rt
