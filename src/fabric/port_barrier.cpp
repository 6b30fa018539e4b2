#include "fabric/port_barrier.hpp"

#include <cstring>

#include "fabric/wire.hpp"

namespace weir::rt {

PortBarrier::PortBarrier(Rank rank, const LostRanks& lost_ranks, PortMessages& messages,
                         PortProgress& progress, Rank ranks)
    : rank_(rank),
      lost_ranks_(lost_ranks),
      messages_(messages),
      progress_(progress),
      theirs_(ranks) {
  messages_.listen(Channel::control, this);
}

void PortBarrier::on_message(Rank from, std::span<const std::byte> message) noexcept {
  std::uint64_t reached = 0;
  if (message.size() != sizeof reached) return;
  std::memcpy(&reached, message.data(), sizeof reached);
  theirs_[from].store(reached);
}

void PortBarrier::announce() {
  for (Rank rank = 0; rank < theirs_.size(); ++rank) {
    if (rank == rank_ || lost_ranks_.is_lost(rank)) continue;
    try {
      messages_.post(rank, Channel::control, bytes_of(own_), {});
    } catch (const Error& error) {
      if (error.status() != WEIR_STATUS_NETWORK_ERROR) throw;
    }
  }
}

bool PortBarrier::is_complete(Rank& late) const noexcept {
  for (late = 0; late < theirs_.size(); ++late) {
    if (late != rank_ && !lost_ranks_.is_lost(late) && theirs_[late].load() < own_) return false;
  }
  return true;
}

Outcome PortBarrier::wait(std::int64_t timeout_ns) {
  progress_.check_may_wait("a barrier");
  if (!open_) {
    ++own_;
    open_ = true;
    announced_ = false;
  }
  if (!announced_) announce();
  announced_ = true;
  Rank late = 0;
  if (!progress_.wait_until([&] { return is_complete(late); }, timeout_ns, "a barrier")) {
    return failed_outcome(WEIR_STATUS_TIMEOUT,
                          fmt::format("rank {} has not reached the barrier", late).c_str());
  }
  open_ = false;
  return {};
}

}  // namespace weir::rt
