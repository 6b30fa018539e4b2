// Copies of what the tasks of a queue use, in the memories of its places.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/handle.hpp"
#include "runtime/queue_lane.hpp"
#include "sched/piece.hpp"

namespace weir::rt {

class Runtime;

/// How a task uses a region. Its piece is known to the owner of the queue only.
struct PieceUse {
  weir_buffer* buffer = nullptr;
  Region region;
  weir_access access = WEIR_ACCESS_READ;  ///< read, write or both
  bool commutes = false;
  Piece* piece = nullptr;
  ExpectedUse expected{};  ///< in the piece's list while the task has no place

  bool reads() const noexcept { return (access & WEIR_ACCESS_READ) != 0; }
  bool writes() const noexcept { return (access & WEIR_ACCESS_WRITE) != 0; }
};

/// Sees to it that each task finds the newest contents where it runs.
///
/// Everything is enqueued in the streams of the lanes and nothing waits: transfers and tasks are
/// ordered by their operands within a lane, and by events between lanes. A device's memory is
/// divided into slots, one for each piece that has a copy there. When there is no room the slot
/// whose piece is needed last gets another piece; the order in the stream sees to the rest. One
/// thread at a time.
class Coherence {
 public:
  Coherence(Runtime& runtime, std::vector<Lane>& lanes);
  Coherence(const Coherence&) = delete;
  Coherence& operator=(const Coherence&) = delete;
  /// All lanes are idle.
  ~Coherence();

  PieceTable& pieces() noexcept { return pieces_; }

  /// Bytes that a task reads and that are not in a lane's memory.
  std::uint64_t missing_bytes(const Lane& lane, std::span<const PieceUse> uses) const noexcept;

  /// Enqueues what has to happen before a task runs in a lane, and sets its operands and the events
  /// that it has to wait for. Throws.
  void prepare(Lane& lane, std::span<const PieceUse> uses, std::uint64_t sequence,
               std::vector<weir_operand>& operands, std::vector<weir_event>& waits);
  /// Notes that a task of which prepare() was the last was enqueued.
  void note(const Lane& lane, std::span<const PieceUse> uses, const weir_event& event) noexcept;
  /// Notes that a task will not be enqueued: `failed`, an event that has failed, stands for it.
  void note_failed(std::span<const PieceUse> uses, const weir_event& failed);

  /// Enqueues the copy to host memory of the newest contents of the pieces in a region, and adds
  /// the events to wait for before the program uses them so. Returns how many there are, at the
  /// end, whose failure does not concern it.
  std::size_t fetch(Buffer& buffer, const Region& region, bool writes,
                    std::vector<weir_event>& waits);
  /// The same of everything there is.
  void fetch_all(std::vector<weir_event>& waits);
  /// Lets what has failed concern those who come later without the streams, which are to forget it.
  void keep_failures();
  /// Forgets what is over, and what it left in memories where it has failed.
  void forget_uses();
  /// Drops all pieces of a buffer. Nothing uses them any more.
  void forget(const Buffer& buffer) noexcept;

 private:
  struct Slot : Storage {
    Owned<weir_buffer> owned;
    std::uint64_t bytes = 0;
  };
  /// The memory of one device.
  struct Room {
    Domain* domain = nullptr;
    std::uint64_t used = 0;
    std::vector<std::unique_ptr<Slot>> slots;
    std::size_t unused = 0;                        ///< of the slots: they have no piece
    std::vector<std::unique_ptr<Slot>> abandoned;  ///< to be freed when nothing uses them
  };

  bool over(const Use& use) const noexcept;
  bool failed(const Use& use) const noexcept;
  bool settled(const Use& use) const noexcept;
  void add_wait(const Use& use, std::uint32_t lane, std::vector<weir_event>& waits) const;
  void add_waits(const Storage& storage, bool writes, std::uint32_t lane,
                 std::vector<weir_event>& waits) const;
  void add_waits(const Piece& piece, const Storage& storage, bool writes, std::uint32_t lane,
                 std::vector<weir_event>& waits) const;
  void add_failed_peers(const Piece& piece, std::vector<weir_event>& waits) const;
  /// What is enqueued has to be noted: makes room for that beforehand.
  void make_room_to_note(Storage& storage, std::size_t uses);
  void note_use(Storage& storage, const Use& use, bool writes) noexcept;
  static Storage& storage_of(Piece& piece, std::uint16_t memory) noexcept;

  void distrust_failed(Piece& piece) const noexcept;
  void settle_peers(Piece& piece, bool writes);
  Storage& bring(Lane& lane, Piece& piece, bool reads);
  void copy_in(Lane& lane, Piece& piece, Slot& slot);
  void write_back(Piece& piece);
  void transfer(Lane& lane, Piece& piece, Storage& source, Storage& target);
  Lane& lane_of(std::uint16_t memory, const Storage& slot);

  Slot& slot_of(Lane& lane, Piece& piece, std::uint16_t memory);
  void renew(Lane& lane, Slot& slot);
  Slot* take_room(Room& room, std::uint64_t bytes);
  static Slot* unused_in(const Room& room, std::uint64_t least, std::uint64_t most) noexcept;
  Slot& new_slot(Room& room, std::uint64_t bytes);
  Slot* victim_in(const Room& room, std::uint64_t bytes) const noexcept;
  void vacate(Slot& slot);
  void abandon(Room& room, Slot& slot);
  void free_abandoned(Room& room);

  Runtime& runtime_;
  std::vector<Lane>& lanes_;
  PieceTable pieces_;
  std::map<std::uint16_t, Room> rooms_;
  std::uint64_t pin_ = 0;
  std::vector<weir_event> waits_;
};

}  // namespace weir::rt
