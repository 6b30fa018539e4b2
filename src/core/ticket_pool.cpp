#include "core/ticket_pool.hpp"

#include <new>
#include <utility>

namespace weir::rt {

TicketPool::TicketPool() : pages_(std::make_unique<std::array<std::unique_ptr<Page>, kPages>>()) {}

TicketPool::~TicketPool() {
  const std::uint32_t chunks = chunks_.load(std::memory_order_relaxed);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    delete[] (*(*pages_)[chunk / kPageChunks])[chunk % kPageChunks];
  }
}

Ticket* TicketPool::take() {
  const SpinGuard guard(lock_);
  if (free_ == nullptr) return grow();
  Ticket* const list = free_;
  Ticket* last = list;
  for (std::uint32_t i = 1; i < kChunk && last->next != nullptr; ++i) last = last->next;
  free_ = std::exchange(last->next, nullptr);
  return list;
}

Ticket* TicketPool::grow() {
  const std::uint32_t chunk = chunks_.load(std::memory_order_relaxed);
  if (chunk >= kPages * kPageChunks) throw std::bad_alloc();
  auto& page = (*pages_)[chunk / kPageChunks];
  if (!page) page = std::make_unique<Page>();
  Ticket* const tickets = new Ticket[kChunk];
  for (std::uint32_t i = 0; i < kChunk; ++i) {
    tickets[i].slot = (chunk * kChunk + i) | Ticket::kMark;
    tickets[i].next = i + 1 < kChunk ? &tickets[i + 1] : nullptr;
  }
  (*page)[chunk % kPageChunks] = tickets;
  chunks_.store(chunk + 1, std::memory_order_release);
  return tickets;
}

void TicketPool::give(Ticket* list) noexcept {
  if (list == nullptr) return;
  Ticket* last = list;
  while (last->next != nullptr) last = last->next;
  const SpinGuard guard(lock_);
  last->next = free_;
  free_ = list;
}

Ticket* TicketPool::at(std::uint64_t slot) const noexcept {
  if (slot < Ticket::kMark || slot >= std::uint64_t{2} * Ticket::kMark) return nullptr;
  const std::uint64_t index = slot - Ticket::kMark, chunk = index / kChunk;
  if (chunk >= chunks_.load(std::memory_order_acquire)) return nullptr;
  return (*(*pages_)[chunk / kPageChunks])[chunk % kPageChunks] + index % kChunk;
}

}  // namespace weir::rt
