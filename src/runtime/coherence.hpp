// Copies of what the tasks of a queue use, in the memories of its places.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/handle.hpp"
#include "runtime/queue_place.hpp"
#include "sched/piece.hpp"

namespace weir::rt {

class Runtime;

/// An operand of a task as the program gave it, checked.
struct NamedUse {
  weir_buffer* buffer = nullptr;
  Region region;
  weir_access access = WEIR_ACCESS_READ;  ///< read, write or both
  bool commutes = false;
};

/// How a task uses a region, in half a cache line as many tasks may wait. It names the buffer and
/// the region until the owner of the queue finds the piece, and the piece from then on.
class PieceUse {
 public:
  /// `kept` outlasts the use: it receives a region that does not fit, and is null for others.
  PieceUse(const NamedUse& named, Region* kept) noexcept;
  /// Whether a region needs no memory beside the use.
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

  // Before its piece is known.
  weir_buffer& buffer() const noexcept { return *buffer_; }
  Region region() const noexcept;

  // From then on.
  void set_piece(Piece& piece, std::uint64_t sequence) noexcept {
    const std::uint16_t flags = named_.flags;
    new (&expected_) DeferredUse{sequence & DeferredUse::kMostSequence, flags, nullptr, nullptr};
    piece_ = &piece;
  }
  /// Once the buffer has ended.
  void forget_piece() noexcept { piece_ = nullptr; }
  Piece* piece() const noexcept { return piece_; }
  /// In the piece's list while the task has no place.
  DeferredUse& registered() noexcept { return expected_; }

 private:
  static constexpr unsigned kOffsetBits = 48, kStrideBits = 40, kRowsBits = 24;
  static constexpr std::uint16_t kAccess = WEIR_ACCESS_READ_WRITE, kCommutes = 4, kKept = 8;

  /// Begins as DeferredUse does: the flags may be read as those of either.
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

  union {
    Named named_;
    DeferredUse expected_;
  };
  union {
    weir_buffer* buffer_;
    Piece* piece_;
  };
};
static_assert(sizeof(PieceUse) == 32, "many tasks may wait");

/// What a task needs in a memory, by estimates.
struct ArrivalEstimate {
  std::uint64_t missing_bytes = 0;  ///< that it reads and that are not there
  std::int64_t value_ns = 0;        ///< when its operands have their values, wherever
  std::int64_t ready_ns = 0;        ///< when they are there
  std::int64_t copying_ns = 0;      ///< how long links are busy for it
  std::int64_t link_free_ns = 0;    ///< when the link of that memory has made its copies
};

/// Sees to it that each task finds the newest contents where it runs.
///
/// All work is enqueued in the streams of the queue places; nothing blocks. Operands order
/// transfers and tasks within a place, events between places. Each device has an arena with a slot
/// for each piece that has a copy there. If an arena is full, the slot whose piece is needed last
/// is reused; the stream orders the reuse. One thread at a time.
class Coherence {
 public:
  Coherence(Runtime& runtime, std::vector<QueuePlace>& queue_places);
  Coherence(const Coherence&) = delete;
  Coherence& operator=(const Coherence&) = delete;
  /// All places are idle.
  ~Coherence();

  PieceTable& pieces() noexcept { return pieces_; }

  /// When a task that is bound now would find its operands in a place's memory.
  ArrivalEstimate arrival_in(const QueuePlace& queue_place,
                             std::span<const PieceUse> uses) const noexcept;
  /// Sets the time for the estimates that follow.
  void set_now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }

  /// Enqueues what has to happen before a task runs in a place, and sets its operands and the
  /// events that it has to wait for. Throws.
  void prepare(QueuePlace& queue_place, std::span<const PieceUse> uses, std::uint64_t sequence,
               std::vector<weir_operand>& operands, std::vector<weir_event>& waits);
  /// Notes that a task of which prepare() was the last was enqueued.
  void note(const QueuePlace& queue_place, std::span<const PieceUse> uses,
            const weir_event& event) noexcept;
  /// Notes that a task will not be enqueued: `failed`, an event that has failed, stands for it.
  void note_failed(std::span<const PieceUse> uses, const weir_event& failed);

