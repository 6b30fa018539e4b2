#include "fabric/port_pass.hpp"

#include <algorithm>
#include <utility>

namespace weir::rt {

bool PortPass::step() noexcept {
  bool happened = messages_.take_submissions();
  happened |= operations_.take_submissions();
  happened |= transport_.progress(*this);
  happened |= messages_.take_submissions();
  happened |= operations_.take_submissions();
  happened |= messages_.push();
  happened |= operations_.push();
  happened |= messages_.deliver_own();
  return happened;
}

/// Also announces the thread as waiting: a seeded link moves packets only when all ranks wait.
void PortPass::send_all(std::int64_t deadline_ns) noexcept {
  Link& link = transport_.link();
  IdleWait wait{.what = "room to send", .patience = Patience::some};
  for (;;) {
    const std::uint32_t bell = link.bell();
    const std::uint64_t since = link.activity();
    const bool happened = step();
    const std::int64_t now = sys::now_ns();
    if ((messages_.empty() && operations_.empty()) || now >= deadline_ns) break;
    if (happened) continue;
    try {
      static_cast<void>(link.idle(wait, since));
    } catch (...) {  // no memory: the next pass reports it
    }
    transport_.wait(bell, std::min(deadline_ns, now + kBetweenPolls));
  }
  link.resumed(wait);
}

void PortPass::take_submissions() noexcept {
  if (messages_.take_submissions()) messages_.push();
  if (operations_.take_submissions()) operations_.push();
}

void PortPass::arrived(Rank from, std::span<const std::byte> frame) noexcept {
  try {
    messages_.arrived(from, frame);
  } catch (const Error& error) {
    transport_.drop(from, "sent a frame that is refused: ", error.what());
  } catch (...) {
    transport_.drop(from, "sent a message that there is no memory for");
  }
}

void PortPass::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  operations_.completed(token, old, std::move(outcome));
}

void PortPass::lost(Rank rank, const std::string& why) noexcept {
  lost_ranks_.mark_lost(rank, why);
  operations_.push();
  messages_.lost(rank, why);
}

}  // namespace weir::rt
