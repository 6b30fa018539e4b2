// Pieces: the regions that the tasks of a queue use, and where their newest contents are.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <weir/event.h>
#include <weir/region.h>

#include "base/region.hpp"
#include "core/buffer.hpp"

namespace weir::rt {

struct Piece;

/// An action that uses a memory, and its queue place.
struct Use {
  static constexpr std::uint32_t kNoPlace = UINT32_MAX;

  weir_event event = WEIR_EVENT_INIT;
  std::uint32_t queue_place = kNoPlace;
};

/// Memory for the contents of a piece: its region of host memory, or a slot in device memory.
struct Storage {
  weir_buffer* buffer = nullptr;
  weir_region region{};
  std::uint16_t memory = kHostMemory;
  Use writer;                 ///< last action that wrote it
  Use earlier_writer;         ///< another possible writer, if the last one never had a place
  std::vector<Use> readers;   ///< actions that have read it since
  Piece* piece = nullptr;     ///< of a slot: its piece
  std::int64_t ready_ns = 0;  ///< estimated completion of the last copy into it
};

/// How a task uses a piece, for the order of tasks.
enum class UseKind : std::uint8_t { read, write, commute };

/// The use of a piece by a deferred task.
struct DeferredUse {
  static constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << 48) - 1;

  std::uint64_t sequence : 48 = 0;  ///< sequence number of the task
  std::uint16_t flags = 0;          ///< of the object that contains this one
  DeferredUse *before = nullptr, *next = nullptr;
};

/// A list of elements that contain its links. Does not own them.
template <class Element, Element* Element::*kBefore, Element* Element::*kAfter>
class LinkedList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  Element* first() const noexcept { return first_; }
  static Element* after(const Element& element) noexcept { return element.*kAfter; }

  void push(Element& element) noexcept {
    element.*kBefore = last_;
    element.*kAfter = nullptr;
    (last_ != nullptr ? last_->*kAfter : first_) = &element;
    last_ = &element;
  }
  void remove(Element& element) noexcept {
    Element* const before = element.*kBefore;
    Element* const after = element.*kAfter;
    (before != nullptr ? before->*kAfter : first_) = after;
    (after != nullptr ? after->*kBefore : last_) = before;
  }

 private:
  Element* first_ = nullptr;
  Element* last_ = nullptr;
};

/// Deferred tasks that use a piece in the same way, in program order.
struct DeferredUses : LinkedList<DeferredUse, &DeferredUse::before, &DeferredUse::next> {
  /// Returns the sequence number of the first one, UINT64_MAX if there is none.
  std::uint64_t first() const noexcept {
    return empty() ? UINT64_MAX : LinkedList::first()->sequence;
  }
};

/// A region that tasks name, with its storages.
struct Piece {
  Region region;
  Storage host_storage;                        ///< in host memory
  std::array<Storage*, kMaxMemories> slots{};  ///< by memory
  std::uint64_t valid = 1;                     ///< bit m: memory m has the newest contents
  std::vector<Piece*> peers;                   ///< other pieces that overlap this one
  std::uint64_t last_use = 0;                  ///< sequence number of the last bound task
  std::uint64_t pin_mark = 0;            ///< mark of the task that is being bound and needs it
  std::uint64_t search_mark = 0;         ///< mark of the last search that visited it
  std::int64_t ready_ns = 0;             ///< estimated time of its newest contents
  std::uint64_t writer_sequence = 0;     ///< sequence number of the bound task that writes those
  std::int64_t waited_ns = 0;            ///< what its users lost by waiting where it is
  std::uint64_t waited_sequence = 0;     ///< writer_sequence when the last loss was added
  std::uint32_t owner = Use::kNoPlace;   ///< queue place that last wrote it
  std::array<DeferredUses, 3> deferred;  ///< by UseKind

  bool valid_in(std::uint16_t where) const noexcept { return (valid >> where & 1) != 0; }
  bool valid_on_host() const noexcept { return valid_in(kHostMemory); }
  /// Returns the first device memory with the newest contents. The piece is not valid on the host.
  std::uint16_t first_valid_memory() const noexcept {
    return static_cast<std::uint16_t>(std::countr_zero(valid & ~std::uint64_t{1}));
  }
  /// Returns the storage in a memory that has one.
  Storage& storage_in(std::uint16_t memory) noexcept {
    return memory == kHostMemory ? host_storage : *slots[memory];
  }
  std::uint64_t bytes() const noexcept { return region.bytes(); }

  DeferredUses& deferred_as(UseKind kind) noexcept {
    return deferred[static_cast<std::size_t>(kind)];
  }
  /// Returns the sequence number of the first deferred task that uses it, UINT64_MAX if there is
  /// none.
  std::uint64_t next_use() const noexcept {
    return std::min({deferred[0].first(), deferred[1].first(), deferred[2].first()});
  }
  /// Whether a task depends on an earlier deferred task.
  bool depends_on_deferred(std::uint64_t sequence, UseKind kind) const noexcept;
};

/// All pieces of a queue. One thread at a time.
class PieceTable {
 public:
  /// Returns the piece of a valid region of a live buffer, created on first use. Throws
  /// std::bad_alloc.
  Piece& find(weir_buffer& buffer, const Region& region);
  /// Calls visit(piece) for the pieces of a buffer that overlap a region.
  template <class Visit>
  void each_overlapping(const Buffer& buffer, const Region& region, Visit&& visit) {
    const auto found = buffers_.find(buffer.id());
    if (found == buffers_.end()) return;
    for (Piece* piece : found->second.candidates(region, ++searches_)) {
      if (overlap(piece->region, region)) visit(*piece);
    }
  }
  template <class Visit>
  void each(Visit&& visit) {
    for (auto& [id, index] : buffers_) {
      for (const auto& piece : index.pieces) visit(*piece);
    }
  }
  /// Removes the pieces of a buffer, which must not have slots.
  void forget(const Buffer& buffer) noexcept;

 private:
  static constexpr std::size_t kBins = 256;

  struct Hash {
    std::size_t operator()(const Region& region) const noexcept {
      std::uint64_t hash = region.offset * 0x9E3779B97F4A7C15u;
      hash ^= (region.row + (std::uint64_t{region.rows} << 32)) * 0xC2B2AE3D27D4EB4Fu;
      return hash ^ hash >> 29;
    }
  };
  /// The pieces of one buffer, by region and by the bins of the buffer that they overlap.
  struct RegionIndex {
    std::vector<std::unique_ptr<Piece>> pieces;
    std::unordered_map<Region, Piece*, Hash> by_region;
    std::array<std::vector<Piece*>, kBins> bins;
    std::uint64_t stretch = 1;
    std::vector<Piece*> found;  ///< result of a search; has capacity for all pieces

    const std::vector<Piece*>& candidates(const Region& region, std::uint64_t search) noexcept;
  };

  std::unordered_map<std::uint64_t, RegionIndex> buffers_;
  std::uint64_t searches_ = 0;
};

}  // namespace weir::rt
