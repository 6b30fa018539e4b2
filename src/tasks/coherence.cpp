#include "tasks/coherence.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr double kUsualGbps = 8;  ///< of a link without a specified bandwidth

constexpr std::uint64_t low_bits(unsigned count) noexcept {
  return (std::uint64_t{1} << count) - 1;
}

}  // namespace

Coherence::Coherence(Registry& registry, std::vector<QueuePlace>& queue_places)
    : registry_(registry), queue_places_(queue_places) {
  for (QueuePlace& queue_place : queue_places_) {
    const std::uint16_t memory = queue_place.domain().residency().memory();
    by_memory_[memory] = &arenas_.try_emplace(memory, queue_place.domain()).first->second;
  }
}

Coherence::~Coherence() {
  for (auto& [memory, arena] : arenas_) {
    for (const auto& slot : arena.slots) registry_.forget_instances_of(*slot->owned);
    for (const auto& slot : arena.abandoned) registry_.forget_instances_of(*slot->owned);
  }
}

// ---- Estimates ---------------------------------------------------------------------------------

Coherence::Link::Link(const DeviceInfo& info) noexcept
    : latency_ns(static_cast<std::int64_t>(info.link_latency_us * 1e3)),
      ns_per_byte(1 / (info.link_gbps > 0 ? info.link_gbps : kUsualGbps)),
      half_duplex(info.link_duplex == "half") {}

std::int64_t Coherence::Link::occupy(bool in, std::int64_t now_ns, std::int64_t from_ns,
                                     std::uint64_t bytes) noexcept {
  std::int64_t& free_ns = in || half_duplex ? in_free_ns : out_free_ns;
  const std::int64_t duration_ns = copy_ns(bytes);
  free_ns = std::max(free_ns, now_ns) + duration_ns;
  return std::max(free_ns, from_ns + duration_ns);
}

ArrivalEstimate Coherence::arrival_in(const QueuePlace& queue_place,
                                      std::span<const PieceUse> uses) const noexcept {
  ArrivalEstimate arrival;
  arrival.link_free_ns = arena_of(queue_place.domain().residency().memory()).link.in_free_ns;
  for (const PieceUse& use : uses) {
    Piece& piece = *use.piece();
    arrival.value_ns = std::max(arrival.value_ns, piece.ready_ns);
    if (!use.reads()) continue;
    const std::uint16_t memory = queue_place.memory_of(*piece.host_storage.buffer);
    if (!piece.valid_in(memory)) {
      add_copies(queue_place, piece, memory, arrival);
      if (use.writes() && !piece.valid_on_host()) {  // a copy back to the host may be needed
        arrival.copying_ns += arena_of(piece.first_valid_memory()).link.copy_ns(piece.bytes());
      }
    } else {
      arrival.ready_ns = std::max(arrival.ready_ns, piece.storage_in(memory).ready_ns);
    }
  }
  arrival.ready_ns = std::max(arrival.ready_ns, arrival.value_ns);
  return arrival;
}

/// Adds the copies that make_valid() would make of a piece that is not valid in a memory.
void Coherence::add_copies(const QueuePlace& queue_place, Piece& piece, std::uint16_t memory,
                           ArrivalEstimate& arrival) const noexcept {
  arrival.missing_bytes += piece.bytes();
  if (arrival.largest == nullptr || piece.bytes() > arrival.largest->bytes())
    arrival.largest = &piece;
  std::int64_t from_ns = std::max({now_ns_, piece.ready_ns, piece.host_storage.ready_ns});
  const Storage* const direct = memory != kHostMemory ? source_for(queue_place, piece) : nullptr;
  if (!piece.valid_on_host() && direct == nullptr) {
    const Link& out = arena_of(piece.first_valid_memory()).link;
    const std::int64_t copy_ns = out.copy_ns(piece.bytes());
    from_ns = std::max(from_ns, out.half_duplex ? out.in_free_ns : out.out_free_ns) + copy_ns;
    arrival.copying_ns += copy_ns;
  }
  if (memory != kHostMemory) {
    const std::int64_t copy_ns = arena_of(memory).link.copy_ns(piece.bytes());
    arrival.link_free_ns = std::max(now_ns_, arrival.link_free_ns) + copy_ns;
    from_ns = std::max(from_ns + copy_ns, arrival.link_free_ns);
    arrival.copying_ns += copy_ns;
  }
  arrival.ready_ns = std::max(arrival.ready_ns, from_ns);
}

// ---- Uses --------------------------------------------------------------------------------------

