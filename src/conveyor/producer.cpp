#include "conveyor/producer.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::rt {

namespace {

constexpr std::size_t kCallsPerPoll = 64;
constexpr std::int64_t kPollInterval = 100'000;

}  // namespace

Producer::Producer(Conveyor& conveyor) : conveyor_(conveyor), open_blocks_(conveyor.ranks()) {
  conveyor.add(*this);
}

Producer::~Producer() {
  conveyor_.remove(*this);
  try {
    send_all(0);
  } catch (...) {  // no memory
  }
  for (Rank rank = 0; rank < open_blocks_.size(); ++rank) {
    if (open_blocks_[rank] != nullptr) conveyor_.reclaim(rank, open_blocks_[rank]->memory);
  }
}

void Producer::put(const ItemType& type, Rank to, const std::uint64_t* offsets,
                   const std::byte* items, std::size_t count) {
  check(type, to, offsets, count);
  if (count == 0 || ++calls_ % kCallsPerPoll == 0) poll_and_send_old();
  if (count == 0) return;
  OpenBlock& open_block = open_block_for(to);
  for (;;) {
    if (open_block.writer.empty()) begin(open_block);
    const std::size_t taken = open_block.writer.take(type, offsets, items, count);
    count -= taken;
    if (count == 0) return;
    if (type.kind != ItemKind::send) offsets += taken;
    items += taken * type.bytes;
    send(to, open_block, false, sys::kNever);
  }
}

void Producer::begin(OpenBlock& open_block) const noexcept {
  if (conveyor_.setup().age_ns >= 0) open_block.began_ns = sys::now_ns();
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
  std::uint64_t all = 0;  // at least the maximum, and faster
  for (std::size_t at = 0; at < count; ++at) all |= offsets[at];
  const std::size_t window = conveyor_.memory_bytes(to);
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
    fail_argument("offset {} of an add is not a multiple of 8", *odd);
  }
}

Producer::OpenBlock& Producer::open_block_for(Rank rank) {
  std::unique_ptr<OpenBlock>& open_block = open_blocks_[rank];
  if (open_block == nullptr) {
    const ConveyorSetup& setup = conveyor_.setup();
    auto made = std::make_unique<OpenBlock>(conveyor_.block_bytes(), setup.block_items);
    made->writer.open(false);  // allocates memory that later calls reuse
    open_again(rank, *made, sys::kNever);
    open_block = std::move(made);
  }
  return *open_block;
}

/// A combining block is sent by copy: repeats make it small.
void Producer::open_again(Rank to, OpenBlock& open_block, std::int64_t deadline_ns) const {
  const bool combining = open_block.policy.combines() && conveyor_.setup().block_items != 1;
  try {
    if (combining || !open_elsewhere(to, open_block, deadline_ns))
      open_block.writer.open(combining);
  } catch (const std::bad_alloc&) {
    conveyor_.reclaim(to, open_block.memory);
    open_block.writer.open(false);
  }
}

/// Opens the block in lent or reserved memory. Returns false if there is none.
bool Producer::open_elsewhere(Rank to, OpenBlock& open_block, std::int64_t deadline_ns) const {
  open_block.memory = conveyor_.memory_for(to, open_block.writer, deadline_ns);
  if (open_block.memory.lent != nullptr) {
    open_block.writer.open_in(open_block.memory.lent->bytes);
  } else if (open_block.memory.reserved != nullptr) {
    open_block.writer.open_packet(open_block.memory.reserved, conveyor_.packet_bytes());
  } else {
    return false;
  }
  return true;
}

bool Producer::send(Rank to, OpenBlock& open_block, bool ask, std::int64_t deadline_ns) {
  try {
    const std::uint64_t block =
        conveyor_.send_block(to, open_block.writer, open_block.memory, ask, deadline_ns);
    if (block == 0) return false;
    open_block.last = block;
    open_block.policy.sent(open_block.writer.count().items, open_block.writer.count().combined);
  } catch (...) {
    conveyor_.reclaim(to, open_block.memory);
    open_block.writer.open(false);
    open_block.dropped = true;
    throw;
  }
  open_again(to, open_block, deadline_ns);
  conveyor_.poll();
  return true;
}

Outcome Producer::take_failure() noexcept { return std::exchange(failure_, {}); }

void Producer::note_failure() noexcept {
  if (failure_.ok()) failure_ = current_exception_outcome(WEIR_STATUS_INTERNAL);
}

bool Producer::send_all(std::int64_t deadline_ns) {
  bool in_time = true;
  for (Rank rank = 0; rank < open_blocks_.size(); ++rank) {
    if (open_blocks_[rank] == nullptr || open_blocks_[rank]->writer.empty()) continue;
    try {
      in_time &= send(rank, *open_blocks_[rank], true, deadline_ns);
    } catch (...) {
      note_failure();
    }
  }
  return in_time;
}

/// Throws the failure of a rank, which the conveyor may not have received yet.
void Producer::throw_dropped(Rank rank) const {
  conveyor_.check_peer(rank);
  const std::string why = conveyor_.why_lost(rank);
  fail(WEIR_STATUS_NETWORK_ERROR, "items for rank {} were dropped{}{}", rank,
       why.empty() ? "" : ": ", why);
}

bool Producer::wait_all(std::int64_t deadline_ns) {
  bool in_time = true;
  for (const bool asking : {true, false}) {
    for (Rank rank = 0; rank < open_blocks_.size(); ++rank) {
      if (open_blocks_[rank] == nullptr) continue;
      OpenBlock& open_block = *open_blocks_[rank];
      try {
        if (asking) {
          conveyor_.ask_for(rank, open_block.last);
        } else {
          in_time &= conveyor_.wait_for(rank, open_block.last, deadline_ns);
          if (open_block.dropped) throw_dropped(rank);
        }
      } catch (const Error&) {  // std::bad_alloc propagates, and the caller can repeat the flush
        note_failure();
        open_block.last = 0;  // reported once
        open_block.dropped = false;
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

/// Makes progress for a thread that puts for long without sending a block, and sends old blocks.
void Producer::poll_and_send_old() {
  const std::int64_t now = sys::now_ns();
  if (now - polled_ns_ >= kPollInterval) {
    polled_ns_ = now;
    conveyor_.poll();
  }
  send_old(now);
}

void Producer::send_old(std::int64_t now) {
  const std::int64_t age = conveyor_.setup().age_ns;
  if (age < 0) return;
  for (Rank rank = 0; rank < open_blocks_.size(); ++rank) {
    if (open_blocks_[rank] == nullptr || open_blocks_[rank]->writer.empty()) continue;
    if (now - open_blocks_[rank]->began_ns < age) continue;
    try {
      send(rank, *open_blocks_[rank], false, sys::kNever);
    } catch (...) {  // the block is marked as dropped
    }
  }
}

}  // namespace weir::rt
