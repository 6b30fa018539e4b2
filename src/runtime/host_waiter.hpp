// A thread of the program that waits for an action.
#pragma once

#include <atomic>

#include "base/plain.hpp"
#include "base/signal.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"

namespace weir::rt {

/// One of the waiters of a thread. They share its signal, whose count says that they may go.
struct HostWaiter : Waiter {
  Signal* signal = nullptr;
  sys::Atomic<bool> done{false};  ///< then what follows is there
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
