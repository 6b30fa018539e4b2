// The waiter of a program thread.
#pragma once

#include <atomic>

#include "base/plain.hpp"
#include "base/signal.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"

namespace weir::rt {

/// One waiter of a thread. All waiters of the thread share its signal, which counts deliveries.
struct HostWaiter : Waiter {
  Signal* signal = nullptr;
  sys::Atomic<bool> done{false};  ///< then the fields below are set
  bool watching = false;
  sys::Plain<weir_status> status = WEIR_STATUS_OK;
  FailureRef failure;

  static void on_deliver(Waiter& self, weir_status status, const FailureRef& failure) {
    auto& waiter = static_cast<HostWaiter&>(self);
    waiter.status = status;
    waiter.failure = failure;
    Signal* const signal = waiter.signal;
    waiter.done.store(true, std::memory_order_release);
    signal->deliver();
  }
};

}  // namespace weir::rt
