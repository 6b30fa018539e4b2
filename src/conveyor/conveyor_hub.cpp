#include "conveyor/conveyor_hub.hpp"

#include <iterator>
#include <utility>

namespace weir::rt {

void ConveyorHub::release_later(std::uint32_t number, Rank rank, std::uint64_t blocks,
                                std::vector<std::byte*> memory) noexcept {
  try {
    {
      const sys::Lock lock(lent_mutex_);
      lent_.push_back({number, rank, blocks, std::move(memory)});
    }
    return post(rank, number, ask, 0);
  } catch (...) {  // no memory, or the rank is lost: the port's destructor frees it
  }
}

/// Releases without the mutex: a thread that releases waits for the progress lock, whose holder may
/// wait for the mutex.
void ConveyorHub::release(Rank rank, std::uint32_t number, std::uint64_t blocks) noexcept {
  std::list<Lent> free;
  {
    const sys::Lock lock(lent_mutex_);
    for (auto at = lent_.begin(); at != lent_.end();) {
      const auto each = at++;
      const bool is_read = each->conveyor == number && each->to == rank && each->blocks <= blocks;
      if (is_read) free.splice(free.end(), lent_, each);
    }
  }
  for (const Lent& lent : free) {
    for (std::byte* const memory : lent.memory) port().release(memory);
  }
}

void ConveyorHub::on_stray(Rank from, const Head& head, std::span<const std::byte>) noexcept {
  if (head.kind == ack) return release(from, head.number, head.step);
  if (head.kind == refusal) return release(from, head.number, UINT64_MAX);
  static constexpr char why[] = "it has destroyed the conveyor";
  try {
    post(from, head.number, refusal, 0, std::as_bytes(std::span(why, sizeof why - 1)));
  } catch (...) {
    const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    const bool asks_for = head.kind == ask || (head.kind & asks) != 0;
    if (asks_for && from != port().rank()) {  // it could wait forever
      port().drop(from, "cannot be answered about a conveyor: ", outcome.message.c_str());
    }
  }
}

}  // namespace weir::rt
