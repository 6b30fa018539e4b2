// Host memory for transfers between devices without a link.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <weir/weir.hpp>

namespace weir::hs {

/// Buffers used round robin. All are destroyed together at the end: destroying one earlier would
/// wait for all earlier actions of the streams that used it.
class Staging {
 public:
  /// Calls enqueue(stage) with `bytes` of host memory that is reserved until the event that
  /// enqueue() returns is complete. Returns that event. Any thread.
  weir_event use(const weir::Runtime& runtime, std::uint64_t bytes,
                 const std::function<weir_event(const weir_endpoint& stage)>& enqueue);

 private:
  struct Stage {
    weir::Buffer memory;
    std::uint64_t bytes;
    weir_event last;
    bool failed;  ///< enqueue() has failed: never used again
  };
  Stage& free_stage(const weir::Runtime& runtime, std::uint64_t bytes);

  std::mutex mutex_;
  std::vector<Stage> stages_;
};

}  // namespace weir::hs
