#include "core/action_queue.hpp"

#include <cassert>
#include <initializer_list>
#include <utility>

namespace weir::rt {

ActionQueue::ActionQueue() : tail_(new Chunk{}), head_(tail_) {}

ActionQueue::~ActionQueue() {
  tail_->next = nullptr;
  Chunk* const spare = spare_.load(std::memory_order_relaxed);
  for (Chunk* list : std::initializer_list<Chunk*>{head_, fresh_, spare}) {
    while (list != nullptr) delete std::exchange(list, list->next);
  }
}

void ActionQueue::make_room() {
  fresh_ = spare_.exchange(nullptr, std::memory_order_acquire);
  if (fresh_ == nullptr) fresh_ = new Chunk{};
}

void ActionQueue::link_fresh() noexcept {
  assert(fresh_ != nullptr);  // reserve() was called
  Chunk* const added = std::exchange(fresh_, fresh_->next);
  tail_->next = added;
  tail_ = added;
}

void ActionQueue::recycle(Chunk* chunk) noexcept {
  chunk->next = spare_.load(std::memory_order_relaxed);
  while (!spare_.compare_exchange_weak(chunk->next, chunk, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

bool ActionQueue::go_idle() noexcept {
  std::uint64_t word = popped_ << kCountShift;
  return word_.compare_exchange_strong(word, word | kIdle, std::memory_order_acq_rel,
                                       std::memory_order_acquire) ||
         word == (popped_ << kCountShift | kIdle);
}

}  // namespace weir::rt
