// Coherence: copies of the pieces that tasks use, in the memories of the queue's places.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/handle.hpp"
#include "tasks/piece.hpp"
#include "tasks/queue_place.hpp"

namespace weir::rt {

class Registry;

/// An operand of a task as the program named it, validated.
struct NamedUse {
  weir_buffer* buffer = nullptr;
  Region region;
  weir_access access = WEIR_ACCESS_READ;  ///< read, write or both
  bool commutes = false;

  bool operator==(const NamedUse&) const = default;
};

/// How a task uses a region. Half a cache line, because many tasks may wait. It refers to the
/// buffer and the region until the owner of the queue finds the piece, and to the piece from then
/// on.
class PieceUse {
 public:
  /// `kept` outlives the use. It receives the region if fits() is false, and is null otherwise.
  PieceUse(const NamedUse& named, Region* kept) noexcept;
  /// Whether the region fits in the use without extra memory.
  static bool fits(const Region& region) noexcept {
    return region.planes == 1 && region.rows >> kRowsBits == 0 &&
           region.row_stride >> kStrideBits == 0 && region.offset >> kOffsetBits == 0;
  }

  weir_access access() const noexcept { return static_cast<weir_access>(named_.flags & kAccess); }
  bool reads() const noexcept { return (named_.flags & WEIR_ACCESS_READ) != 0; }
  bool writes() const noexcept { return (named_.flags & WEIR_ACCESS_WRITE) != 0; }
  UseKind kind() const noexcept {
    return (named_.flags & kCommutes) != 0 ? UseKind::commute
           : writes()                      ? UseKind::write
                                           : UseKind::read;
  }

  // Returns the buffer. Valid until set_piece().
  weir_buffer& buffer() const noexcept { return *buffer_; }
  Region region() const noexcept;

  // Sets the piece, to which the use refers from then on.
  void set_piece(Piece& piece, std::uint64_t sequence) noexcept {
    const std::uint16_t flags = named_.flags;
    new (&expected_) DeferredUse{sequence & DeferredUse::kMostSequence, flags, nullptr, nullptr};
    piece_ = &piece;
  }
  /// Clears the piece, when the buffer has been destroyed.
  void forget_piece() noexcept { piece_ = nullptr; }
  Piece* piece() const noexcept { return piece_; }
  /// Returns the entry in the piece's list of deferred uses.
  DeferredUse& registered() noexcept { return expected_; }

 private:
  static constexpr unsigned kOffsetBits = 48, kStrideBits = 40, kRowsBits = 24;
  static constexpr std::uint16_t kAccess = WEIR_ACCESS_READ_WRITE, kCommutes = 4, kKept = 8;

  /// Starts like DeferredUse, so that the flags can be read through either.
  struct Named {
    std::uint64_t offset : kOffsetBits;
    std::uint16_t flags;
    union {
      std::uint64_t row;
      const Region* kept;
    };
    std::uint64_t row_stride : kStrideBits;
    std::uint64_t rows : kRowsBits;
  };

  // NOLINTBEGIN(readability-identifier-naming): they are private, although in unions
  union {
    Named named_;
    DeferredUse expected_;
  };
  union {
    weir_buffer* buffer_;
    Piece* piece_;
  };
  // NOLINTEND(readability-identifier-naming)
};
static_assert(sizeof(PieceUse) == 32, "many tasks may wait");

/// Estimates for the operands of a task in one memory.
struct ArrivalEstimate {
  std::uint64_t missing_bytes = 0;  ///< bytes to read that the memory does not have
  std::int64_t value_ns = 0;        ///< when the newest contents are written, in any memory
  std::int64_t ready_ns = 0;        ///< when the operands are in the memory
  std::int64_t copying_ns = 0;      ///< how long links are occupied by the copies
  std::int64_t link_free_ns = 0;    ///< when the memory's link has completed the copies
  Piece* largest = nullptr;         ///< the largest piece to copy
};

/// Copies the newest contents of pieces to where tasks run.
///
/// It enqueues all work in the streams of the queue places; nothing blocks. Operands order
/// transfers and tasks within a place, events between places. Each device has an arena with a slot
/// for each piece that has a copy there. If an arena is full, the slot whose next use is furthest
/// away is reused; the stream orders the reuse. One thread at a time.
///
/// Example: tasks on a piece that is valid on the host, with a place H in host memory and a place D
/// on a device:
///
///     task             enqueued before it              waits for events of   valid afterwards
///     D writes it      -                               -                     D
///     D reads it       -                               - (same stream)       D
///     H reads it       copy to the host, stream of D   the copy              D, H
///     H writes it      -                               the copy              H
///     D reads it       copy to D, stream of D; the     - (same stream)       D, H
///                      copy waits for the write of H
class Coherence {
 public:
  Coherence(Registry& registry, std::vector<QueuePlace>& queue_places);
  Coherence(const Coherence&) = delete;
  Coherence& operator=(const Coherence&) = delete;
  /// All places are idle.
  ~Coherence();

  PieceTable& pieces() noexcept { return pieces_; }

  /// Estimates when the operands would be in the memory of a place if the task were bound now.
  ArrivalEstimate arrival_in(const QueuePlace& queue_place,
                             std::span<const PieceUse> uses) const noexcept;
  /// Sets the current time for later estimates.
  void set_now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }

