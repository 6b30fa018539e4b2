#include "fabric/wait_registry.hpp"

#include <cstring>
#include <string_view>

namespace weir::rt {

void WaitRegistry::enter(Entry& entry) noexcept {
  const std::int64_t now = sys::now_ns();
  const sys::Lock lock(mutex_);
  const bool first = !entry.name_.idle && active_++ == 0;
  if (first && (since_ns_ == 0 || now - abandoned_ns_ > pause_ns_)) since_ns_ = now;
  entry.previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = &entry;
  last_ = &entry;
}

void WaitRegistry::leave(Entry& entry) noexcept {
  const std::int64_t now = sys::now_ns();
  const sys::Lock lock(mutex_);
  (entry.previous_ != nullptr ? entry.previous_->next_ : first_) = entry.next_;
  (entry.next_ != nullptr ? entry.next_->previous_ : last_) = entry.previous_;
  if (entry.ended_) ++ended_;
  if (entry.name_.idle) return;
  abandoned_ns_ = now;
  if (--active_ == 0 && entry.ended_) since_ns_ = 0;
  abandoned_.back() = '\0';
  std::strncpy(abandoned_.data(), entry.name_.text, abandoned_.size() - 1);
}

WaitRegistry::State WaitRegistry::state() const {
  State state;
  const std::int64_t now = sys::now_ns();
  const sys::Lock lock(mutex_);
  const bool pauses = active_ == 0 && since_ns_ != 0 && now - abandoned_ns_ <= pause_ns_;
  if (pauses) state.waits = abandoned_.data();
  for (const Entry* entry = first_; entry != nullptr; entry = entry->next_) {
    const std::string_view name = entry->name_.text;
    if (state.waits.find(name) != std::string::npos) continue;
    if (!state.waits.empty()) state.waits += " and ";
    state.waits += name;
  }
  state.since_ns = active_ > 0 || pauses ? since_ns_ : 0;
  state.movement = ended_ + messages_.load(std::memory_order_relaxed);
  return state;
}

}  // namespace weir::rt
