#include "pipeline/flow_completion.hpp"

#include <cstdio>

#include "base/log.hpp"
#include "pipeline/worker_groups.hpp"

namespace weir::rt {

void FlowCompletion::finish() noexcept {
  if (ended()) return;
  clock_.end();
  std::uint32_t open = kOpen;
  if (!state_.compare_exchange_strong(open, kFinished, std::memory_order_seq_cst)) return;
  done_.ring();
  groups_.wake_all();
}

void FlowCompletion::stop(weir_status status, const char* message) noexcept {
  {
    const sys::Lock lock(outcome_mutex_);
    std::uint32_t open = kOpen;
    if (!state_.compare_exchange_strong(open, kStopping, std::memory_order_seq_cst)) return;
    if (outcome_.ok()) outcome_ = failed_outcome(status, message);
    clock_.end();
  }
  state_.store(kStopped, std::memory_order_seq_cst);
  done_.ring();
  groups_.wake_all();
}

void FlowCompletion::report(const weir_item_failure& failure) noexcept {
  char message[640];
  std::snprintf(message, sizeof message, "stage '%.100s': %s", failure.stage, failure.message);
  {
    const sys::Lock lock(outcome_mutex_);  // before on_failure, which may end the pipeline
    if (outcome_.ok()) outcome_ = failed_outcome(failure.status, message);
  }
  if (options_.on_failure != nullptr) {
    mark_reported();
    guarded([&] { options_.on_failure(&failure, options_.payload); });
  }
  if (!options_.keep_going) stop(failure.status, message);
}

void FlowCompletion::report_unreported() noexcept {
  const sys::Lock lock(outcome_mutex_);
  if (outcome_.ok() || outcome_.status == WEIR_STATUS_CANCELLED || reported_.exchange(true)) return;
  log::warning(
      "pipeline '{}' ends with a failure that the program did not ask for: {}; wait for it "
      "to receive the failure",
      name_, outcome_.message);
}

bool FlowCompletion::wait(std::int64_t deadline_ns) {
  return done_.listen(deadline_ns, [this] {
    const std::uint32_t state = state_.load(std::memory_order_seq_cst);
    return state == kFinished ||
           (state == kStopped && working_.load(std::memory_order_seq_cst) == 0);
  });
}

}  // namespace weir::rt
