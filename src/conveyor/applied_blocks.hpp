// The acknowledgements of one peer.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// How many blocks a peer has acknowledged, and whether it has failed. The thread that makes
/// progress changes it, any thread reads it.
///
/// Threads that sleep in Port::wait_until() check it after they have said that they sleep, and the
/// thread that changes it then looks for sleepers: all of this is sequentially consistent.
class AppliedBlocks {
 public:
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_seq_cst); }
  bool failed() const noexcept { return failed_.load(std::memory_order_seq_cst); }
  /// Whether no thread has to wait for this block any more.
  bool is_complete(std::uint64_t block) const noexcept { return failed() || count() >= block; }

  void acknowledge(std::uint64_t blocks) noexcept {
    count_.store(blocks, std::memory_order_seq_cst);
  }
  /// Readers that find the failure see what was written before.
  void fail() noexcept { failed_.store(true, std::memory_order_seq_cst); }

 private:
  sys::Atomic<std::uint64_t> count_{0};
  sys::Atomic<bool> failed_{false};
};

}  // namespace weir::rt
