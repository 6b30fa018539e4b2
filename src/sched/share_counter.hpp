// The share counter, from which all places fetch their next items.
#pragma once

#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// The number of items that have been handed out. The caller of fetch_add() owns the items that it
/// added. Any thread; between processes a word in shared memory.
class ShareCounter {
 public:
  virtual ~ShareCounter() = default;
  /// Adds `count` and returns the value before.
  virtual std::uint64_t fetch_add(std::uint64_t count) noexcept = 0;
  virtual std::uint64_t read() const noexcept = 0;
};

/// A counter within one process.
class LocalCounter final : public ShareCounter {
 public:
  std::uint64_t fetch_add(std::uint64_t count) noexcept override {
    return taken_.fetch_add(count, std::memory_order_relaxed);
  }
  std::uint64_t read() const noexcept override { return taken_.load(std::memory_order_relaxed); }

 private:
  alignas(64) sys::Atomic<std::uint64_t> taken_{0};
};

}  // namespace weir::rt
