// Buffers in host memory through which messages from and to devices go.
#pragma once

#include <bit>
#include <map>
#include <vector>

#include "base/threads.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

/// Keeps buffers for use again, by their size, a power of two. Their memory is page-locked where a
/// device wants it, which takes long. Any thread.
class StagingPool {
 public:
  /// The registry owns the buffers and outlives the pool.
  explicit StagingPool(Registry& registry) noexcept : registry_(registry) {}

  /// Returns a buffer of at least `bytes` bytes. Throws Error.
  weir_buffer& take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    {
      const sys::Lock lock(mutex_);
      auto& kept = kept_[size];
      if (!kept.empty()) {
        weir_buffer& buffer = *kept.back();
        kept.pop_back();
        return buffer;
      }
      kept.reserve(++made_[size]);  // give() needs no memory
    }
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = "staging";
    options.kind = WEIR_MEMORY_KIND_PINNED;
    return *registry_.buffers().create(size, options);
  }
  /// Returns a buffer that no later action of its stream uses.
  void give(weir_buffer& buffer) noexcept {
    const sys::Lock lock(mutex_);
    kept_[buffer.bytes()].push_back(&buffer);
  }

 private:
  static constexpr std::size_t kSmallest = 4096;

  Registry& registry_;
  sys::Mutex mutex_;
  std::map<std::size_t, std::vector<weir_buffer*>> kept_ WEIR_GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> made_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
