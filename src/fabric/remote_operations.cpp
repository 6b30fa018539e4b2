#include "fabric/remote_operations.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::rt {

namespace {

std::string refusal(const OneSided& operation) {
  if (operation.kind == OneSidedKind::fetch_add || operation.kind == OneSidedKind::compare_swap) {
    return fmt::format(
        "rank {} refuses an atomic operation: it has no window {} with an aligned "
        "word at {}",
        operation.target, operation.window, operation.offset);
  }
  return fmt::format("rank {} refuses access: it has no window {} with the bytes {} to {}",
                     operation.target, operation.window, operation.offset,
                     operation.offset + operation.bytes);
}

PacketKind answer_to(OneSidedKind operation) noexcept {
  if (operation == OneSidedKind::put) return PacketKind::put_done;
  return operation == OneSidedKind::get ? PacketKind::get_part : PacketKind::change_done;
}

}  // namespace

RemoteOperations::RemoteOperations(Link& link, PacketStreams& packets, const Liveness& liveness)
    : link_(link), packets_(packets), liveness_(liveness), slots_(kMost) {
  free_.reserve(kMost);
  completed_.reserve(kMost);
  delivering_.reserve(kMost);
  unsent_.reserve(kMost);
  for (std::uint32_t i = kMost; i > 0; --i) free_.push_back(i - 1);
}

bool RemoteOperations::start(const OneSided& operation) {
  assert(operation.target != link_.info().rank);
  if (completed_.size() >= free_.size()) return false;
  const std::uint32_t index = free_.back();
  unsent_.push_back(index);
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.operation = operation;
  slot.cursor = 0;
  slot.live = slot.direct = true;
  bool moved = false;
  if (unsent_.size() == 1 && push(slot, index, moved)) unsent_.pop_back();
  return true;
}

/// Returns whether nothing remains to be sent.
bool RemoteOperations::push(Slot& slot, std::uint32_t index, bool& moved) noexcept {
  const OneSided& operation = slot.operation;
  if (!slot.live) return true;
  if (liveness_.is_lost(operation.target)) return true;  // fail_all_on() completes the operation
  std::int64_t old = 0;
  std::optional<Outcome> outcome;
  if (slot.direct) outcome = link_.direct(operation, slot.cursor, old);
  if (!outcome) return push_packets(slot, index, moved);
  moved = true;
  const bool is_complete = !outcome->ok() || slot.cursor >= operation.bytes;
  if (is_complete) complete(slot, old, *outcome);
  return is_complete;
}

bool RemoteOperations::push_packets(Slot& slot, std::uint32_t index, bool& moved) noexcept {
  const OneSided& operation = slot.operation;
  if (std::exchange(slot.direct, false)) slot.cursor = 0;
  const std::uint64_t token = std::uint64_t{slot.generation} << 32 | index;
  if (operation.kind == OneSidedKind::get) {
    const GetPacket get{token, operation.offset, operation.bytes, operation.window, 0};
    const bool sent = packets_.send_struct(operation.target, PacketKind::get, get);
    moved |= sent;
    return sent;
  }
  if (operation.kind != OneSidedKind::put) {
    const ChangePacket change{token,
                              operation.offset,
                              operation.operand,
                              operation.expected,
                              operation.window,
                              static_cast<std::uint32_t>(operation.kind)};
    const bool sent = packets_.send_struct(operation.target, PacketKind::change, change);
    moved |= sent;
    return sent;
  }
  const std::size_t most = packets_.body_bytes() - sizeof(PutPacket);
  for (;;) {
    const std::size_t piece = std::min<std::uint64_t>(most, operation.bytes - slot.cursor);
    const bool last = slot.cursor + piece == operation.bytes;
    const PutPacket put{token, operation.offset + slot.cursor, operation.window, last};
    const std::span<const std::byte> body(operation.local + slot.cursor, piece);
    if (!packets_.send_struct(operation.target, PacketKind::put, put, body)) return false;
    moved = true;
    slot.cursor += piece;
    if (last) return true;
  }
}

bool RemoteOperations::push() noexcept {
  bool moved = false;
  std::erase_if(unsent_, [&](std::uint32_t index) { return push(slots_[index], index, moved); });
  return moved;
}

RemoteOperations::Slot* RemoteOperations::find(std::uint64_t token, Rank from) noexcept {
  const auto index = static_cast<std::uint32_t>(token);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  const bool same = slot.live && slot.generation == static_cast<std::uint32_t>(token >> 32);
  return same && slot.operation.target == from ? &slot : nullptr;
}

void RemoteOperations::take_reply(Rank from, PacketKind kind, std::span<const std::byte> body) {
  const auto reply = cut_off<ReplyPacket>(body);
  Slot* const slot = find(reply.token, from);
  if (slot == nullptr) fail(WEIR_STATUS_NETWORK_ERROR, "it answers a request that was not made");
  const OneSided& operation = slot->operation;
  if (kind != answer_to(operation.kind)) {
    fail(WEIR_STATUS_NETWORK_ERROR, "it answers another question than was asked");
  }
  if (reply.status != WEIR_STATUS_OK) {
    return complete(*slot, 0, {static_cast<weir_status>(reply.status), refusal(operation)});
  }
  if (kind == PacketKind::get_part) {
    if (reply.cursor != slot->cursor || body.size() > operation.bytes - slot->cursor) {
      fail(WEIR_STATUS_NETWORK_ERROR, "it has other bytes than those asked for");
    }
    if (!body.empty()) std::memcpy(operation.local + slot->cursor, body.data(), body.size());
    slot->cursor += body.size();
    if (slot->cursor < operation.bytes) return;
  }
  complete(*slot, reply.old, {});
}

void RemoteOperations::complete(Slot& slot, std::int64_t old, Outcome outcome) noexcept {
  assert(slot.live && completed_.size() < kMost);  // once, and there is room
  completed_.push_back({slot.operation.token, old, std::move(outcome)});
  slot.live = false;
  ++slot.generation;
  free_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
}

void RemoteOperations::fail_all_on(Rank rank, const std::string& why) noexcept {
  for (Slot& slot : slots_) {
    if (slot.live && slot.operation.target == rank) {
      complete(slot, 0, failed_outcome(WEIR_STATUS_NETWORK_ERROR, why.c_str()));
    }
  }
  std::erase_if(unsent_, [&](std::uint32_t index) { return !slots_[index].live; });
}

bool RemoteOperations::deliver(TransportSink& sink) noexcept {
  if (completed_.empty()) return false;
  delivering_.swap(completed_);
  for (Completed& each : delivering_) sink.completed(each.token, each.old, std::move(each.outcome));
  delivering_.clear();
  return true;
}

}  // namespace weir::rt
