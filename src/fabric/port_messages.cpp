#include "fabric/port_messages.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_role.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

PortMessages::PortMessages(Transport& transport, const LostRanks& lost_ranks,
                           PortProgress& progress)
    : transport_(transport),
      info_(transport.info()),
      lost_ranks_(lost_ranks),
      progress_(progress),
      most_(std::min(kFrameBytes, info_.frame_bytes - sizeof(FrameHeader))),
      peers_(info_.ranks) {}

bool PortMessages::empty() const noexcept {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.messages.empty(); });
}

// ---- Sending ------------------------------------------------------------------------------------

/// Throws Error, also if the rank is lost.
void PortMessages::wait_for_room(Rank to, Channel channel, std::size_t bytes) {
  lost_ranks_.check_alive(to, "send to");
  if (to == info_.rank) check_room_here(channel, bytes);
  const sys::Atomic<std::size_t>& queued = peers_[to].queued;
  if (progress_.is_held()) {
    check_room_inside(to, channel, bytes);
  } else if (queued.load() > kQueuedBytes) {
    progress_.wait_until([&] { return queued.load() <= kQueuedBytes; }, -1, "room to send");
  }
}

void PortMessages::send(Rank to, Channel channel, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  wait_for_room(to, channel, head.size() + body.size());
  post(to, channel, head, body);
}

void PortMessages::post(Rank to, Channel channel, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  lost_ranks_.check_alive(to, "send to");
  const std::size_t bytes = head.size() + body.size();
  const bool inside = progress_.is_held();
  // After a part has been sent, the rest must be queued: allocate its memory first.
  Messages one = bytes > most_ ? room_for(to, channel, bytes) : Messages();
  if (!one.empty()) one.front().inside = inside;
  if (to != info_.rank && send_now(to, channel, {0, head, body}, one)) {
    const bool rest_waits = bytes > most_ && one.empty();
    if (rest_waits) progress_.notify();
    return;
  }
  if (one.empty()) one = room_for(to, channel, bytes);
  fill(one.front(), {0, head, body}, 0);
  one.front().inside = inside;
  submit(std::move(one));
}

void PortMessages::send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                                 std::span<std::byte> body) {
  Reserved memory(body.data(), Unreserve{&transport_.link()});
  wait_for_room(to, channel, head.size() + body.size());
  post(to, channel, head, std::move(memory), body.size());
}

void PortMessages::post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                                 std::span<std::byte> body) {
  post(to, channel, head, Reserved(body.data(), Unreserve{&transport_.link()}), body.size());
}

void PortMessages::post(Rank to, Channel channel, std::span<const std::byte> head, Reserved body,
                        std::size_t body_bytes) {
  lost_ranks_.check_alive(to, "send to");
  if (send_reserved_now(to, channel, head, body, body_bytes)) return;
  Messages one = room_for(to, channel, head.size());
  Message& message = one.front();
  message.bytes.assign(head.begin(), head.end());
  message.body = std::move(body);
  message.body_bytes = body_bytes;
  message.inside = progress_.is_held();
  submit(std::move(one));
}

/// Returns a list with one message, which has capacity but no bytes.
PortMessages::Messages PortMessages::room_for(Rank to, Channel channel, std::size_t bytes) {
  Messages one;
  one.push_back({to, channel, {}});
  one.front().bytes.reserve(bytes);
  return one;
}

void PortMessages::fill(Message& message, const MessageRest& rest, std::size_t from) {
  const std::size_t in_head = std::min(from, rest.head.size());
  message.bytes.insert(message.bytes.end(), rest.head.begin() + std::ptrdiff_t(in_head),
                       rest.head.end());
  message.bytes.insert(message.bytes.end(), rest.body.begin() + std::ptrdiff_t(from - in_head),
                       rest.body.end());
  message.before = from;
}

/// Throws Error if too many messages wait for a listener of this rank.
void PortMessages::check_room_here(Channel channel, std::size_t bytes) const {
  const auto index = static_cast<std::size_t>(channel);
  const std::size_t kept = kept_bytes_[index].load();
  if (kept == 0 || kept + bytes <= kKeptBytes) return;
  fail(WEIR_STATUS_BUSY,
       "cannot keep {} B more for a handler of rank {}: {} of {} MiB are full; set a handler first",
       bytes, info_.rank, kept >> 20, kKeptBytes >> 20);
}

/// Throws Error if listeners, which must not wait, have queued too much for a rank. Messages of
/// other threads and channels do not count, so that the program cannot make a subsystem of weir
/// fail.
void PortMessages::check_room_inside(Rank to, Channel channel, std::size_t bytes) const {
  const std::size_t queued = peers_[to].inside[static_cast<std::size_t>(channel)].load();
  if (queued == 0 || queued + bytes <= kKeptBytes) return;
  fail(
      WEIR_STATUS_BUSY,
      "cannot keep {} B more for rank {}: {} of {} MiB are full; send less in handlers, or outside",
      bytes, to, queued >> 20, kKeptBytes >> 20);
}

/// Sends as much as the transport takes now. If a part was sent, queues the rest as the next
/// message, in `room`. Returns false if nothing was sent.
bool PortMessages::send_now(Rank to, Channel channel, const MessageRest& message, Messages& room) {
  const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock);
  if (!progress_lock) return false;
  if (take_submissions()) push();
  Peer& peer = peers_[to];
  std::size_t sent = 0;
  if (!peer.messages.empty()) return false;
  if (send_frames(transport_, to, channel, message, most_, sent)) return true;
  if (sent == 0) return false;
  fill(room.front(), message, sent);
  note_waiting(room.front(), true);
  peer.messages.splice(peer.messages.end(), room);
  return true;
}

