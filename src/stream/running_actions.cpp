#include "stream/running_actions.hpp"

#include <cstring>

namespace weir::rt {

void RunningActions::begin(unsigned worker, const Action& action) noexcept {
  Slot& slot = slots_[worker];
  const std::int64_t now = sys::now_ns();
  const SpinGuard guard(slot.lock);
  slot.entry = {.worker = worker, .label = {}, .id = action.id(), .since_ns = now};
  std::strncpy(slot.entry.label.data(), action.label(), slot.entry.label.size() - 1);
}

void RunningActions::end(unsigned worker) noexcept {
  const SpinGuard guard(slots_[worker].lock);
  slots_[worker].entry.id = 0;
}

std::vector<RunningActions::Entry> RunningActions::list() const {
  std::vector<Entry> entries;
  entries.reserve(slots_.size());
  for (const Slot& slot : slots_) {
    const SpinGuard guard(slot.lock);
    if (slot.entry.id != 0) entries.push_back(slot.entry);
  }
  return entries;
}

}  // namespace weir::rt