PieceUse::PieceUse(const NamedUse& named, Region* kept) noexcept : named_{}, buffer_(named.buffer) {
  const Region& region = named.region;
  named_.flags = static_cast<std::uint16_t>(named.access | (named.commutes ? kCommutes : 0));
  if (kept != nullptr) {
    *kept = region;
    named_.flags = static_cast<std::uint16_t>(named_.flags | kKept);
    named_.kept = kept;
    return;
  }
  named_.offset = region.offset & low_bits(kOffsetBits);
  named_.row = region.row;
  named_.row_stride = region.row_stride & low_bits(kStrideBits);
  named_.rows = region.rows & low_bits(kRowsBits);
}

Region PieceUse::region() const noexcept {
  if ((named_.flags & kKept) != 0) return *named_.kept;
  return {.offset = named_.offset,
          .row = named_.row,
          .row_stride = named_.row_stride,
          .rows = static_cast<std::uint32_t>(named_.rows)};
}

// ---- Tasks -------------------------------------------------------------------------------------

void Coherence::prepare(QueuePlace& queue_place, std::span<const PieceUse> uses,
                        std::uint64_t sequence, std::vector<weir_operand>& operands,
                        std::vector<weir_event>& waits) {
  ++pin_;
  for (const PieceUse& use : uses) use.piece()->pin_mark = pin_;
  for (const PieceUse& use : uses) {
    use.piece()->last_use = sequence;
    for (Piece* peer : use.piece()->peers) {  // overlapping pieces exchange their bytes on the host
      if (!peer->valid_on_host()) write_back(*peer);
      if (use.writes()) peer->valid = 1;
    }
  }
  operands.clear();
  for (const PieceUse& use : uses) {
    Storage& storage = make_valid(queue_place, *use.piece(), use.reads());
    make_room_to_note(storage, uses.size());
    operands.push_back({storage.buffer, storage.region, use.access()});
  }
  waits.clear();
  for (const PieceUse& use : uses) {
    const std::uint16_t memory = queue_place.memory_of(*use.piece()->host_storage.buffer);
    add_waits(*use.piece(), use.piece()->storage_in(memory), use.writes(), queue_place.index,
              waits);
    if (memory == kHostMemory) continue;
    // Failed tasks that never had a place and would have written bytes of the piece: no copy of
    // theirs in host memory carries the failure.
    for (const Piece* peer : use.piece()->peers) {
      const Use& writer = peer->host_storage.writer;
      if (writer.queue_place == Use::kNoPlace) add_wait(writer, Use::kNoPlace, waits);
    }
  }
}

void Coherence::note(const QueuePlace& queue_place, std::span<const PieceUse> uses,
                     const weir_event& event) noexcept {
  for (const PieceUse& use : uses) {
    Piece& piece = *use.piece();
    const std::uint16_t memory = queue_place.memory_of(*piece.host_storage.buffer);
    note_use(piece.storage_in(memory), {event, queue_place.index}, use.writes());
    if (!use.writes()) continue;
    piece.valid = std::uint64_t{1} << memory;
    piece.owner = queue_place.index;
  }
}

void Coherence::note_failed(std::span<const PieceUse> uses, const weir_event& failed) {
  for (const PieceUse& use : uses) {
    if (!use.writes()) continue;
    Storage& home = use.piece()->host_storage;
    if (!is_complete(home.writer)) home.earlier_writer = home.writer;
    home.writer = {failed, Use::kNoPlace};
    use.piece()->valid = 1;
  }
}

// ---- The program -------------------------------------------------------------------------------

std::size_t Coherence::fetch(Buffer& buffer, const Region& region, bool writes,
                             std::vector<weir_event>& waits) {
  pieces_.each_overlapping(buffer, region, [&](Piece& piece) {
    if (!piece.valid_on_host()) write_back(piece);
  });
  pieces_.each_overlapping(buffer, region, [&](Piece& piece) {
    add_waits(piece.host_storage, false, Use::kNoPlace, waits);
  });
  if (!writes) return 0;
  const std::size_t concerned = waits.size();
  pieces_.each_overlapping(buffer, region, [&](Piece& piece) {
    for (const Use& reader : piece.host_storage.readers) add_wait(reader, Use::kNoPlace, waits);
    piece.valid = 1;
  });
  return waits.size() - concerned;
}

void Coherence::fetch_all(std::vector<weir_event>& waits) {
  pieces_.each([&](Piece& piece) {
    if (!piece.valid_on_host()) write_back(piece);
  });
  for (const QueuePlace& queue_place : queue_places_) waits.push_back(queue_place.stream->mark());
}

