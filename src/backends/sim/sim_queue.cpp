#include "backends/sim/sim_queue.hpp"

#include "base/thread_role.hpp"

namespace weir::rt {

SimQueue::SimQueue(const std::string& name, PlaceFeed& feed, Device& device,
                   std::shared_ptr<SimClock> clock)
    : JobQueue(feed), name_(name), device_(device), clock_(std::move(clock)) {
  if (clock_ != nullptr) clock_->add(*this);
}

SimQueue::~SimQueue() {
  if (clock_ != nullptr) clock_->remove(*this);
  stopping_.store(true, std::memory_order_seq_cst);
  parking_.unpark_all();
  thread_.reset();
  wait_for_callers();
}

void SimQueue::start(PlaceDriver& cores) {
  set_cores(cores);
  if (clock_ == nullptr) thread_.emplace(name_ + "/queue", [this] { work(); });
}

void SimQueue::notify(bool) noexcept {
  if (clock_ != nullptr) {
    act();
  } else {
    wake();
  }
}

void SimQueue::act() noexcept {
  if (std::exchange(serving_, true)) return;
  while (serve()) {
  }
  serving_ = false;
}

void SimQueue::work() noexcept {
  const NoWaitScope no_wait;
  const auto stopping = [&] { return stopping_.load(std::memory_order_seq_cst); };
  while (!stopping()) {
    if (serve()) continue;
    parking_.prepare();
    if (needs_serving() || stopping()) {
      parking_.cancel();
    } else {
      parking_.park();
    }
  }
}

}  // namespace weir::rt
