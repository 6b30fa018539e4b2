// Reports at process exit for runtimes that the program did not destroy.
#pragma once

namespace weir::rt {

class Runtime;

/// A runtime in the list of the process. When the process exits, each runtime in the list logs its
/// unreported failures.
class LiveRuntime {
 public:
  LiveRuntime() noexcept = default;
  LiveRuntime(const LiveRuntime&) = delete;
  LiveRuntime& operator=(const LiveRuntime&) = delete;
  ~LiveRuntime() { end(); }

  void begin(Runtime& runtime) noexcept;
  /// Waits until an exiting process has logged.
  void end() noexcept;

 private:
  class All;

  Runtime* runtime_ = nullptr;
  LiveRuntime* before_ = nullptr;
  LiveRuntime* after_ = nullptr;
};

}  // namespace weir::rt
