// Host memory for transfers between devices without a link.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <weir/weir.hpp>

namespace weir::hs {

/// Buffers that are used in turn. None is destroyed before all of them are: that would wait for
/// everything earlier in the streams that used it.
class Staging {
 public:
  /// Calls enqueue(stage) with `bytes` of host memory that nobody else uses until the event that it
  /// returns is complete. Returns that event. Any thread may call.
  weir_event use(const weir::Runtime& runtime, std::uint64_t bytes,
                 const std::function<weir_event(const weir_endpoint& stage)>& enqueue);

 private:
  struct Stage {
    weir::Buffer memory;
    std::uint64_t bytes;
    weir_event last;
    bool failed;  ///< to enqueue all that would use it: never used again
  };
  Stage& free_stage(const weir::Runtime& runtime, std::uint64_t bytes);

  std::mutex mutex_;
  std::vector<Stage> stages_;
};

}  // namespace weir::hs
