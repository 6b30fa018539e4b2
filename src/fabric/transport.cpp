#include "fabric/transport.hpp"

#include <algorithm>

namespace weir::rt {

namespace {

constexpr std::int64_t kLongestLeave = 5'000'000'000;
constexpr unsigned kPassesPerLivenessCheck = 64;

}  // namespace

// ---- Joining and leaving ------------------------------------------------------------------------

Transport::Transport(std::unique_ptr<Link> link, const Membership& membership)
    : link_(std::move(link)),
      info_{link_->info()},
      packets_(*link_, membership.sends_checksums),
      liveness_(*link_, packets_, membership),
      server_(packets_, liveness_, windows_),
      operations_(*link_, packets_, liveness_) {
  if (membership.sends_checksums) info_.reserved_bytes = 0;
  info_.frame_bytes = packets_.body_bytes();
  info_.lost_after_ns = membership.lost_after_ns;
  const bool has_limit = membership.lost_after_ns > 0;
  info_.patience_ns = has_limit ? std::min(membership.lost_after_ns, kLongestLeave) : kLongestLeave;
  liveness_.join(receive_);
}

Transport::~Transport() {
  if (!has_left_) leave(PacketKind::leave);
}

void Transport::leave_at_exit() noexcept {
  if (has_left_) return;
  leave(PacketKind::end);
  link_->leave();
  has_left_ = true;
  liveness_.end_checks();
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (rank != info_.rank) drop(rank, "is out of reach: this rank has left the fabric");
  }
}

void Transport::leave(PacketKind notice) noexcept {
  const std::int64_t deadline = sys::deadline_after(info_.patience_ns);
  struct Discard final : TransportSink {
    void arrived(Rank, std::span<const std::byte>) noexcept override {}
    void completed(void*, std::int64_t, Outcome) noexcept override {}
    void lost(Rank, const std::string&) noexcept override {}
  } discard;
  Rank next = 0;
  const auto all_sent = [&] {
    while (next < info_.ranks &&
           (next == info_.rank || liveness_.is_lost(next) || packets_.send(next, notice))) {
      ++next;
    }
    return next == info_.ranks && link_->drained();
  };
  IdleWait wait{.what = "room to leave", .patience = Patience::some};
  for (;;) {
    const std::uint32_t bell = link_->bell();
    const std::uint64_t since = link_->activity();
    if (!server_.has_answers() && all_sent()) break;
    if (sys::now_ns() >= deadline) break;
    if (progress(discard)) continue;
    try {
      static_cast<void>(link_->idle(wait, since));
    } catch (...) {  // no memory: the next pass reports it
    }
    link_->wait(bell, std::min(deadline, sys::now_ns() + 1'000'000));
  }
  link_->resumed(wait);
}

// ---- Packets ------------------------------------------------------------------------------------

bool Transport::send_reserved(Rank to, Parts parts) noexcept {
  static_assert(sizeof(PacketHeader) + 64 <= kReservedFront);
  if (!liveness_.is_lost(to)) {
    return packets_.send(to, PacketKind::frame, {}, parts, &Link::send_reserved);
  }
  link_->unreserve(const_cast<std::byte*>(parts.back().data()));
  return true;
}

/// Does nothing inside a call of Link::receive(), which is not reentrant.
bool Transport::receive() noexcept {
  if (std::exchange(receiving_, true)) return false;
  const bool any = link_->receive(*this);
  receiving_ = false;
  return any;
}

void Transport::packet(Rank from, std::span<const std::byte> bytes) noexcept {
  if (liveness_.is_lost(from)) return;
  try {
    const PacketKind kind = packets_.open(from, bytes);
    if (kind != PacketKind::hello) liveness_.check_joined(from);
    take(from, kind, bytes);
  } catch (const Error& error) {
    liveness_.mark_lost(from, reason("sent a packet that is refused: ", error.what()));
  } catch (...) {
    liveness_.mark_lost(from, reason("sent more than there is memory for"));
  }
}

void Transport::take(Rank from, PacketKind kind, std::span<const std::byte> body) {
  switch (kind) {
    case PacketKind::hello: return liveness_.take_hello(from, body);
    case PacketKind::leave: return liveness_.mark_left(from, "has left the fabric");
    case PacketKind::end: return liveness_.mark_left(from, "has ended without closing the fabric");
    case PacketKind::frame:
      if (sink_ != nullptr) return sink_->arrived(from, body);
      early_.emplace_back(from, std::vector<std::byte>(body.begin(), body.end()));
      return;
    case PacketKind::put:
    case PacketKind::get:
    case PacketKind::change: return server_.take(from, kind, body);
    case PacketKind::put_done:
    case PacketKind::get_part:
    case PacketKind::change_done: return operations_.take_reply(from, kind, body);
    default: return;
  }
}

void Transport::expose(WindowId window, void* memory, std::size_t bytes) {
  windows_.add(window, memory, bytes);
  link_->expose(window, memory, bytes);
}

bool Transport::withdraw(WindowId window) noexcept {
  windows_.remove(window);
  return link_->withdraw(window);
}

// ---- Progress -----------------------------------------------------------------------------------

bool Transport::progress(TransportSink& sink) noexcept {
  sink_ = &sink;
  bool happened = false;
  while (!early_.empty()) {
    const auto [from, bytes] = std::move(early_.front());
    early_.pop_front();
    sink.arrived(from, bytes);
    happened = true;
  }
  if (!has_left_) happened |= progress_link();
  happened |= deliver_lost(sink);
  happened |= operations_.deliver(sink);
  sink_ = nullptr;
  return happened;
}

bool Transport::progress_link() noexcept {
  const bool checks = ++passes_ % kPassesPerLivenessCheck == 0;
  if (checks) liveness_.check(receive_);
  bool happened = receive();
  happened |= server_.push();
  happened |= operations_.push();
  if (!happened && !checks) liveness_.check(receive_);
  return happened;
}

bool Transport::deliver_lost(TransportSink& sink) noexcept {
  bool any = false;
  while (const std::optional<Rank> rank = liveness_.take_lost()) {
    const std::string& why = liveness_.why_lost(*rank);
    if (!has_left_) link_->cut(*rank, liveness_.has_left(*rank));
    server_.forget(*rank);
    operations_.fail_all_on(*rank, why);
    operations_.deliver(sink);
    sink.lost(*rank, why);
    operations_.fail_all_on(*rank, why);  // operations that sink.lost() has started
    operations_.deliver(sink);
    any = true;
  }
  return any;
}

void Transport::wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept {
  const std::int64_t check = std::max(liveness_.next_check_ns(), sys::now_ns() + 100'000);
  link_->wait(bell, std::min(deadline_ns, check));
}

}  // namespace weir::rt
