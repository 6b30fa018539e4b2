#include "conveyor/conveyor.hpp"

#include <algorithm>
#include <cstring>

#include "base/thread_role.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

using Kind = ConveyorHub::MessageKind;

/// Acks per full window, so that no sender waits for long.
constexpr std::uint64_t kAcksInFlight = 4;

GroupHub::Kind kind_of(Kind kind, bool asks) noexcept {
  return static_cast<GroupHub::Kind>(asks ? kind | Kind::asks : kind);
}

void raise(sys::Atomic<std::uint64_t>& most, std::uint64_t value) noexcept {
  std::uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

Conveyor::Conveyor(ConveyorHub& hub, Collectives& collectives, ConveyorSetup setup)
    : hub_(hub),
      port_(hub.port()),
      setup_(std::move(setup)),
      packet_bytes_(setup_.block_bytes > 0 ? setup_.block_bytes : kPacketBytes),
      peers_(port_.ranks()) {
  hub_.enter(*this, number_);
  try {
    note_earlier_losses();
    join(collectives);
  } catch (...) {
    hub_.leave(number_);
    throw;
  }
}

void Conveyor::note_earlier_losses() {
  const Port::ListenerScope scope(port_);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (!port_.alive(rank)) lost(rank, port_.why_lost(rank));
  }
}

Conveyor::~Conveyor() {
  hub_.leave(number_);
  release_lent();
}

void Conveyor::join(Collectives& collectives) {
  const std::string what = fmt::format("creation of conveyor '{}' with handlers for [{}] bytes",
                                       setup_.name, fmt::join(setup_.handler_bytes, ", "));
  const std::uint64_t bytes = setup_.bytes;
  const auto sizes =
      collectives.exchange(what, std::as_bytes(std::span(&bytes, 1)), setup_.timeout_ns);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (sizes[rank].size() != sizeof bytes) {
      fail(WEIR_STATUS_NETWORK_ERROR, "rank {} has sent {} bytes for the {}", rank,
           sizes[rank].size(), what);
    }
    std::memcpy(&peers_[rank].bytes, sizes[rank].data(), sizeof bytes);
  }
}

void Conveyor::check_peer(Rank rank) const {
  const Peer& peer = peers_[rank];
  if (!peer.applied.failed()) [[likely]]
    return;
  throw Error(peer.failure.status, peer.failure.message);
}

void Conveyor::add(ItemSource& source) {
  const sys::Lock lock(mutex_);
  sources_.push_back(&source);
}

void Conveyor::remove(ItemSource& source) noexcept {
  const sys::Lock lock(mutex_);
  std::erase(sources_, &source);
}

// ---- Sending ------------------------------------------------------------------------------------

LentMemory* Conveyor::lend(Rank to, std::size_t bytes, std::int64_t deadline_ns) noexcept {
  Peer& peer = peers_[to];
  {
    const sys::Lock lock(peer.sending);
    const std::uint64_t applied = peer.applied.count();
    for (LentMemory& each : peer.lent) {
      if (each.open || each.block > applied) continue;
      each.open = true;
      return &each;
    }
    if (!peer.lends || !port_.peer_info(to).shares_memory) return nullptr;
  }
  bool can = true;
  std::list<LentMemory> one = allocate_lent(bytes, deadline_ns, can);
  const sys::Lock lock(peer.sending);
  peer.lends = peer.lends && can;
  if (one.empty()) return nullptr;
  peer.lent.splice(peer.lent.end(), one);
  return &peer.lent.back();
}

/// Called without a lock: an allocating thread waits for the progress lock, whose holder may close
/// a producer.
std::list<LentMemory> Conveyor::allocate_lent(std::size_t bytes, std::int64_t deadline_ns,
                                              bool& out_can) noexcept {
  std::list<LentMemory> one;
  try {
    LentMemory& memory = one.emplace_back();
    memory.bytes = static_cast<std::byte*>(port_.allocate(bytes, deadline_ns));
    if (memory.bytes == nullptr) return {};
    if (const auto offset = port_.offset_of(memory.bytes)) {
      memory.offset = *offset;
      return one;
    }
    port_.release(memory.bytes);
  } catch (...) {  // no memory
  }
  out_can = false;
  return {};
}

