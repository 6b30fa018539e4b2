// What a process that exits without destroying its runtimes still says.
#pragma once

namespace weir::rt {

class Runtime;

/// One of the runtimes of the process. When this exits, each that there is then logs the failures
/// that the program was not told of.
class LiveRuntime {
 public:
  LiveRuntime() noexcept = default;
  LiveRuntime(const LiveRuntime&) = delete;
  LiveRuntime& operator=(const LiveRuntime&) = delete;
  ~LiveRuntime() { end(); }

  void begin(Runtime& runtime) noexcept;
  /// Waits for a process that is exiting to have logged.
  void end() noexcept;

 private:
  class All;

  Runtime* runtime_ = nullptr;
  LiveRuntime* before_ = nullptr;
  LiveRuntime* after_ = nullptr;
};

}  // namespace weir::rt
