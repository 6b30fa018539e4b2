#include "core/action_pool.hpp"

#include <utility>

namespace weir::rt {

ActionPool::ActionPool() : pages_(std::make_unique<std::array<std::unique_ptr<Page>, kPages>>()) {}

ActionPool::~ActionPool() {
  const std::uint32_t chunks = chunks_.load(std::memory_order_relaxed);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    delete[] (*(*pages_)[chunk / kPageChunks])[chunk % kPageChunks];
  }
}

Action* ActionPool::take() {
  const SpinGuard guard(lock_);
  if (free_ == nullptr) return grow();
  Action* const batch = free_;
  free_ = static_cast<Action*>(static_cast<Message*>(batch->next_message));
  return batch;
}

Action* ActionPool::grow() {
  const std::uint32_t chunk = chunks_.load(std::memory_order_relaxed);
  if (chunk >= kPages * kPageChunks) throw std::bad_alloc();
  auto& page = (*pages_)[chunk / kPageChunks];
  if (!page) page = std::make_unique<Page>();
  Action* const slots = new Action[kChunkSlots];
  for (std::uint32_t i = 0; i < kChunkSlots; ++i) {
    slots[i].slot = chunk * kChunkSlots + i;
    slots[i].next = i + 1 < kChunkSlots ? &slots[i + 1] : nullptr;
  }
  (*page)[chunk % kPageChunks] = slots;
  chunks_.store(chunk + 1, std::memory_order_release);
  return slots;
}

void ActionPool::give(Action* list) noexcept {
  while (list != nullptr) {
    Action* const batch = list;
    for (std::uint32_t i = 1; i < kChunkSlots && list->next != nullptr; ++i) list = list->next;
    list = std::exchange(list->next, nullptr);
    const SpinGuard guard(lock_);
    batch->next_message = std::exchange(free_, batch);
  }
}

Action* ActionPool::at(std::uint64_t slot) const noexcept {
  const std::uint64_t chunk = slot / kChunkSlots;
  if (chunk >= chunks_.load(std::memory_order_acquire)) return nullptr;
  return (*(*pages_)[chunk / kPageChunks])[chunk % kPageChunks] + slot % kChunkSlots;
}

ActionCache::ActionCache(ActionPool& pool, Executor* stream)
    : pool_(pool),
      stream_(stream),
      ring_(std::make_unique_for_overwrite<sys::Plain<Action*>[]>(kRing)) {}

ActionCache::~ActionCache() {
  for (; taken_ != given_; ++taken_) undo_take(*ring_[taken_ % kRing]);
  pool_.give(fresh_);
  pool_.give(list_.load(std::memory_order_acquire));
}

/// Waits briefly for returned slots: memory that is in the caches is better than new memory.
bool ActionCache::wait_for_returned() noexcept {
  constexpr int kPolls = sys::scaled(20, 2);
  constexpr int kPausesPerPoll = sys::scaled(5, 1);
  for (int poll = 0; poll < kPolls; ++poll) {
    seen_ = returned_.load(std::memory_order_acquire);
    if (seen_ != taken_) return true;
    for (int i = 0; i < kPausesPerPoll; ++i) sys::pause();
  }
  return false;
}

Action& ActionCache::take_fresh() {
  if (fresh_ == nullptr) fresh_ = list_.exchange(nullptr, std::memory_order_acquire);
  if (fresh_ == nullptr) {
    if (owned_ >= kEnough && wait_for_returned()) return take();
    fresh_ = pool_.take();
    for (Action* slot = fresh_; slot != nullptr; slot = slot->next) {
      slot->stream = stream_;
      ++owned_;
    }
  }
  Action* const slot = fresh_;
  fresh_ = slot->next;
  return *slot;
}

void ActionCache::give_to_list(Action& slot) noexcept {
  slot.next = list_.load(std::memory_order_relaxed);
  while (!list_.compare_exchange_weak(slot.next, &slot, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

}  // namespace weir::rt