void Coherence::attach_failures() {
  const auto keep = [this](Use& use) {
    if (failed(use)) use.queue_place = Use::kNoPlace;
  };
  const auto keep_all = [&](Storage& storage) {
    keep(storage.writer);
    keep(storage.earlier_writer);
    for (Use& reader : storage.readers) keep(reader);
  };
  pieces_.each([&](Piece& piece) {
    keep_all(piece.host_storage);
    for (Storage* const slot : piece.slots) {
      if (slot != nullptr) keep_all(*slot);
    }
  });
}

void Coherence::drop_completed_uses() {
  pieces_.each([this](Piece& piece) {
    const auto invalidate_failed = [&](const Storage* storage) {
      if (storage == nullptr || !failed(storage->writer)) return;
      piece.valid &= ~(std::uint64_t{1} << storage->memory);
    };
    invalidate_failed(&piece.host_storage);
    for (const Storage* slot : piece.slots) invalidate_failed(slot);
    if (piece.valid == 0) piece.valid = 1;
  });
  const auto forget = [this](Storage& storage) {
    if (is_complete(storage.writer)) storage.writer = {};
    if (is_complete(storage.earlier_writer)) storage.earlier_writer = {};
    std::erase_if(storage.readers, [this](const Use& use) { return is_complete(use); });
  };
  pieces_.each([&](Piece& piece) { forget(piece.host_storage); });
  for (auto& [memory, arena] : arenas_) {
    for (const auto& slot : arena.slots) forget(*slot);
    free_abandoned(arena);
  }
}

void Coherence::forget(const Buffer& buffer) noexcept {
  pieces_.each([&](Piece& piece) {
    if (piece.host_storage.buffer != &buffer) return;
    for (Storage* storage : piece.slots) {
      if (storage == nullptr) continue;
      storage->piece = nullptr;
      ++arenas_.at(storage->memory).unused;
    }
  });
  pieces_.forget(buffer);
}

// ---- Order -------------------------------------------------------------------------------------

bool Coherence::is_complete(const Use& use) const noexcept {
  const std::uint64_t id = use.event.opaque[1];
  return id == 0 || registry_.slot_of(use.event).event.is_complete(id);
}

/// Whether the use is complete and failed. A cancelled use has left the contents as they were.
bool Coherence::failed(const Use& use) const noexcept {
  const std::uint64_t id = use.event.opaque[1];
  if (id == 0 || !is_complete(use)) return false;
  const weir_status status = registry_.failures().find(id).status;
  return status != WEIR_STATUS_OK && status != WEIR_STATUS_CANCELLED;
}

/// Whether no later use must wait for this one or inherit its failure.
bool Coherence::has_succeeded(const Use& use) const noexcept {
  const std::uint64_t id = use.event.opaque[1];
  return id == 0 || (is_complete(use) && registry_.failures().find(id).status == WEIR_STATUS_OK);
}

void Coherence::add_wait(const Use& use, std::uint32_t queue_place,
                         std::vector<weir_event>& waits) const {
  const bool elsewhere = use.queue_place != queue_place || queue_place == Use::kNoPlace;
  if (elsewhere && !has_succeeded(use)) waits.push_back(use.event);
}

/// Adds the events that an action of a queue place must wait for in addition to its stream's order.
void Coherence::add_waits(const Storage& storage, bool writes, std::uint32_t queue_place,
                          std::vector<weir_event>& waits) const {
  add_wait(storage.writer, queue_place, waits);
  add_wait(storage.earlier_writer, queue_place, waits);
  if (!writes) return;
  for (const Use& reader : storage.readers) add_wait(reader, queue_place, waits);
}

/// The same for a storage of a piece: overlapping pieces share host memory.
void Coherence::add_waits(const Piece& piece, const Storage& storage, bool writes,
                          std::uint32_t queue_place, std::vector<weir_event>& waits) const {
  add_waits(storage, writes, queue_place, waits);
  if (storage.memory != kHostMemory) return;
  for (const Piece* peer : piece.peers) add_waits(peer->host_storage, writes, queue_place, waits);
}

void Coherence::make_room_to_note(Storage& storage, std::size_t uses) {
  std::vector<Use>& readers = storage.readers;
  if (readers.capacity() >= readers.size() + uses) return;
  std::erase_if(readers, [this](const Use& reader) { return has_succeeded(reader); });
  readers.reserve(2 * readers.size() + uses);  // leaves at least half of it free
}

void Coherence::note_use(Storage& storage, const Use& use, bool writes) noexcept {
  if (writes) {
    storage.readers.clear();
    storage.writer = use;
    storage.earlier_writer = {};
    return;
  }
  storage.readers.push_back(use);
}