  /// Enqueues the copy to host memory of the newest contents of the pieces in a region, and adds
  /// the events to wait for before the program uses them so. Returns how many there are, at the
  /// end, whose failure does not concern it.
  std::size_t fetch(Buffer& buffer, const Region& region, bool writes,
                    std::vector<weir_event>& waits);
  /// The same of everything there is.
  void fetch_all(std::vector<weir_event>& waits);
  /// Attaches failures to the pieces, so that later tasks see them after the streams have dropped
  /// theirs.
  void carry_failures_over();
  /// Forgets what is over, and what it left in memories where it has failed.
  void drop_completed_uses();
  /// Drops all pieces of a buffer. Nothing uses them any more.
  void forget(const Buffer& buffer) noexcept;

 private:
  struct ArenaSlot : Storage {
    Owned<weir_buffer> owned;
    std::uint64_t bytes = 0;
  };
  /// The link of a device: when it is expected to be free in each direction.
  struct Link {
    std::int64_t in_free_ns = 0, out_free_ns = 0;
    std::int64_t latency_ns = 0;
    double ns_per_byte = 0;
    bool half_duplex = false;

    explicit Link(const DeviceInfo& info) noexcept;
    std::int64_t copy_ns(std::uint64_t bytes) const noexcept {
      return latency_ns + static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte);
    }
    /// Takes up the link for a copy that may begin at `from_ns`. Returns its end. Until then the
    /// link makes the copies that may begin earlier, so a later start delays none of the others.
    std::int64_t occupy(bool in, std::int64_t now_ns, std::int64_t from_ns,
                        std::uint64_t bytes) noexcept;
  };
  /// The memory of one device.
  struct DeviceArena {
    explicit DeviceArena(Domain& of) noexcept : domain(&of), link(of.info()) {}

    Domain* domain;
    Link link;
    std::uint64_t used = 0;
    std::vector<std::unique_ptr<ArenaSlot>> slots;
    std::size_t unused = 0;                             ///< of the slots: they have no piece
    std::vector<std::unique_ptr<ArenaSlot>> abandoned;  ///< to be freed when nothing uses them
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
  void add_failed_peers(const Piece& piece, std::vector<weir_event>& waits) const;
  /// What is enqueued has to be noted: makes room for that beforehand.
  void make_room_to_note(Storage& storage, std::size_t uses);
  void note_use(Storage& storage, const Use& use, bool writes) noexcept;
  static Storage& storage_of(Piece& piece, std::uint16_t memory) noexcept;
  static const Storage& storage_of(const Piece& piece, std::uint16_t memory) noexcept;
  static std::uint16_t memory_of(const Piece& piece) noexcept;
  void add_copies(const QueuePlace& queue_place, const Piece& piece, std::uint16_t memory,
                  ArrivalEstimate& arrival) const noexcept;

  void invalidate_failed(Piece& piece) const noexcept;
  void write_back_peers(Piece& piece, bool writes);
  Storage& make_valid(QueuePlace& queue_place, Piece& piece, bool reads);
  Storage* source_for(const QueuePlace& queue_place, const Piece& piece) const noexcept;
  void copy_in(QueuePlace& queue_place, Piece& piece, ArenaSlot& slot);
  void write_back(Piece& piece);
  void transfer(QueuePlace& queue_place, Piece& piece, Storage& source, Storage& target);
  QueuePlace& queue_place_of(std::uint16_t memory, const Storage& slot);

  ArenaSlot& slot_of(QueuePlace& queue_place, Piece& piece, std::uint16_t memory);
  void clear_poison(QueuePlace& queue_place, ArenaSlot& slot);
  ArenaSlot* take_slot_in(DeviceArena& arena, std::uint64_t bytes);
  static ArenaSlot* unused_in(const DeviceArena& arena, std::uint64_t least,
                              std::uint64_t most) noexcept;
  ArenaSlot& new_slot(DeviceArena& arena, std::uint64_t bytes);
  ArenaSlot* victim_in(const DeviceArena& arena, std::uint64_t bytes) const noexcept;
  void evict(ArenaSlot& slot);
  void abandon(DeviceArena& arena, ArenaSlot& slot);
  void free_abandoned(DeviceArena& arena);

  Runtime& runtime_;
  std::vector<QueuePlace>& queue_places_;
  PieceTable pieces_;
  std::map<std::uint16_t, DeviceArena> arenas_;
  std::array<DeviceArena*, kMaxMemories> by_memory_{};
  std::int64_t now_ns_ = 0;
  std::uint64_t pin_ = 0;
  std::vector<weir_event> waits_;
};

}  // namespace weir::rt
