#include "fabric/port.hpp"

#include <utility>

namespace weir::rt {

Port::Port(std::unique_ptr<Transport> transport, ProgressBy progress)
    : transport_(std::move(transport)),
      lost_ranks_(info().ranks),
      pass_(*transport_, lost_ranks_, messages_, operations_),
      progress_(*transport_, pass_, progress),
      messages_(*transport_, lost_ranks_, progress_),
      operations_(*transport_, lost_ranks_, progress_),
      barrier_(info().rank, lost_ranks_, messages_, progress_, info().ranks) {
  progress_.start();
}

Port::~Port() {
  progress_.stop();
  const std::int64_t deadline = sys::deadline_after(info().patience_ns);
  const PortProgress::ProgressLock progress_lock(progress_);
  messages_.drop_listeners();
  pass_.send_all(deadline);
}

void Port::leave_at_exit() noexcept {
  progress_.begin_to_stop();
  const std::int64_t deadline = sys::deadline_after(info().patience_ns);
  {
    const PortProgress::ProgressLock progress_lock(progress_, deadline);
    if (!progress_lock) return;
    messages_.listen(Channel::user, nullptr);
    pass_.send_all(deadline);
    transport_->leave_at_exit();
    pass_.step();
  }
  progress_.notify();
}

void Port::listen(Channel channel, Listener* listener) {
  messages_.listen(channel, listener);
  progress_.notify();  // another thread may wait for a kept message
}

void Port::drop(Rank rank, const char* what, const char* detail) noexcept {
  {
    const PortProgress::ProgressLock progress_lock(progress_);
    transport_->drop(rank, what, detail);
  }
  progress_.notify();  // progress must notify the listeners
}

}  // namespace weir::rt
