#include "net/producer.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::rt {

namespace {

constexpr std::size_t kCallsBetweenLooks = 64;
constexpr std::int64_t kBetweenLooks = 100'000;

}  // namespace

Producer::Producer(Conveyor& conveyor) : conveyor_(conveyor), lanes_(conveyor.ranks()) {}

Producer::~Producer() {
  conveyor_.remove(*this);
  try {
    send_all(0);
  } catch (...) {  // no memory
  }
  for (Rank rank = 0; rank < lanes_.size(); ++rank) {
    if (lanes_[rank] != nullptr) conveyor_.take_back(rank, lanes_[rank]->memory);
  }
}

void Producer::put(const ItemType& type, Rank to, const std::uint64_t* offsets,
                   const std::byte* items, std::size_t count) {
  check(type, to, offsets, count);
  if (count == 0 || ++calls_ % kCallsBetweenLooks == 0) look_after();
  if (count == 0) return;
  Lane& lane = lane_to(to);
  for (;;) {
    if (lane.writer.empty()) begin(lane);
    const std::size_t taken = lane.writer.take(type, offsets, items, count);
    count -= taken;
    if (count == 0) return;
    if (type.kind != ItemKind::send) offsets += taken;
    items += taken * type.bytes;
    send(to, lane, false, sys::kNever);
  }
}

void Producer::begin(Lane& lane) const noexcept {
  if (conveyor_.setup().age_ns >= 0) lane.began_ns = sys::now_ns();
}

void Producer::check(const ItemType& type, Rank to, const std::uint64_t* offsets,
                     std::size_t count) const {
  conveyor_.check_may_wait();
  if (to >= conveyor_.ranks()) {
    fail_argument("there is no rank {}: the last of the fabric is {}", to, conveyor_.ranks() - 1);
  }
  conveyor_.check_peer(to);
  if (type.kind == ItemKind::send) {
    const auto& sizes = conveyor_.setup().handler_bytes;
    if (type.handler >= sizes.size()) {
      fail_argument("there is no handler {}: the conveyor has {}", type.handler, sizes.size());
    }
    if (type.bytes != sizes[type.handler]) {
      fail_argument("an item for handler {} has {} bytes, not {}", type.handler,
                    sizes[type.handler], type.bytes);
    }
    return;
  }
  if (type.bytes == 0 || type.bytes > kLargestItem || type.bytes % kItemStep != 0) {
    fail_argument("an item has {} bytes: it must be a multiple of {}, and {} at most", type.bytes,
                  kItemStep, kLargestItem);
  }
  std::uint64_t all = 0;  // not below the largest, and quicker
  for (std::size_t at = 0; at < count; ++at) all |= offsets[at];
  const std::size_t window = conveyor_.peers_[to].bytes;
  if (count > 0 && (type.bytes > window || all > window - type.bytes)) {
    const std::uint64_t largest = *std::max_element(offsets, offsets + count);
    if (type.bytes > window || largest > window - type.bytes) {
      fail_argument("offset {} with {} bytes is outside the memory of rank {}, which has {}",
                    largest, type.bytes, to, window);
    }
  }
  if (type.kind == ItemKind::add && all % 8 != 0) {
    const auto* const odd = std::find_if(offsets, offsets + count,
                                         [](std::uint64_t offset) { return offset % 8 != 0; });
    fail_argument("offset {} of an add is no multiple of 8", *odd);
  }
}

Producer::Lane& Producer::lane_to(Rank rank) {
  std::unique_ptr<Lane>& lane = lanes_[rank];
  if (lane == nullptr) {
    const ConveyorSetup& setup = conveyor_.setup();
    auto made = std::make_unique<Lane>(conveyor_.block_bytes(), setup.block_items);
    made->writer.open(false);  // from now on there is memory for that
    reopen(rank, *made, sys::kNever);
    lane = std::move(made);
  }
  return *lane;
}

/// Blocks that combine travel: what repeats makes them small.
void Producer::reopen(Rank to, Lane& lane, std::int64_t deadline_ns) const {
  const bool combining = lane.policy.combines() && conveyor_.setup().block_items != 1;
  try {
    if (combining || !open_elsewhere(to, lane, deadline_ns)) lane.writer.open(combining);
  } catch (const std::bad_alloc&) {
    conveyor_.take_back(to, lane.memory);
    lane.writer.open(false);
  }
}