BlockMemory Conveyor::memory_for(Rank to, const BlockWriter& writer,
                                 std::int64_t deadline_ns) noexcept {
  BlockMemory memory{.lent = lend(to, writer.memory_bytes(), deadline_ns)};
  const std::size_t bytes = writer.packet_bytes(packet_bytes_);
  const bool travels = memory.lent == nullptr && to != port_.rank();
  if (travels && bytes <= port_.info().reserved_bytes) memory.reserved = port_.reserve(to, bytes);
  return memory;
}

void Conveyor::reclaim(Rank to, BlockMemory& memory) noexcept {
  const auto [lent, reserved] = std::exchange(memory, {});
  if (reserved != nullptr) port_.unreserve(reserved);
  if (lent == nullptr) return;
  const sys::Lock lock(peers_[to].sending);
  lent->open = false;
}

/// Called by the destructor, when no message is delivered any more.
void Conveyor::release_lent() noexcept {
  for (Rank rank = 0; rank < ranks(); ++rank) {
    Peer& peer = peers_[rank];
    std::vector<std::byte*> memory;
    const std::uint64_t sent = peer.sent.load(), applied = peer.applied.count();
    try {
      const sys::Lock lock(peer.sending);
      for (const LentMemory& each : peer.lent) memory.push_back(each.bytes);
    } catch (...) {  // no memory: the port's destructor frees the rest
    }
    if (memory.empty()) continue;
    if (applied < sent && peer.reads) {
      hub_.release_later(number_, rank, sent, std::move(memory));
      continue;
    }
    for (std::byte* const each : memory) port_.release(each);
  }
}

void Conveyor::send_message(Rank to, BlockWriter& writer, BlockMemory& memory, bool ask) {
  if (std::byte* const block = std::exchange(memory.reserved, nullptr)) {
    const auto parts = writer.close({});
    const auto bytes = static_cast<std::size_t>(parts.head.data() + parts.head.size() - block);
    const auto head = GroupHub::head(number_, kind_of(Kind::packet, ask), parts.data.size());
    return port_.post_reserved(to, Channel::conveyor, bytes_of(head), {block, bytes});
  }
  if (memory.lent == nullptr) {
    const auto head = GroupHub::head(number_, kind_of(Kind::block, ask), 0);
    const auto parts = writer.close(bytes_of(head));
    return port_.post(to, Channel::conveyor, parts.head, parts.data);
  }
  const auto parts = writer.close({});
  const auto offset_of = [&memory = *memory.lent](std::span<const std::byte> part) {
    return memory.offset + static_cast<std::uint64_t>(part.data() - memory.bytes);
  };
  const LentBlock block{offset_of(parts.head), parts.head.size(), offset_of(parts.data),
                        parts.data.size()};
  hub_.post(to, number_, kind_of(Kind::lent, ask), 0, bytes_of(block));
}

std::uint64_t Conveyor::send_block(Rank to, BlockWriter& writer, BlockMemory& memory, bool ask,
                                   std::int64_t deadline_ns) {
  Peer& peer = peers_[to];
  const std::uint64_t limit = setup_.blocks_in_flight;
  const auto in_flight = [&peer] {
    // An ack may come before its block has been counted as sent.
    const std::uint64_t applied = peer.applied.count();
    return std::max(peer.sent.load(std::memory_order_relaxed), applied) - applied;
  };
  for (;;) {
    {
      const sys::Lock lock(peer.sending);
      check_peer(to);
      if (in_flight() < limit) {
        const std::uint64_t block = peer.sent.load(std::memory_order_relaxed) + 1;
        ask = ask || block % std::max<std::uint64_t>(limit / kAcksInFlight, 1) == 0;
        const std::uint64_t others = in_flight();
        send_message(to, writer, memory, ask);
        peer.sent.store(block, std::memory_order_relaxed);
        if (ask) peer.asked = block;
        if (LentMemory* const lent = std::exchange(memory.lent, nullptr)) {
          lent->block = block;
          lent->open = false;
        }
        count(writer.count(), sizeof(GroupHub::Head) + writer.closed_bytes(), others + 1);
        return block;
      }
    }
    const bool free = port_.wait_until([&] { return in_flight() < limit || peer.applied.failed(); },
                                       time_left(deadline_ns), "a conveyor's blocks being applied");
    if (!free) return 0;
  }
}