/// Returns false if nothing was sent, because earlier messages wait or the transport is full.
bool PortMessages::send_reserved_now(Rank to, Channel channel, std::span<const std::byte> head,
                                     Reserved& body, std::size_t body_bytes) {
  const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock);
  if (!progress_lock) return false;
  if (take_submissions()) push();
  return peers_[to].messages.empty() && send_reserved(to, channel, head, body, body_bytes);
}

/// On success the link owns the body.
bool PortMessages::send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                                 Reserved& body, std::size_t body_bytes) {
  const MessageRest message{0, head, {body.get(), body_bytes}};
  if (!send_reserved_frame(transport_, to, channel, message)) return false;
  static_cast<void>(body.release());
  return true;
}

/// Counts a message that begins or ends to wait for room.
void PortMessages::note_waiting(const Message& message, bool begins) noexcept {
  Peer& peer = peers_[message.rank];
  const std::size_t change = begins ? message.size() : 0 - message.size();
  peer.queued.fetch_add(change);
  if (message.inside) peer.inside[static_cast<std::size_t>(message.channel)].fetch_add(change);
}

void PortMessages::submit(Messages one) noexcept {
  note_waiting(one.front(), true);
  {
    sys::Lock lock(mutex_);
    submitted_.splice(submitted_.end(), one);
  }
  submissions_.fetch_add(1);
  if (const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock); progress_lock) {
    take_submissions();
    push();
  }
  progress_.notify();
}

bool PortMessages::take_submissions() noexcept {
  if (submissions_.load() == 0) return false;
  sys::Lock lock(mutex_);
  submissions_.store(0);
  while (!submitted_.empty()) {
    const Rank to = submitted_.front().rank;
    Messages& queue = to == info_.rank ? own_ : peers_[to].messages;
    queue.splice(queue.end(), submitted_, submitted_.begin());
  }
  return true;
}

bool PortMessages::push() noexcept {
  return push_to_all(info_.ranks, [this](Rank rank) { return push_to(rank); });
}

/// Returns whether the whole message has been sent.
bool PortMessages::send_rest(Message& message) {
  if (message.body != nullptr) {
    return send_reserved(message.rank, message.channel, message.bytes, message.body,
                         message.body_bytes);
  }
  return send_frames(transport_, message.rank, message.channel, {message.before, message.bytes},
                     most_, message.sent);
}

bool PortMessages::push_to(Rank to) {
  Peer& peer = peers_[to];
  bool moved = false;
  while (!peer.messages.empty()) {
    Message& message = peer.messages.front();
    const std::size_t before = message.sent;
    const bool complete = lost_ranks_.is_lost(to) || send_rest(message);
    moved |= complete || message.sent != before;
    if (!complete) break;
    note_waiting(message, false);
    peer.messages.pop_front();
  }
  return moved;
}

// ---- Receiving ----------------------------------------------------------------------------------

void PortMessages::listen(Channel channel, Listener* listener) {
  const PortProgress::ProgressLock progress_lock(progress_);
  const auto index = static_cast<std::size_t>(channel);
  listeners_[index] = listener;
  if (listener == nullptr) return;
  const NoWaitScope scope;
  while (!kept_[index].empty()) {
    Messages one;
    one.splice(one.begin(), kept_[index], kept_[index].begin());
    const Message& kept = one.front();
    kept_bytes_[index].fetch_sub(kept.bytes.size());
    listener->on_message(kept.rank, kept.bytes);
    if (listeners_[index] != listener) return;
  }
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (lost_ranks_.is_lost(rank)) listener->on_rank_lost(rank, lost_ranks_.loss_reason(rank));
  }
}

bool PortMessages::deliver_own() noexcept {
  bool any = false;
  for (std::size_t remaining = own_.size(); remaining > 0 && !own_.empty(); --remaining) {
    Messages one;
    one.splice(one.begin(), own_, own_.begin());
    const Message& message = one.front();
    progress_.waits().note_message();
    const auto index = static_cast<std::size_t>(message.channel);
    if (Listener* const listener = listeners_[index]) {
      const NoWaitScope scope;
      listener->on_message(info_.rank, message.bytes);
    } else {
      kept_bytes_[index].fetch_add(message.bytes.size());
      kept_[index].splice(kept_[index].end(), one);
    }
    note_waiting(message, false);
    any = true;
  }
  return any;
}

void PortMessages::arrived(Rank from, std::span<const std::byte> frame) {
  peers_[from].assembly.add(frame, spare_,
                            [&](Channel channel, std::span<const std::byte> message) {
                              deliver(from, channel, message);
                            });
}

void PortMessages::deliver(Rank from, Channel channel, std::span<const std::byte> message) {
  if (channel != Channel::watch) progress_.waits().note_message();
  const auto index = static_cast<std::size_t>(channel);
  if (Listener* const listener = listeners_[index]) {
    const NoWaitScope scope;
    return listener->on_message(from, message);
  }
  if (kept_bytes_[index].load() + message.size() > kKeptBytes) {
    fail(WEIR_STATUS_NETWORK_ERROR, "channel {} has no listener, and {} MiB are waiting there",
         index, kKeptBytes >> 20);
  }
  kept_[index].push_back({from, channel, std::vector<std::byte>(message.begin(), message.end())});
  kept_bytes_[index].fetch_add(message.size());
}

void PortMessages::lost(Rank rank, const std::string& why) noexcept {
  peers_[rank].assembly.clear();
  push();
  const NoWaitScope scope;
  for (Listener* const listener : listeners_) {
    if (listener != nullptr) listener->on_rank_lost(rank, why);
  }
}

}  // namespace weir::rt