/// Returns false when there is no such memory.
bool Producer::open_elsewhere(Rank to, Lane& lane, std::int64_t deadline_ns) const {
  lane.memory = conveyor_.memory_for(to, lane.writer, deadline_ns);
  if (lane.memory.lent != nullptr) {
    lane.writer.open_in(lane.memory.lent->bytes);
  } else if (lane.memory.reserved != nullptr) {
    lane.writer.open_packet(lane.memory.reserved, conveyor_.packet_bytes_);
  } else {
    return false;
  }
  return true;
}

bool Producer::send(Rank to, Lane& lane, bool ask, std::int64_t deadline_ns) {
  try {
    const std::uint64_t block =
        conveyor_.send_block(to, lane.writer, lane.memory, ask, deadline_ns);
    if (block == 0) return false;
    lane.last = block;
    lane.policy.sent(lane.writer.count().items, lane.writer.count().combined);
  } catch (...) {
    conveyor_.take_back(to, lane.memory);
    lane.writer.open(false);
    lane.dropped = true;
    throw;
  }
  reopen(to, lane, deadline_ns);
  conveyor_.look();
  return true;
}

Outcome Producer::take_failure() noexcept { return std::exchange(failure_, {}); }

void Producer::note_failure() noexcept {
  if (failure_.ok()) failure_ = current_exception_outcome(WEIR_STATUS_INTERNAL);
}

bool Producer::send_all(std::int64_t deadline_ns) {
  bool in_time = true;
  for (Rank rank = 0; rank < lanes_.size(); ++rank) {
    if (lanes_[rank] == nullptr || lanes_[rank]->writer.empty()) continue;
    try {
      in_time &= send(rank, *lanes_[rank], true, deadline_ns);
    } catch (...) {
      note_failure();
    }
  }
  return in_time;
}

/// Throws what a rank failed with, which the conveyor may not have heard yet.
void Producer::tell_of_drop(Rank rank) const {
  conveyor_.check_peer(rank);
  const std::string why = conveyor_.port_.why_gone(rank);
  fail(WEIR_STATUS_NETWORK_ERROR, "items for rank {} were dropped{}{}", rank,
       why.empty() ? "" : ": ", why);
}

bool Producer::wait_all(std::int64_t deadline_ns) {
  bool in_time = true;
  for (const bool asking : {true, false}) {
    for (Rank rank = 0; rank < lanes_.size(); ++rank) {
      if (lanes_[rank] == nullptr) continue;
      Lane& lane = *lanes_[rank];
      try {
        if (asking) {
          conveyor_.ask_for(rank, lane.last);
        } else {
          in_time &= conveyor_.wait_for(rank, lane.last, deadline_ns);
          if (lane.dropped) tell_of_drop(rank);
        }
      } catch (const Error&) {  // without memory it stops here, and is repeated
        note_failure();
        lane.last = 0;  // once is enough
        lane.dropped = false;
      }
    }
  }
  return in_time;
}

void Producer::flush(std::int64_t timeout_ns) {
  conveyor_.check_may_wait();
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  if (!send_all(deadline) || !wait_all(deadline)) {
    fail(WEIR_STATUS_TIMEOUT, "not all items have been applied within {:.3g} s",
         static_cast<double>(timeout_ns) * 1e-9);
  }
  const Outcome outcome = take_failure();
  if (!outcome.ok()) throw Error(outcome.status, outcome.message);
}

/// Who puts for long without sending a block is to look at the fabric, too: its thread would take
/// the core for that.
void Producer::look_after() {
  const std::int64_t now = sys::now_ns();
  if (now - looked_ns_ >= kBetweenLooks) {
    looked_ns_ = now;
    conveyor_.look();
  }
  send_old(now);
}

void Producer::send_old(std::int64_t now) {
  const std::int64_t age = conveyor_.setup().age_ns;
  if (age < 0) return;
  for (Rank rank = 0; rank < lanes_.size(); ++rank) {
    if (lanes_[rank] == nullptr || lanes_[rank]->writer.empty()) continue;
    if (now - lanes_[rank]->began_ns < age) continue;
    try {
      send(rank, *lanes_[rank], false, sys::kNever);
    } catch (...) {  // the lane remembers
    }
  }
}

}  // namespace weir::rt