  /// Enqueues the copies that a task needs in a place. Sets its operands and the events that it
  /// must wait for. Throws.
  void prepare(QueuePlace& queue_place, std::span<const PieceUse> uses, std::uint64_t sequence,
               std::vector<weir_operand>& operands, std::vector<weir_event>& waits);
  /// Records the event of the enqueued task. Follows prepare() for that task.
  void note(const QueuePlace& queue_place, std::span<const PieceUse> uses,
            const weir_event& event) noexcept;
  /// Records that a task will not be enqueued. `failed` is a failed event, which later uses
  /// inherit.
  void note_failed(std::span<const PieceUse> uses, const weir_event& failed);

  /// Enqueues copies of the newest contents of a region to host memory, and adds the events that
  /// the program must wait for. Returns the number of events, at the end, whose failures to ignore.
  std::size_t fetch(Buffer& buffer, const Region& region, bool writes,
                    std::vector<weir_event>& waits);
  /// The same for all pieces.
  void fetch_all(std::vector<weir_event>& waits);
  /// Attaches failures to the pieces, so that later tasks inherit them after the streams have
  /// dropped theirs.
  void attach_failures();
  /// Drops completed uses, and invalidates the memories that failed ones wrote; if none remains,
  /// the host memory counts as valid.
  void drop_completed_uses();
  /// Removes all pieces of a buffer. Nothing may use them.
  void forget(const Buffer& buffer) noexcept;

 private:
  struct ArenaSlot : Storage {
    Owned<weir_buffer> owned;
    std::uint64_t bytes = 0;
  };
  /// The link of a device: estimated times at which each direction becomes free.
  struct Link {
    std::int64_t in_free_ns = 0, out_free_ns = 0;
    std::int64_t latency_ns = 0;
    double ns_per_byte = 0;
    bool half_duplex = false;

    explicit Link(const DeviceInfo& info) noexcept;
    std::int64_t copy_ns(std::uint64_t bytes) const noexcept {
      return latency_ns + static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte);
    }
    /// Occupies the link with a copy that may start at `from_ns`, and returns its end. Until then
    /// the link makes the copies that may start earlier, so a later start delays none of them.
    std::int64_t occupy(bool in, std::int64_t now_ns, std::int64_t from_ns,
                        std::uint64_t bytes) noexcept;
  };
  /// The storages of the queue in one device.
  struct DeviceArena {
    explicit DeviceArena(Domain& of) noexcept : domain(&of), link(of.info()) {}

    /// Returns a slot without a piece whose size is in [least, most], nullptr if there is none.
    ArenaSlot* unused_slot(std::uint64_t least, std::uint64_t most) const noexcept;
    /// Returns the slot that is cheapest to evict, none of a piece with this pin mark: first one
    /// without the newest contents, then the one whose next use is furthest away, then one of the
    /// same size.
    ArenaSlot* victim(std::uint64_t bytes, std::uint64_t pin) const noexcept;
    ArenaSlot& add(Owned<weir_buffer> buffer, std::uint64_t bytes);
    /// Moves a slot without a piece to the abandoned ones, because actions may still use it.
    void abandon(ArenaSlot& slot);

    Domain* domain;
    Link link;
    std::uint64_t used = 0;
    std::vector<std::unique_ptr<ArenaSlot>> slots;
    std::size_t unused = 0;                             ///< number of slots without a piece
    std::vector<std::unique_ptr<ArenaSlot>> abandoned;  ///< to be freed when no action uses them
  };

  const DeviceArena& arena_of(std::uint16_t memory) const noexcept { return *by_memory_[memory]; }
  bool is_complete(const Use& use) const noexcept;
  bool failed(const Use& use) const noexcept;
  bool has_succeeded(const Use& use) const noexcept;
  void add_wait(const Use& use, std::uint32_t queue_place, std::vector<weir_event>& waits) const;
  void add_waits(const Storage& storage, bool writes, std::uint32_t queue_place,
                 std::vector<weir_event>& waits) const;
  void add_waits(const Piece& piece, const Storage& storage, bool writes, std::uint32_t queue_place,
                 std::vector<weir_event>& waits) const;

  /// Reserves memory for note_use(), which must not fail after the enqueue.
  void make_room_to_note(Storage& storage, std::size_t uses);
  void note_use(Storage& storage, const Use& use, bool writes) noexcept;

  void add_copies(const QueuePlace& queue_place, Piece& piece, std::uint16_t memory,
                  ArrivalEstimate& arrival) const noexcept;

  Storage& make_valid(QueuePlace& queue_place, Piece& piece, bool reads);
  Storage* source_for(const QueuePlace& queue_place, const Piece& piece) const noexcept;

  void write_back(Piece& piece);
  void transfer(QueuePlace& queue_place, Piece& piece, Storage& source, Storage& target);

  ArenaSlot& slot_of(QueuePlace& queue_place, Piece& piece, std::uint16_t memory);
  void clear_poison(QueuePlace& queue_place, ArenaSlot& slot);
  ArenaSlot* take_slot_in(DeviceArena& arena, std::uint64_t bytes);
  ArenaSlot& new_slot(DeviceArena& arena, std::uint64_t bytes);
  void evict(DeviceArena& arena, ArenaSlot& slot);
  void free_abandoned(DeviceArena& arena);

  Registry& registry_;
  std::vector<QueuePlace>& queue_places_;
  PieceTable pieces_;
  std::map<std::uint16_t, DeviceArena> arenas_;
  std::array<DeviceArena*, kMaxMemories> by_memory_{};
  std::int64_t now_ns_ = 0;
  std::uint64_t pin_ = 0;
  std::vector<weir_event> waits_;
};

}  // namespace weir::rt
