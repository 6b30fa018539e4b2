#include "fabric/port_queues.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

/// Calls push_to(rank) for all ranks. Returns whether one of them moved something.
template <class PushTo>
bool push_to_all(Rank ranks, PushTo&& push_to) noexcept {
  bool moved = false;
  for (Rank rank = 0; rank < ranks; ++rank) {
    try {
      moved |= push_to(rank);
    } catch (...) {  // no memory: the next pass tries again
    }
  }
  return moved;
}

}  // namespace

// ==== Messages ==================================================================================

MessageQueues::MessageQueues(Transport& transport, const LostRanks& lost_ranks, WaitRegistry& waits)
    : transport_(transport),
      info_(transport.info()),
      lost_ranks_(lost_ranks),
      waits_(waits),
      most_(std::min(kFrameBytes, info_.frame_bytes - sizeof(FrameHeader))),
      peers_(info_.ranks) {}

bool MessageQueues::empty() const noexcept {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.messages.empty(); });
}

// ---- Sending ------------------------------------------------------------------------------------

void MessageQueues::Message::fill(const MessageRest& rest, std::size_t from) {
  const std::size_t in_head = std::min(from, rest.head.size());
  bytes.insert(bytes.end(), rest.head.begin() + std::ptrdiff_t(in_head), rest.head.end());
  bytes.insert(bytes.end(), rest.body.begin() + std::ptrdiff_t(from - in_head), rest.body.end());
  before = from;
}

void MessageQueues::check_room_here(Channel channel, std::size_t bytes) const {
  const auto index = static_cast<std::size_t>(channel);
  const std::size_t kept = kept_bytes_[index].load();
  if (kept == 0 || kept + bytes <= kKeptBytes) return;
  fail(WEIR_STATUS_BUSY,
       "cannot keep {} B more for a handler of rank {}: {} of {} MiB are full; set a handler first",
       bytes, info_.rank, kept >> 20, kKeptBytes >> 20);
}

void MessageQueues::check_room_inside(Rank to, Channel channel, std::size_t bytes) const {
  const std::size_t queued = peers_[to].inside[static_cast<std::size_t>(channel)].load();
  if (queued == 0 || queued + bytes <= kKeptBytes) return;
  fail(
      WEIR_STATUS_BUSY,
      "cannot keep {} B more for rank {}: {} of {} MiB are full; send less in handlers, or outside",
      bytes, to, queued >> 20, kKeptBytes >> 20);
}

bool MessageQueues::send(Rank to, Channel channel, const MessageRest& message, Messages& room) {
  if (take_submissions()) push();
  Peer& peer = peers_[to];
  std::size_t sent = 0;
  if (!peer.messages.empty()) return false;
  if (send_frames(transport_, to, channel, message, most_, sent)) return true;
  if (sent == 0) return false;
  room.front().fill(message, sent);
  note_waiting(room.front(), true);
  peer.messages.splice(peer.messages.end(), room);
  return true;
}

bool MessageQueues::send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                                  Reserved& body, std::size_t body_bytes) {
  if (take_submissions()) push();
  return peers_[to].messages.empty() && send_with_body(to, channel, head, body, body_bytes);
}

/// On success the link owns the body.
bool MessageQueues::send_with_body(Rank to, Channel channel, std::span<const std::byte> head,
                                   Reserved& body, std::size_t body_bytes) {
  const MessageRest message{0, head, {body.get(), body_bytes}};
  if (!send_reserved_frame(transport_, to, channel, message)) return false;
  static_cast<void>(body.release());
  return true;
}

/// Counts a message that begins or ends to wait for room.
void MessageQueues::note_waiting(const Message& message, bool begins) noexcept {
  Peer& peer = peers_[message.rank];
  const std::size_t change = begins ? message.size() : 0 - message.size();
  peer.queued.fetch_add(change);
  if (message.inside) peer.inside[static_cast<std::size_t>(message.channel)].fetch_add(change);
}

void MessageQueues::submit(Messages one) noexcept {
  note_waiting(one.front(), true);
  {
    sys::Lock lock(mutex_);
    submitted_.splice(submitted_.end(), one);
  }
  submissions_.fetch_add(1);
}