void Conveyor::ask_for(Rank rank, std::uint64_t block) {
  Peer& peer = peers_[rank];
  const sys::Lock lock(peer.sending);
  if (peer.asked >= block || peer.applied.is_complete(block)) return;
  hub_.post(rank, number_, Kind::ask, 0);
  peer.asked = peer.sent.load(std::memory_order_relaxed);
}

bool Conveyor::wait_for(Rank rank, std::uint64_t block, std::int64_t deadline_ns) {
  const Peer& peer = peers_[rank];
  if (!peer.applied.is_complete(block) &&
      !port_.wait_until([&] { return peer.applied.is_complete(block); }, time_left(deadline_ns),
                        "a conveyor's items being applied")) {
    return false;
  }
  if (peer.applied.count() < block) check_peer(rank);
  return true;
}

void Conveyor::count(const BlockCount& block, std::size_t wire_bytes,
                     std::uint64_t in_flight) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  totals_.items.fetch_add(block.items, relaxed);
  totals_.item_bytes.fetch_add(block.bytes, relaxed);
  totals_.combined.fetch_add(block.combined, relaxed);
  totals_.joined.fetch_add(block.joined, relaxed);
  totals_.blocks.fetch_add(1, relaxed);
  totals_.wire_bytes.fetch_add(wire_bytes, relaxed);
  raise(totals_.most_in_flight, in_flight);
}

void Conveyor::check_may_wait() const {
  if (!NoWaitScope::active() && !port_.inside_listener()) [[likely]]
    return;
  fail(WEIR_STATUS_BUSY, "a handler, a kernel or a callback cannot use a conveyor: it may wait");
}

void Conveyor::finish(std::int64_t timeout_ns) {
  check_may_wait();
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  std::vector<ItemSource*> sources;
  {
    const sys::Lock lock(mutex_);
    sources = sources_;
  }
  bool in_time = true;
  for (ItemSource* const source : sources) in_time &= source->send_all(deadline);
  for (ItemSource* const source : sources) in_time = in_time && source->wait_all(deadline);
  if (!in_time) {
    fail(WEIR_STATUS_TIMEOUT, "not all items of conveyor '{}' have been applied yet", setup_.name);
  }
  const Outcome barrier = port_.barrier(time_left(deadline));
  if (!barrier.ok()) throw Error(barrier.status, barrier.message);
  Outcome first;
  for (ItemSource* const source : sources) {
    Outcome outcome = source->take_failure();
    if (first.ok()) first = std::move(outcome);
  }
  {
    const sys::Lock lock(mutex_);
    if (first.ok()) first = std::exchange(failure_, {});
  }
  if (!first.ok()) throw Error(first.status, first.message);
}

weir_conveyor_info Conveyor::counts() const noexcept {
  const auto load = [](const sys::Atomic<std::uint64_t>& total) {
    return total.load(std::memory_order_relaxed);
  };
  return {sizeof(weir_conveyor_info), load(totals_.items),          load(totals_.item_bytes),
          load(totals_.combined),     load(totals_.joined),         load(totals_.blocks),
          load(totals_.wire_bytes),   load(totals_.most_in_flight), load(totals_.blocks_applied)};
}

// ---- Receiving ----------------------------------------------------------------------------------

void Conveyor::received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                        std::span<const std::byte> body) noexcept {
  Peer& peer = peers_[from];
  const auto type = static_cast<GroupHub::Kind>(kind & ~Kind::asks);
  const bool asks = kind == Kind::ask || type != kind;
  try {
    switch (type) {
      case Kind::block:
      case Kind::packet:
      case Kind::lent: apply(from, type, step, body); break;
      case Kind::ack: return take_ack(from, step);
      case Kind::refusal:
        return take_refusal(from, {reinterpret_cast<const char*>(body.data()), body.size()});
      case Kind::ask:  // from a rank that left before it received the refusal
        if (peer.refused) return send_refusal(from, "it has refused one before");
        break;
    }
    if (asks && !peer.refused) hub_.post(from, number_, Kind::ack, peer.received);
  } catch (...) {
    fail_peer(from, WEIR_STATUS_NETWORK_ERROR,
              current_exception_outcome(WEIR_STATUS_INTERNAL).message);
    const bool waits = asks && from != port_.rank();  // which it could do forever
    if (waits) port_.drop(from, "could not be sent an acknowledgement");
  }
}

