// A kernel that runs until the test lets it end.
#pragma once

#include <atomic>
#include <initializer_list>
#include <latch>
#include <string>

#include <weir/weir.hpp>

namespace weir {

/// Holds a place, or part of it, for as long as the test wants. Outlives the runtime it is used in.
class Gate {
 public:
  ~Gate() { open(); }

  /// Enqueues an action that is running when this returns, and ends after open().
  Event close(const Runtime& runtime, const Stream& stream) {
    const Kernel kernel = runtime.kernel("gate", [this](const Call&) {
      started_.count_down();
      opened_.wait(false);
    });
    const Event event = stream.compute(kernel, {});
    started_.wait();
    return event;
  }
  void open() {
    opened_ = true;
    opened_.notify_all();
  }

 private:
  std::latch started_{1};
  std::atomic<bool> opened_{false};
};

/// The status of the weir::Error that code throws, OK without one.
template <class Code>
weir_status status_of(Code code) {
  try {
    code();
    return WEIR_STATUS_OK;
  } catch (const Error& error) {
    return error.status();
  }
}

/// "STATUS: message" of the weir::Error that code throws, "OK" without one.
template <class Code>
std::string failure_of(Code code) {
  try {
    code();
    return "OK";
  } catch (const Error& error) {
    return weir_status_name(error.status()) + std::string(": ") + error.what();
  }
}

}  // namespace weir
