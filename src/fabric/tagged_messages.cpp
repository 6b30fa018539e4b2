#include "fabric/tagged_messages.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

std::uint64_t step_of(TaggedMessages::Key key) noexcept {
  return std::uint64_t{key.tag} << 32 | key.number;
}
TaggedMessages::Key key_of(std::uint64_t step) noexcept {
  return {static_cast<std::uint32_t>(step >> 32), static_cast<std::uint32_t>(step)};
}

std::string text_of_left(Rank rank) {
  return fmt::format("rank {} has destroyed the communicator", rank);
}

/// Copies a message to where it goes. Fails if it has another size, or belongs to another call.
Outcome unpack_into(const TaggedMessages::Operation& operation, Rank from,
                    std::span<const std::byte> data) {
  const Strided& memory = operation.memory;
  if (operation.call != nullptr && data.size() >= sizeof(CollectiveCall)) {
    const auto theirs = cut_off<CollectiveCall>(data);
    if (theirs != *operation.call) {
      return {WEIR_STATUS_INVALID_ARGUMENT,
              fmt::format("rank {} calls {} where this rank calls {}: all ranks must call the same",
                          from, text_of(theirs), text_of(*operation.call))};
    }
  }
  if (data.size() != memory.bytes()) {
    return {WEIR_STATUS_INVALID_ARGUMENT,
            fmt::format("rank {} has sent {} bytes with tag {}, and {} are expected", from,
                        data.size(), operation.key.tag, memory.bytes())};
  }
  if (!data.empty()) unpack(data.data(), memory);
  return {};
}

}  // namespace

TaggedMessages::TaggedMessages(GroupHub& hub, std::uint32_t number, std::vector<Rank> ranks)
    : hub_(hub), number_(number), ranks_(std::move(ranks)), peers_(ranks_.size()) {
  hub_.enter_as(*this, number_);
}

TaggedMessages::~TaggedMessages() {
  for (unsigned peer = 0; peer < ranks_.size(); ++peer) {
    if (ranks_[peer] == hub_.port().rank()) continue;
    try {
      post(peer, Kind::destroyed, 0);
    } catch (...) {  // the rank learns of it when this one leaves the fabric
    }
  }
  hub_.leave(number_);
}

