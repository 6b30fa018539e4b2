#include "stream/history.hpp"

#include <utility>

namespace weir::rt {

std::span<const std::uint64_t> History::note(const Action& action) {
  found_.clear();
  const std::uint64_t previous = std::exchange(previous_, action.id());
  if (policy_ == WEIR_DEPENDENCE_POLICY_NONE) return found_;
  const bool orders_all = action.kind == ActionKind::barrier || action.kind == ActionKind::drain ||
                          action.kind == ActionKind::marker;
  if (orders_all) {
    if (action.kind != ActionKind::marker) barrier_ = action.id();
    return found_;
  }
  if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
    if (previous != 0) found_.push_back(previous);
    return found_;
  }
  const std::uint64_t sequence = action.sequence();
  const std::uint64_t stream = action.id() - sequence;
  const auto matters = [sequence](std::uint64_t other) { return other + kReach > sequence; };
  FailureRef ignored;
  table_.trim(matters);
  table_.collect(
      action, matters,
      [&](std::uint64_t other, bool) {
        if (stream + other > barrier_) found_.push_back(stream + other);
      },
      ignored);
  table_.enter(action);
  if (found_.empty() && barrier_ != 0) found_.push_back(barrier_);
  return found_;
}

}  // namespace weir::rt