// ---- Copies ------------------------------------------------------------------------------------

Storage& Coherence::make_valid(QueuePlace& queue_place, Piece& piece, bool reads) {
  const std::uint16_t memory = queue_place.memory_of(*piece.host_storage.buffer);
  if (memory == kHostMemory) {
    if (reads && !piece.valid_on_host()) write_back(piece);
    return piece.host_storage;
  }
  ArenaSlot& slot = slot_of(queue_place, piece, memory);
  if (!reads || piece.valid_in(memory)) return slot;
  Storage* const source = source_for(queue_place, piece);
  if (source == nullptr && !piece.valid_on_host()) write_back(piece);
  transfer(queue_place, piece, source != nullptr ? *source : piece.host_storage, slot);
  return slot;
}

/// Returns the storage in another device from which the place copies the piece, nullptr: host
/// memory.
Storage* Coherence::source_for(const QueuePlace& queue_place, const Piece& piece) const noexcept {
  if (piece.valid_on_host()) return nullptr;
  for (std::uint16_t memory = 1; memory < kMaxMemories; ++memory) {
    if (!piece.valid_in(memory)) continue;
    if (queue_place.domain().device().reaches(&registry_.device_of(memory)))
      return piece.slots[memory];
  }
  return nullptr;
}

/// Enqueues the copy in a place with the memory, preferably the one that wrote the slot: it needs
/// no event.
void Coherence::write_back(Piece& piece) {
  Storage& slot = *piece.slots[piece.first_valid_memory()];
  const auto fits = [&](const QueuePlace& queue_place) {
    return queue_place.domain().residency().memory() == slot.memory;
  };
  const std::uint32_t writer = slot.writer.queue_place;
  QueuePlace& from = writer < queue_places_.size() && fits(queue_places_[writer])
                         ? queue_places_[writer]
                         : *std::find_if(queue_places_.begin(), queue_places_.end(), fits);
  transfer(from, piece, slot, piece.host_storage);
}

/// Enqueues a copy in a place of the device at one end. The other end may belong to another place.
void Coherence::transfer(QueuePlace& queue_place, Piece& piece, Storage& source, Storage& target) {
  waits_.clear();
  add_waits(piece, source, false, queue_place.index, waits_);
  make_room_to_note(source, 1);
  const std::size_t concerned = waits_.size();
  add_waits(piece, target, true, queue_place.index, waits_);
  const auto end_of = [&](const Storage& end) {
    weir_domain* const domain =
        end.memory == kHostMemory ? nullptr : registry_.domain(end.memory - 1u);
    return weir_endpoint{domain, end.buffer, end.region};
  };
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = end_of(source);
  transfer.target = end_of(target);
  const weir_event event =
      queue_place.stream->overwrite_after(transfer, waits_, waits_.size() - concerned);
  note_use(source, {event, queue_place.index}, false);
  note_use(target, {event, queue_place.index}, true);
  piece.valid |= std::uint64_t{1} << target.memory;
  const std::uint16_t own = queue_place.domain().residency().memory();
  target.ready_ns = by_memory_[own]->link.occupy(
      target.memory == own, now_ns_, std::max({now_ns_, piece.ready_ns, source.ready_ns}),
      piece.bytes());
  (target.memory == kHostMemory ? queue_place.share.bytes_out : queue_place.share.bytes_in) +=
      piece.bytes();
}

// ---- Memory of devices -------------------------------------------------------------------------

Coherence::ArenaSlot& Coherence::slot_of(QueuePlace& queue_place, Piece& piece,
                                         std::uint16_t memory) {
  if (piece.slots[memory] != nullptr) return *static_cast<ArenaSlot*>(piece.slots[memory]);
  DeviceArena& arena = arenas_.at(memory);
  ArenaSlot* slot = nullptr;
  while (slot == nullptr) slot = take_slot_in(arena, piece.bytes());
  slot->region = packed(piece.region);
  clear_poison(queue_place, *slot);
  --arena.unused;
  slot->piece = &piece;
  piece.slots[memory] = slot;
  return *slot;
}

/// Makes later uses of the slot wait for the earlier ones without inheriting their failures. The
/// streams of all places with this memory clear the poison.
void Coherence::clear_poison(QueuePlace& queue_place, ArenaSlot& slot) {
  if (slot.writer.event.opaque[1] == 0 && slot.readers.empty()) return;
  waits_.clear();
  add_waits(slot, true, queue_place.index, waits_);
  const weir_operand all{slot.buffer, weir_region_range(0, slot.bytes), WEIR_ACCESS_READ_WRITE};
  const weir_event event = queue_place.stream->clear_poison_after(all, waits_);
  note_use(slot, {event, queue_place.index}, true);
  for (const QueuePlace& other : queue_places_) {
    const bool same = other.domain().residency().memory() == slot.memory;
    if (same && &other != &queue_place) other.stream->clear_poison_after(all, {});
  }
}

