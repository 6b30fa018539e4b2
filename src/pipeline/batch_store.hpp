// What stages with kernels leave to those of later pipelines.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <vector>

#include <weir/buffer.h>
#include <weir/domain.h>
#include <weir/kernel.h>

#include "base/threads.hpp"
#include "pipeline/batch_costs.hpp"

namespace weir::rt {

/// Keeps the costs of batches, and their buffers with the memory that these have on the device, for
/// the next pipeline that runs the same kernel at a place of as many cores. The registry owns the
/// buffers and outlives the store. Any thread.
class BatchStore {
 public:
  struct Key {
    const weir_kernel* kernel;  ///< lives as long as the runtime
    const weir_domain* domain;
    std::size_t cores, item_bytes;
    auto operator<=>(const Key&) const = default;
  };

  /// Returns what is known of batches.
  BatchCosts costs(const Key& key) const noexcept;
  /// Replaces the costs, unless nothing is known of them or memory is short.
  void keep_costs(const Key& key, const BatchCosts& costs) noexcept;

  /// Returns the smallest kept buffer of at least `bytes` bytes, which no other stage gets, or
  /// null.
  weir_buffer* take(const Key& key, std::size_t bytes) noexcept;
  /// Keeps a buffer that no action uses and that is not poisoned. Returns whether it does: not
  /// beyond 256 MiB in all, nor when memory is short.
  bool keep(const Key& key, weir_buffer& buffer) noexcept;

 private:
  struct Entry {
    BatchCosts costs;
    std::vector<weir_buffer*> buffers;
  };

  mutable sys::Mutex mutex_;
  std::map<Key, Entry> entries_ WEIR_GUARDED_BY(mutex_);
  std::size_t kept_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rt