unsigned TaggedMessages::rank_of(Rank rank) const noexcept {
  return static_cast<unsigned>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

/// Returns why no operation with this peer can begin.
Outcome TaggedMessages::why_not(unsigned peer) {
  if (!failure_.ok()) return failure_;
  if (peers_[peer].has_left) return {WEIR_STATUS_NETWORK_ERROR, text_of_left(ranks_[peer])};
  if (hub_.port().alive(ranks_[peer])) return {};
  return {WEIR_STATUS_NETWORK_ERROR, hub_.port().why_lost(ranks_[peer])};
}

// ---- Sending ------------------------------------------------------------------------------------

void TaggedMessages::send(Operation& operation) noexcept {
  const std::size_t bytes = operation.memory.bytes();
  bool asks = false;
  Outcome outcome;
  try {
    const sys::Lock lock(mutex_);
    outcome = why_not(operation.peer);
    Peer& peer = peers_[operation.peer];
    asks = bytes > kShort || peer.sent + bytes > peer.kept_until + kMostKept;
    if (outcome.ok() && asks) peer.outgoing.emplace(operation.key, &operation);
    if (outcome.ok() && !asks) peer.sent += bytes;
  } catch (...) {
    outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
  }
  if (!outcome.ok()) {
    refuse_send(operation.peer, operation.key, outcome.message.c_str());
    return operation.done(outcome);
  }
  if (!asks) return complete_send(operation);
  try {
    post(operation.peer, Kind::request, step_of(operation.key));
  } catch (...) {
    outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    {
      const sys::Lock lock(mutex_);
      if (peers_[operation.peer].outgoing.erase(operation.key) == 0) return;  // it has failed
    }
    refuse_send(operation.peer, operation.key, outcome.message.c_str());
    operation.done(outcome);
  }
}

/// Sends the data, or tells the receiver that it does not come.
void TaggedMessages::complete_send(Operation& operation) noexcept {
  const Outcome outcome = send_data(operation);
  if (!outcome.ok()) refuse_send(operation.peer, operation.key, outcome.message.c_str());
  operation.done(outcome);
}

Outcome TaggedMessages::send_data(const Operation& operation) noexcept {
  const Rank to = ranks_[operation.peer];
  const Strided memory = joined(operation.memory);
  const std::uint64_t step = step_of(operation.key);
  const auto kind = static_cast<GroupHub::Kind>(Kind::data);
  const std::span<const std::byte> call =
      operation.call != nullptr ? bytes_of(*operation.call) : std::span<const std::byte>();
  try {
    if (memory.contiguous()) {
      hub_.post(to, number_, kind, step, call, {memory.first, memory.bytes()});
      return {};
    }
    std::vector<std::byte> packed(memory.bytes());
    pack(memory, packed.data());
    hub_.post(to, number_, kind, step, call, packed);
    return {};
  } catch (...) {
    if (hub_.port().alive(to)) return current_exception_outcome(WEIR_STATUS_INTERNAL);
    return failed_outcome(WEIR_STATUS_NETWORK_ERROR, hub_.port().why_lost(to).c_str());
  }
}
/// Posts a message that a lost rank does not need.
void TaggedMessages::post(unsigned to, Kind kind, std::uint64_t step,
                          std::span<const std::byte> body) {
  try {
    hub_.post(ranks_[to], number_, static_cast<GroupHub::Kind>(kind), step, body);
  } catch (...) {
    if (hub_.port().alive(ranks_[to])) throw;
  }
}

void TaggedMessages::refuse_send(unsigned to, Key key, const char* why) noexcept {
  try {
    post(to, Kind::send_refused, step_of(key), std::as_bytes(std::span(std::string_view(why))));
  } catch (...) {  // the receiver waits until this rank leaves
  }
}

// ---- Receiving ----------------------------------------------------------------------------------

void TaggedMessages::receive(Operation& operation) noexcept {
  Outcome outcome;
  bool is_ready = false, acks = false, is_expected = false, refuses = false;
  std::uint64_t received = 0;
  try {
    const sys::Lock lock(mutex_);
    Peer& peer = peers_[operation.peer];
    const auto found = peer.incoming.find(operation.key);
    if (found == peer.incoming.end()) {
      outcome = why_not(operation.peer);
      is_expected = outcome.ok();
      refuses = !is_expected;
      if (is_expected) peer.incoming.emplace(operation.key, Incoming{.operation = &operation});
    } else if (found->second.is_requested) {
      assert(found->second.operation == nullptr);
      outcome = why_not(operation.peer);
      is_ready = is_expected = outcome.ok();
      refuses = !is_expected;
      if (is_expected) found->second.operation = &operation;
    } else {
      const Incoming early = std::move(found->second);
      peer.incoming.erase(found);
      outcome = early.failure;
      if (outcome.ok()) {
        outcome = unpack_into(operation, ranks_[operation.peer], early.data);
        acks = note_received(peer, early.data.size());
      }
      received = peer.received;
    }
  } catch (...) {
    outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    is_expected = false;
  }
  try {
    if (is_ready) post(operation.peer, Kind::ready, step_of(operation.key));
    if (acks) post(operation.peer, Kind::ack, received);
  } catch (...) {
    give_up(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  if (is_expected) return;
  if (refuses) refuse_receive(operation.peer, operation.key, outcome.message.c_str());
  operation.done(outcome);
}

/// Counts a short message that has been received. Returns whether to send an ack.
bool TaggedMessages::note_received(Peer& peer, std::size_t bytes) {
  if (bytes > kShort) return false;
  peer.received += bytes;
  if (peer.received - peer.acknowledged < kAckEvery) return false;
  peer.acknowledged = peer.received;
  return true;
}

void TaggedMessages::refuse_receive(unsigned from, Key key, const char* why) noexcept {
  if (!hub_.port().alive(ranks_[from])) return;
  try {
    {
      const sys::Lock lock(mutex_);
      auto& incoming = peers_[from].incoming;
      const auto found = incoming.find(key);
      if (found == incoming.end()) {
        Incoming refused{.is_refused = true};
        refused.failure = {WEIR_STATUS_NETWORK_ERROR, why};
        incoming.emplace(key, std::move(refused));
        return;
      }
      const bool waits = found->second.is_requested;
      if (!found->second.data.empty()) note_received(peers_[from], found->second.data.size());
      incoming.erase(found);
      if (!waits) return;
    }
    post(from, Kind::receive_refused, step_of(key),
         std::as_bytes(std::span(std::string_view(why))));
  } catch (...) {  // the sender waits until this rank leaves
  }
}

// ---- Called on the thread that makes progress ---------------------------------------------------

void TaggedMessages::received(Rank rank, GroupHub::Kind kind, std::uint64_t step,
                              std::span<const std::byte> body) noexcept {
  const unsigned from = rank_of(rank);
  if (from == ranks_.size()) {
    return hub_.port().drop(rank, "sends a message to a group that it is not in");
  }
  try {
    switch (static_cast<Kind>(kind)) {
      case Kind::data: return take(from, key_of(step), body);
      case Kind::request: return take_request(from, key_of(step));
      case Kind::ready: return take_ready(from, key_of(step));
      case Kind::send_refused: return take_refusal(from, key_of(step), true, body);
      case Kind::receive_refused: return take_refusal(from, key_of(step), false, body);
      case Kind::ack: {
        const sys::Lock lock(mutex_);
        peers_[from].kept_until = std::max(peers_[from].kept_until, step);
        return;
      }
      case Kind::destroyed: {
        {
          const sys::Lock lock(mutex_);
          peers_[from].has_left = true;
        }
        return fail_peer(from, {WEIR_STATUS_NETWORK_ERROR, text_of_left(rank)});
      }
      case Kind::given_up: return fail_all(decode_outcome(body));
    }
    hub_.port().drop(rank, "sends a message of a group that this version does not know");
  } catch (...) {
    give_up(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
}

void TaggedMessages::take(unsigned from, Key key, std::span<const std::byte> body) {
  Operation* operation = nullptr;
  bool acks = false;
  std::uint64_t received = 0;
  {
    const sys::Lock lock(mutex_);
    Peer& peer = peers_[from];
    const auto found = peer.incoming.find(key);
    if (found == peer.incoming.end()) {
      Incoming early;
      early.data.assign(body.begin(), body.end());
      peer.incoming.emplace(key, std::move(early));
      return;
    }
    operation = found->second.operation;  // null: refused
    peer.incoming.erase(found);
    acks = note_received(peer, body.size());
    received = peer.received;
  }
  if (operation != nullptr) operation->done(unpack_into(*operation, ranks_[from], body));
  if (acks) post(from, Kind::ack, received);
}

void TaggedMessages::take_request(unsigned from, Key key) {
  std::string why;
  bool is_refused = false;
  {
    const sys::Lock lock(mutex_);
    Incoming& incoming = peers_[from].incoming[key];
    incoming.is_requested = true;
    is_refused = incoming.is_refused;
    if (is_refused) {
      why = std::move(incoming.failure.message);
      peers_[from].incoming.erase(key);
    } else if (incoming.operation == nullptr) {
      return;
    }
  }
  if (!is_refused) return post(from, Kind::ready, step_of(key));
  post(from, Kind::receive_refused, step_of(key), std::as_bytes(std::span(why)));
}

void TaggedMessages::take_ready(unsigned from, Key key) {
  Operation* operation = nullptr;
  {
    const sys::Lock lock(mutex_);
    auto& outgoing = peers_[from].outgoing;
    const auto found = outgoing.find(key);
    if (found == outgoing.end()) return;
    operation = found->second;
    outgoing.erase(found);
  }
  complete_send(*operation);
}

void TaggedMessages::take_refusal(unsigned from, Key key, bool of_send,
                                  std::span<const std::byte> text) {
  const Outcome why{WEIR_STATUS_NETWORK_ERROR,
                    fmt::format("rank {}: {}", ranks_[from], as_text(text))};
  Outcome kept = of_send ? why : Outcome();
  Operation* operation = nullptr;
  {
    const sys::Lock lock(mutex_);
    Peer& peer = peers_[from];
    if (of_send) {
      Incoming& incoming = peer.incoming[key];
      operation = incoming.operation;
      incoming.is_requested = false;
      incoming.failure = std::move(kept);
      if (operation != nullptr || incoming.is_refused) peer.incoming.erase(key);
    } else if (const auto found = peer.outgoing.find(key); found != peer.outgoing.end()) {
      operation = found->second;
      peer.outgoing.erase(found);
    }
  }
  if (operation != nullptr) operation->done(why);
}

// ---- Failures -----------------------------------------------------------------------------------

void TaggedMessages::lost(Rank rank, const std::string& why) noexcept {
  const unsigned peer = rank_of(rank);
  if (peer == ranks_.size()) return;
  fail_peer(peer, failed_outcome(WEIR_STATUS_NETWORK_ERROR, why.c_str()));
}

/// Completes the operations in progress with a peer, and tells it. Messages that have arrived stay.
void TaggedMessages::fail_peer(unsigned peer, const Outcome& why) noexcept {
  for (;;) {
    Operation* operation = nullptr;
    bool is_send = false;
    {
      const sys::Lock lock(mutex_);
      Peer& with = peers_[peer];
      const auto expected =
          std::find_if(with.incoming.begin(), with.incoming.end(),
                       [](const auto& each) { return each.second.operation != nullptr; });
      is_send = !with.outgoing.empty();
      if (is_send) {
        operation = with.outgoing.begin()->second;
        with.outgoing.erase(with.outgoing.begin());
      } else if (expected != with.incoming.end()) {
        operation = expected->second.operation;
        with.incoming.erase(expected);
      }
    }
    if (operation == nullptr) return;
    is_send ? refuse_send(peer, operation->key, why.message.c_str())
            : refuse_receive(peer, operation->key, why.message.c_str());
    operation->done(why);
  }
}

void TaggedMessages::fail_all(const Outcome& why) noexcept {
  {
    const sys::Lock lock(mutex_);
    if (failure_.ok()) failure_ = failed_outcome(why.status, why.message.c_str());
  }
  for (unsigned peer = 0; peer < ranks_.size(); ++peer) fail_peer(peer, why);
}

void TaggedMessages::give_up(const Outcome& why) noexcept {
  fail_all(why);
  try {
    const std::vector<std::byte> body = encode(why);
    for (unsigned peer = 0; peer < ranks_.size(); ++peer) {
      if (ranks_[peer] != hub_.port().rank()) post(peer, Kind::given_up, 0, body);
    }
  } catch (...) {  // the others wait until this rank leaves
  }
}

}  // namespace weir::rt