bool MessageQueues::take_submissions() noexcept {
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

bool MessageQueues::push() noexcept {
  return push_to_all(info_.ranks, [this](Rank rank) { return push_to(rank); });
}

/// Returns whether the whole message has been sent.
bool MessageQueues::send_rest(Message& message) {
  if (message.body != nullptr) {
    return send_with_body(message.rank, message.channel, message.bytes, message.body,
                          message.body_bytes);
  }
  return send_frames(transport_, message.rank, message.channel, {message.before, message.bytes},
                     most_, message.sent);
}

bool MessageQueues::push_to(Rank to) {
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

void MessageQueues::listen(Channel channel, Listener* listener) {
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

bool MessageQueues::deliver_own() noexcept {
  bool any = false;
  for (std::size_t remaining = own_.size(); remaining > 0 && !own_.empty(); --remaining) {
    Messages one;
    one.splice(one.begin(), own_, own_.begin());
    const Message& message = one.front();
    waits_.note_message();
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

void MessageQueues::arrived(Rank from, std::span<const std::byte> frame) {
  peers_[from].assembly.add(frame, spare_,
                            [&](Channel channel, std::span<const std::byte> message) {
                              deliver(from, channel, message);
                            });
}

void MessageQueues::deliver(Rank from, Channel channel, std::span<const std::byte> message) {
  if (channel != Channel::watch) waits_.note_message();
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

void MessageQueues::lost(Rank rank, const std::string& why) noexcept {
  peers_[rank].assembly.clear();
  push();
  const NoWaitScope scope;
  for (Listener* const listener : listeners_) {
    if (listener != nullptr) listener->on_rank_lost(rank, why);
  }
}

// ==== Operations ================================================================================

bool OperationQueues::empty() const noexcept {
  return std::all_of(waiting_.begin(), waiting_.end(),
                     [](const Operations& each) { return each.empty(); });
}

void OperationQueues::submit(Operations& some) noexcept {
  {
    const sys::Lock lock(mutex_);
    submitted_.splice(submitted_.end(), some);
  }
  submissions_.fetch_add(1);
}

void OperationQueues::start(Operations& some) noexcept {
  take_submissions();
  if (!some.empty()) {
    Operations& queue = waiting_[some.front().operation.target];
    queue.splice(queue.end(), some);
  }
  push();
}

bool OperationQueues::take_submissions() noexcept {
  if (submissions_.load() == 0) return false;
  const sys::Lock lock(mutex_);
  submissions_.store(0);
  while (!submitted_.empty()) {
    Operations& queue = waiting_[submitted_.front().operation.target];
    queue.splice(queue.end(), submitted_, submitted_.begin());
  }
  return true;
}

bool OperationQueues::push() noexcept {
  return push_to_all(info_.ranks, [this](Rank rank) { return push_to(rank); });
}

bool OperationQueues::push_to(Rank to) {
  Operations& queue = waiting_[to];
  bool moved = false;
  while (!queue.empty()) {
    const auto first = queue.begin();
    const bool lost_ranks = lost_ranks_.is_lost(to);
    if (!lost_ranks && !transport_.start(first->operation)) break;
    under_way_.splice(under_way_.end(), queue, first);
    moved = true;
    if (lost_ranks) completed(first->operation.token, 0, lost_ranks_.outcome(to));
  }
  return moved;
}

void OperationQueues::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  const Started& started = *static_cast<const Started*>(token);
  Operations one;
  one.splice(one.begin(), under_way_, started.self);
  finish(started, old, std::move(outcome));
}

void OperationQueues::finish(const Started& started, std::int64_t old, Outcome outcome) noexcept {
  Account& account = *started.account;
  const Rank to = started.operation.target;
  if (started.done != nullptr) {
    const NoWaitScope scope;
    started.done->completed(old, outcome);
  } else if (!outcome.ok()) {
    const SpinGuard guard(account.lock);
    if (account.failures[to].ok()) account.failures[to] = std::move(outcome);
  }
  account.pending[to].fetch_sub(1);
}

}  // namespace weir::rt
