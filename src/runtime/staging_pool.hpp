// Buffers in host memory through which messages from and to devices go.
#pragma once

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <vector>

#include "base/threads.hpp"
#include "stream/completion_listener.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

/// Keeps buffers for use again, by their size, a power of two. Their memory is page-locked where a
/// device wants it, which takes long. Any thread.
class StagingPool {
 public:
  /// The registry owns the buffers and outlives the pool.
  explicit StagingPool(Registry& registry) noexcept : registry_(registry) {}

  /// Takes a buffer back when the event that it listens to is complete.
  class Return final : public CompletionListener {
   public:
    Return(StagingPool& pool, weir_buffer& buffer) noexcept
        : CompletionListener(pool.registry_.listeners()), pool_(pool), buffer_(buffer) {}

    weir_buffer& buffer() const noexcept { return buffer_; }
    void completed(weir_status, const FailureRef&) noexcept override {
      const sys::Lock lock(pool_.mutex_);
      pool_.kept_[buffer_.bytes()].push_back(&buffer_);
    }

   private:
    StagingPool& pool_;
    weir_buffer& buffer_;
  };

  /// Returns a buffer of at least `bytes` bytes, in the listener that gives it back: to the event
  /// of the last action that uses it. Throws Error.
  std::unique_ptr<Return> take(std::size_t bytes) {
    weir_buffer& buffer = find(bytes);
    try {
      return std::make_unique<Return>(*this, buffer);
    } catch (...) {
      const sys::Lock lock(mutex_);
      kept_[buffer.bytes()].push_back(&buffer);
      throw;
    }
  }

 private:
  weir_buffer& find(std::size_t bytes) {
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
  static constexpr std::size_t kSmallest = 4096;

  Registry& registry_;
  sys::Mutex mutex_;
  std::map<std::size_t, std::vector<weir_buffer*>> kept_ WEIR_GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> made_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
