#include "fabric/port.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace weir::rt {

Port::Port(std::unique_ptr<Transport> transport, ProgressBy progress)
    : transport_(std::move(transport)),
      lost_ranks_(info().ranks),
      message_queues_(*transport_, lost_ranks_, waits_),
      operation_queues_(*transport_, lost_ranks_),
      pass_(*transport_, lost_ranks_, message_queues_, operation_queues_),
      progress_(*transport_, pass_, waits_, progress),
      messages_(message_queues_, *transport_, lost_ranks_, progress_),
      operations_(operation_queues_, *transport_, lost_ranks_, progress_),
      barrier_(info().rank, lost_ranks_, messages_, progress_, info().ranks) {
  progress_.start();
}

Port::~Port() {
  progress_.stop();
  const std::int64_t deadline = sys::deadline_after(info().patience_ns);
  const PortProgress::ProgressLock progress_lock(progress_);
  message_queues_.drop_listeners();
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

// ---- Windows ------------------------------------------------------------------------------------

WindowId Port::expose(void* memory, std::size_t bytes, std::int64_t deadline_ns) {
  if (memory == nullptr && bytes > 0) fail_argument("the memory of a window is NULL");
  const PortProgress::ProgressLock progress_lock(progress_, deadline_ns);
  if (!progress_lock)
    fail(WEIR_STATUS_TIMEOUT, "no window in time: a handler of messages is at work");
  transport_->expose(next_window_, memory, bytes);
  return next_window_++;
}

void Port::withdraw(WindowId window) noexcept {
  bool entered = false;
  {
    const PortProgress::ProgressLock progress_lock(progress_);
    entered = transport_->withdraw(window);
  }
  if (entered) transport_->link().settle(window);
}

void* Port::allocate(std::size_t bytes, std::int64_t deadline_ns) {
  void* memory = nullptr;
  {
    const PortProgress::ProgressLock progress_lock(progress_, deadline_ns);
    if (!progress_lock) return nullptr;
    memory = transport_->link().allocate(bytes);
  }
  // takes seconds for large sizes: other threads can make progress meanwhile
  if (memory != nullptr) {
    const weir_status status = transport_->link().commit(memory, bytes, deadline_ns);
    if (status == WEIR_STATUS_OK) return memory;
    release(memory);
    if (status == WEIR_STATUS_TIMEOUT) return nullptr;
  }
  memory = std::calloc(std::max<std::size_t>(bytes, 1), 1);
  if (memory == nullptr) fail(WEIR_STATUS_OUT_OF_MEMORY, "no memory for a window of {} B", bytes);
  return memory;
}

void Port::release(void* memory) noexcept {
  const PortProgress::ProgressLock progress_lock(progress_);
  if (!transport_->link().release(memory)) std::free(memory);
}

// ---- Lost ranks ---------------------------------------------------------------------------------

void Port::drop(Rank rank, const char* what, const char* detail) noexcept {
  {
    const PortProgress::ProgressLock progress_lock(progress_);
    transport_->drop(rank, what, detail);
  }
  progress_.notify();  // progress must notify the listeners
}

}  // namespace weir::rt
