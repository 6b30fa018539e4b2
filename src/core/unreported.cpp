#include "core/unreported.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace weir::rt {

void Unreported::remove_reported() noexcept {
  const auto end = std::remove_if(kept_.begin(), kept_.end(), [](const FailureRef& failure) {
    return !failure || failure->reported.load(std::memory_order_relaxed);
  });
  std::for_each(end, kept_.end(), [](FailureRef& failure) { failure.reset(); });
}

void Unreported::add(const FailureRef& failure) noexcept {
  if (!failure || failure->status == WEIR_STATUS_CANCELLED) return;
  const SpinGuard guard(lock_);
  remove_reported();
  FailureRef last = failure;
  for (FailureRef& kept : kept_) {
    if (kept.get() == last.get()) return;
    if (!kept || last->root_id < kept->root_id) std::swap(kept, last);
    if (!last) return;
  }
  ++others_;
  last_other_ = std::max<std::uint64_t>(last_other_, last->root_id);
}

void Unreported::take(Unreported& other) noexcept {
  std::array<FailureRef, kKept> taken;
  std::uint64_t others = 0, last = 0;
  {
    const SpinGuard guard(other.lock_);
    taken = std::exchange(other.kept_, {});
    others = std::exchange(other.others_, 0);
    last = std::exchange(other.last_other_, 0);
  }
  for (const FailureRef& failure : taken) add(failure);
  const SpinGuard guard(lock_);
  others_ += others;
  last_other_ = std::max(last_other_, last);
}

void Unreported::forget_up_to(std::uint64_t id) noexcept {
  const SpinGuard guard(lock_);
  for (FailureRef& failure : kept_) {
    if (failure && failure->root_id <= id) failure.reset();
  }
  remove_reported();
  if (last_other_ <= id) others_ = 0;
}

void Unreported::report(const char* owner, const std::string& name) noexcept {
  std::array<FailureRef, kKept> kept;
  std::uint64_t others = 0;
  {
    const SpinGuard guard(lock_);
    remove_reported();
    kept = std::exchange(kept_, {});
    others = std::exchange(others_, 0);
  }
  if (!kept.front()) return;
  for (const FailureRef& failure : kept) {
    if (!failure) continue;
    failure->mark_reported();
    ++others;
  }
  try {
    const std::string first = kept.front()->describe(false);
    const std::string more = others > 1 ? fmt::format(" ({} more failed)", others - 1) : "";
    log::warning(
        "{} '{}' ends with a failure that the program did not ask for: {}{}; "
        "synchronise to receive it",
        owner, name, first, more);
  } catch (...) {
    log::warning("{}", kept.front()->message);
  }
}

}  // namespace weir::rt
