// A pool of reusable tickets. They are never unmapped while the runtime lives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/plain.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/action.hpp"

namespace weir::rt {

/// All tickets of a runtime. Task queues keep used tickets and return them when they end.
class TicketPool {
 public:
  TicketPool();
  TicketPool(const TicketPool&) = delete;
  TicketPool& operator=(const TicketPool&) = delete;
  ~TicketPool();

  /// Returns 1 to 256 free tickets, linked by `next`; the others are for other queues. Throws
  /// std::bad_alloc.
  Ticket* take();
  /// Returns a list of free tickets to the pool.
  void give(Ticket* list) noexcept;

  /// Returns a ticket by slot number, nullptr if there is none: events come from user memory.
  Ticket* at(std::uint64_t slot) const noexcept;

 private:
  static constexpr std::uint32_t kChunk = 256;
  static constexpr std::uint32_t kPageChunks = 4096;
  static constexpr std::uint32_t kPages = 2048;
  using Page = std::array<sys::Plain<Ticket*>, kPageChunks>;

  Ticket* grow() WEIR_REQUIRES(lock_);

  SpinLock lock_;
  sys::Plain<Ticket*> free_ WEIR_GUARDED_BY(lock_) = nullptr;
  sys::Atomic<std::uint32_t> chunks_{0};
  std::unique_ptr<std::array<std::unique_ptr<Page>, kPages>> pages_;
};

}  // namespace weir::rt
