// The state of the layer in a process: configuration, the last failure, and the session.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "hstreams/app_partition.hpp"
#include "hstreams/configuration.hpp"

namespace weir::hs {

class Library {
 public:
  /// The instance of the process; never destroyed, because threads may outlive main().
  static Library& get();

  /// Begins a session, unless there is one. Throws Error.
  void init(const char* version);
  /// Waits for calls in progress and ends the session. Throws Error{NOT_INITIALIZED}.
  void fini();
  /// Ends the session, unless another thread has ended it.
  void fini_if_open() noexcept;
  bool initialized();

  /// Runs code(session); the session cannot end meanwhile. Throws Error{NOT_INITIALIZED} without a
  /// session.
  template <class Code>
  decltype(auto) with_session(Code&& code) {
    const std::shared_lock lock(gate_);
    if (session_ == nullptr || ending_) fail_not_initialized();
    return std::forward<Code>(code)(*session_);
  }

  /// What the app interface has created in the session. Only code of with_session() may call.
  AppPartition& app() noexcept { return *app_; }
  Configuration& configuration() noexcept { return configuration_; }
  HSTR_RESULT last_error() const noexcept { return last_error_; }
  void set_last_error(HSTR_RESULT result) noexcept { last_error_ = result; }

 private:
  void end();
  [[noreturn]] static void fail_not_initialized();

  Configuration configuration_;
  std::atomic<HSTR_RESULT> last_error_{HSTR_RESULT_SUCCESS};
  std::mutex life_;         // one beginning or end at a time
  std::shared_mutex gate_;  // held by calls in progress
  std::atomic<bool> ending_{false};
  std::unique_ptr<Session> session_;
  std::optional<AppPartition> app_;  // of the session
};

}  // namespace weir::hs