void Conveyor::take_ack(Rank from, std::uint64_t blocks) {
  Peer& peer = peers_[from];
  const std::uint64_t sent = peer.sent.load(std::memory_order_relaxed);
  const std::uint64_t applied = peer.applied.count();
  // The last block may not have been counted as sent yet.
  if (blocks < applied || blocks > sent + 1) {
    fail(WEIR_STATUS_NETWORK_ERROR,
         "rank {} says that {} of {} blocks of conveyor '{}' are applied", from, blocks, sent,
         setup_.name);
  }
  peer.applied.acknowledge(blocks);
}

/// finish() reports the failure too, because the producer of the block may no longer exist.
void Conveyor::take_refusal(Rank from, std::string_view why) {
  peers_[from].reads = false;
  std::string message =
      fmt::format("rank {} refused a block of conveyor '{}': {}", from, setup_.name, why);
  fail_peer(from, WEIR_STATUS_NETWORK_ERROR, message);
  note_failure({WEIR_STATUS_NETWORK_ERROR, std::move(message)});
}

BlockTarget Conveyor::target() noexcept {
  return {setup_.memory, setup_.bytes, setup_.handler_bytes, this};
}

void Conveyor::apply(Rank from, GroupHub::Kind kind, std::uint64_t data_bytes,
                     std::span<const std::byte> message) {
  Peer& peer = peers_[from];
  if (peer.refused) return;
  from_ = from;
  std::string wrong;
  try {
    wrong = apply_to_memory(from, kind, data_bytes, message);
  } catch (const std::bad_alloc&) {
    wrong = "came when there was no memory";
  }
  if (!wrong.empty()) return refuse(from, wrong);
  ++peer.received;
  totals_.blocks_applied.fetch_add(1, std::memory_order_relaxed);
}

std::string Conveyor::apply_to_memory(Rank from, GroupHub::Kind kind, std::uint64_t data,
                                      std::span<const std::byte> message) {
  if (kind == Kind::lent) return apply_lent(from, message);
  if (kind == Kind::block) return apply_block(message, target(), scratch_);
  const std::uint64_t head = data + 15 - (data + 15) % 16;
  if (data > message.size() || head > message.size()) {
    return fmt::format("claims {} bytes of data where it has {}", data, message.size());
  }
  return apply_block(message.subspan(head), message.first(data), target(), scratch_);
}

std::string Conveyor::apply_lent(Rank from, std::span<const std::byte> message) {
  LentBlock block;
  if (message.size() != sizeof block)
    return fmt::format("is described in {} bytes", message.size());
  std::memcpy(&block, message.data(), sizeof block);
  const std::byte* const head = port_.memory_of(from, block.head, block.head_bytes);
  const std::byte* const data = port_.memory_of(from, block.data, block.data_bytes);
  if (head == nullptr || data == nullptr) return "is not in the memory that the rank shares";
  return apply_block({head, block.head_bytes}, {data, block.data_bytes}, target(), scratch_);
}

void Conveyor::handle(std::uint16_t handler, const std::byte* items, std::size_t count) {
  Outcome outcome;
  {
    const NoWaitScope scope;
    outcome = setup_.handlers[handler](from_, items, count);
  }
  if (!outcome.ok()) note_failure(std::move(outcome));
}

void Conveyor::refuse(Rank from, const std::string& why) {
  peers_[from].refused = true;
  note_failure({WEIR_STATUS_NETWORK_ERROR, fmt::format("a block of rank {} {}", from, why)});
  send_refusal(from, "it " + why);
}

void Conveyor::send_refusal(Rank to, std::string_view why) {
  hub_.post(to, number_, Kind::refusal, 0, std::as_bytes(std::span(why)));
}

void Conveyor::lost(Rank rank, const std::string& why) noexcept {
  fail_peer(rank, WEIR_STATUS_NETWORK_ERROR, why);
}

void Conveyor::fail_peer(Rank rank, weir_status status, const std::string& message) noexcept {
  Peer& peer = peers_[rank];
  if (peer.applied.failed()) return;
  peer.failure = failed_outcome(status, message.c_str());
  peer.applied.fail();
}

void Conveyor::note_failure(Outcome outcome) noexcept {
  const sys::Lock lock(mutex_);
  if (failure_.ok()) failure_ = std::move(outcome);
}

}  // namespace weir::rt
