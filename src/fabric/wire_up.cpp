#include "fabric/wire_up.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "base/error.hpp"
#include "base/threads.hpp"

namespace weir::rt {

WireUp::WireUp(Link& link, std::int64_t within_ns, EarlyPackets early)
    : link_(link),
      within_ns_(within_ns),
      deadline_ns_(sys::deadline_after(within_ns)),
      packets_(std::move(early)) {}

void WireUp::send_parts(Rank to, std::span<const std::byte> first,
                        std::span<const std::byte> second) {
  const std::array parts{first, second};
  while (!link_.send(to, parts)) advance(to);
}

EarlyPackets::iterator WireUp::next_of(Rank from) {
  const auto is_next = [from](const auto& each) { return each.first == from; };
  auto found = std::find_if(packets_.begin(), packets_.end(), is_next);
  while (found == packets_.end()) {
    advance(from);
    found = std::find_if(packets_.begin(), packets_.end(), is_next);
  }
  return found;
}

void WireUp::packet(Rank from, std::span<const std::byte> bytes) noexcept {
  try {
    packets_.emplace_back(from, std::vector<std::byte>(bytes.begin(), bytes.end()));
  } catch (...) {
    no_memory_ = true;
  }
}

/// Receives, or waits a moment. Throws Error if the rank will not answer.
void WireUp::advance(Rank rank) {
  const std::uint32_t bell = link_.bell();
  const std::string why = link_.why_lost(rank);
  const bool received = link_.receive(*this);  // also what a rank sent before it ended
  if (no_memory_) throw std::bad_alloc();
  if (received) return;
  if (!why.empty()) fail(WEIR_STATUS_NETWORK_ERROR, "rank {} {} before it joined", rank, why);
  const std::int64_t now = sys::now_ns();
  if (now >= deadline_ns_) {
    fail(WEIR_STATUS_NETWORK_ERROR, "rank {} has not joined the fabric within {} s", rank,
         within_ns_ / 1'000'000'000);
  }
  link_.wait(bell, std::min(deadline_ns_, now + 200'000));
}

}  // namespace weir::rt
