#include "fabric/liveness.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::rt {

namespace {

constexpr std::int64_t kLongestInterval = 250'000'000;

struct Hello {
  std::int64_t lost_after_ns;
  std::uint32_t sends_heartbeats, unused;
};

/// Returns the heartbeat interval for ranks that lose a peer after `lost_after_ns` of silence.
std::int64_t interval_for(std::int64_t lost_after_ns) noexcept {
  if (lost_after_ns <= 0) return kLongestInterval;
  return std::clamp<std::int64_t>(lost_after_ns / 8, 1'000'000, kLongestInterval);
}

/// Receives everything that has arrived, for a rank that sends no more.
void receive_all(const Liveness::Receive& receive) noexcept {
  constexpr unsigned kMostBursts = 1000;
  for (unsigned i = 0; i < kMostBursts && receive(); ++i) {
  }
}

}  // namespace

Liveness::Liveness(Link& link, PacketStreams& packets, Membership membership)
    : link_(link),
      packets_(packets),
      membership_(std::move(membership)),
      peers_(link.info().ranks),
      interval_ns_(interval_for(membership_.lost_after_ns)) {
  lost_.reserve(peers_.size());
  Peer& own = peers_[link_.info().rank];
  own.joined = true;
  own.build = membership_.build;
}

// ---- Joining ------------------------------------------------------------------------------------

/// Returns whether all have been sent.
bool Liveness::send_hellos(std::vector<bool>& sent) {
  const Hello hello{membership_.lost_after_ns, membership_.sends_heartbeats, 0};
  const std::span<const std::byte> build = std::as_bytes(std::span(membership_.build));
  bool all = true;
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (!sent[rank]) sent[rank] = packets_.send_struct(rank, PacketKind::hello, hello, build);
    all = all && sent[rank];
  }
  return all;
}

void Liveness::join(const Receive& receive) {
  std::vector<bool> sent(peers_.size());
  sent[link_.info().rank] = true;
  const std::int64_t deadline = sys::deadline_after(membership_.join_within_ns);
  const auto joined = [](const Peer& each) { return each.joined; };
  bool all_sent = send_hellos(sent);
  while (!all_sent || !std::all_of(peers_.begin(), peers_.end(), joined)) {
    const std::uint32_t bell = link_.bell();
    const bool received = receive();
    all_sent = send_hellos(sent);
    for (Rank rank = 0; rank < peers_.size(); ++rank) check_joining(rank, receive, deadline);
    if (!received) link_.wait(bell, std::min(deadline, sys::now_ns() + 10'000'000));
  }
  compare_builds();
  packets_.begin_time(sys::now_ns());
}

/// Throws Error if a rank will not join, or has not at the deadline.
void Liveness::check_joining(Rank rank, const Receive& receive, std::int64_t deadline_ns) {
  const Peer& peer = peers_[rank];
  const std::string why = peer.joined ? std::string() : link_.why_lost(rank);
  if (!why.empty()) receive_all(receive);  // including packets of a rank that has left already
  if (peer.lost && !peer.has_left) fail(WEIR_STATUS_NETWORK_ERROR, "{}", peer.why);
  if (peer.joined) return;
  if (!why.empty()) fail(WEIR_STATUS_NETWORK_ERROR, "rank {} {} before it joined", rank, why);
  if (sys::now_ns() < deadline_ns) return;
  fail(WEIR_STATUS_NETWORK_ERROR, "rank {} has not joined the fabric within {} s", rank,
       membership_.join_within_ns / 1'000'000'000);
}

void Liveness::take_hello(Rank from, std::span<const std::byte> rest) {
  Peer& peer = peers_[from];
  if (peer.joined) fail(WEIR_STATUS_NETWORK_ERROR, "it joins a second time");
  const auto hello = cut_off<Hello>(rest);
  peer.sends_heartbeats = hello.sends_heartbeats != 0;
  interval_ns_ = std::min(interval_ns_, interval_for(hello.lost_after_ns));
  peer.build.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  peer.joined = true;
}

void Liveness::check_joined(Rank rank) const {
  if (!peers_[rank].joined) fail(WEIR_STATUS_NETWORK_ERROR, "it came before the rank joined");
}

void Liveness::compare_builds() const {
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].build == peers_[0].build) continue;
    fail(WEIR_STATUS_UNSUPPORTED,
         "rank {} runs weir {}, rank 0 runs weir {}: start the same program on all ranks", rank,
         peers_[rank].build, peers_[0].build);
  }
}

// ---- Losses -------------------------------------------------------------------------------------

void Liveness::mark_lost(Rank rank, std::string why) noexcept {
  Peer& peer = peers_[rank];
  if (peer.lost) return;
  peer.lost = true;
  lost_.push_back(rank);
  try {
    peer.why = fmt::format("rank {} {}", rank, why);
  } catch (...) {
    peer.why = std::move(why);
  }
}

void Liveness::mark_left(Rank rank, const char* how) noexcept {
  peers_[rank].has_left = true;
  mark_lost(rank, reason(how));
}

std::optional<Rank> Liveness::take_lost() noexcept {
  return has_unreported() ? std::optional(lost_[reported_++]) : std::nullopt;
}

void Liveness::check(const Receive& receive) noexcept {
  const std::int64_t now = sys::now_ns();
  const std::int64_t paused_ns = now - packets_.time_ns();
  packets_.set_time(now);
  if (now < next_check_ns()) return;
  next_check_ns_.store(now + interval_ns_ / 2, std::memory_order_relaxed);
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (rank == link_.info().rank || peers_[rank].lost) continue;
    // A rank that did not make progress for a while cannot know whether others were silent.
    if (paused_ns > 2 * interval_ns_) packets_.excuse_silence(rank);
    check_peer(rank, receive);
  }
}

void Liveness::check_peer(Rank rank, const Receive& receive) noexcept {
  const std::int64_t now = packets_.time_ns();
  if (membership_.sends_heartbeats && now - packets_.sent_ns(rank) >= interval_ns_) {
    packets_.send(rank, PacketKind::heartbeat);
  }
  const std::int64_t silent = now - packets_.received_ns(rank);
  if (std::string why = link_.why_lost(rank); !why.empty()) {
    receive_all(receive);
    mark_lost(rank, std::move(why));
  } else if (peers_[rank].sends_heartbeats && membership_.lost_after_ns > 0 &&
             silent > membership_.lost_after_ns) {
    std::array<char, 128> text{};
    fmt::format_to_n(text.data(), text.size() - 1, "has not answered for {} ms over {}",
                     silent / 1'000'000, link_.peer_info(rank).name);
    mark_lost(rank, reason(text.data()));
  }
}

}  // namespace weir::rt