/// Returns a slot without a piece, or nullptr after it freed another slot: call it again. It
/// prefers larger slots to abandoning a slot, because abandoned memory stays in use until its
/// actions are complete, and the domain would have to evict for the new one.
Coherence::ArenaSlot* Coherence::take_slot_in(DeviceArena& arena, std::uint64_t bytes) {
  if (ArenaSlot* const fit = arena.unused_slot(bytes, bytes)) return fit;
  if (arena.used + bytes <= arena.domain->residency().capacity()) return &new_slot(arena, bytes);
  if (ArenaSlot* const larger = arena.unused_slot(bytes, UINT64_MAX)) return larger;
  if (ArenaSlot* const unfit = arena.unused_slot(0, bytes)) {
    arena.abandon(*unfit);
    return nullptr;
  }
  ArenaSlot* const victim = arena.victim(bytes, pin_);
  if (victim == nullptr)
    return &new_slot(arena, bytes);  // the domain evicts, or reports why it cannot
  evict(arena, *victim);
  return victim->bytes >= bytes ? victim : nullptr;
}

Coherence::ArenaSlot& Coherence::new_slot(DeviceArena& arena, std::uint64_t bytes) {
  free_abandoned(arena);
  return arena.add(registry_.buffers().make_device_buffer(bytes), bytes);
}

/// Takes the slot from its piece. Writes the piece back if no other memory has its newest contents.
void Coherence::evict(DeviceArena& arena, ArenaSlot& slot) {
  Piece& piece = *slot.piece;
  const std::uint64_t here = std::uint64_t{1} << slot.memory;
  if (piece.valid == here) write_back(piece);
  piece.valid &= ~here;
  piece.slots[slot.memory] = nullptr;
  slot.piece = nullptr;
  ++arena.unused;
}

Coherence::ArenaSlot* Coherence::DeviceArena::unused_slot(std::uint64_t least,
                                                          std::uint64_t most) const noexcept {
  if (unused == 0) return nullptr;
  const auto found = std::ranges::find_if(slots, [&](const auto& slot) {
    return slot->piece == nullptr && slot->bytes >= least && slot->bytes <= most;
  });
  return found != slots.end() ? found->get() : nullptr;
}

Coherence::ArenaSlot* Coherence::DeviceArena::victim(std::uint64_t bytes,
                                                     std::uint64_t pin) const noexcept {
  const auto cost = [&](const ArenaSlot& slot) {
    const Piece& piece = *slot.piece;
    return std::tuple(piece.valid_in(slot.memory), UINT64_MAX - piece.next_use(),
                      slot.bytes != bytes, piece.last_use);
  };
  ArenaSlot* best = nullptr;
  for (const auto& slot : slots) {
    if (slot->piece == nullptr || slot->piece->pin_mark == pin) continue;
    if (best == nullptr || cost(*slot) < cost(*best)) best = slot.get();
  }
  return best;
}

Coherence::ArenaSlot& Coherence::DeviceArena::add(Owned<weir_buffer> buffer, std::uint64_t bytes) {
  ArenaSlot& slot = *slots.emplace_back(std::make_unique<ArenaSlot>());
  slot.owned = std::move(buffer);
  slot.buffer = slot.owned.get();
  slot.memory = domain->residency().memory();
  slot.bytes = bytes;
  used += bytes;
  ++unused;
  return slot;
}

void Coherence::DeviceArena::abandon(ArenaSlot& slot) {
  assert(slot.piece == nullptr);
  const auto at =
      std::ranges::find_if(slots, [&](const auto& owned) { return owned.get() == &slot; });
  abandoned.reserve(abandoned.size() + 1);
  abandoned.push_back(std::move(*at));
  slots.erase(at);
  used -= slot.bytes;
  --unused;
}

void Coherence::free_abandoned(DeviceArena& arena) {
  std::erase_if(arena.abandoned, [&](const auto& slot) {
    const bool idle = is_complete(slot->writer) &&
                      std::all_of(slot->readers.begin(), slot->readers.end(),
                                  [this](const Use& use) { return is_complete(use); });
    return idle && arena.domain->residency().free_instance(*slot->owned);
  });
}

}  // namespace weir::rt
