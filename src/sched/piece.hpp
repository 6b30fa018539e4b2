// The regions that the tasks of a queue use, and where their newest contents are.
#pragma once

#include <algorithm>
#include <array>
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

/// An action that uses a memory, and the place it is in.
struct Use {
  static constexpr std::uint32_t kNoPlace = UINT32_MAX;

  weir_event event = WEIR_EVENT_INIT;
  std::uint32_t queue_place = kNoPlace;
};

/// Memory for the contents of a piece: its region in host memory, or a slot in a device's memory.
struct Storage {
  weir_buffer* buffer = nullptr;
  weir_region region{};
  std::uint16_t memory = kHostMemory;
  Use writer;                 ///< the last action that wrote it
  Use earlier_writer;         ///< one that may still write it, when the last one never had a place
  std::vector<Use> readers;   ///< those that have read it since
  Piece* piece = nullptr;     ///< of a slot: whose contents it is for
  std::int64_t ready_ns = 0;  ///< when the last copy into it is expected to be over
};

/// How a task uses a piece, as far as the order of tasks goes.
enum class UseKind : std::uint8_t { read, write, commute };

/// The use of a piece by a deferred task.
struct DeferredUse {
  static constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << 48) - 1;

  std::uint64_t sequence : 48 = 0;  ///< of the task
  std::uint16_t flags = 0;          ///< of the object that it is a part of
  DeferredUse *before = nullptr, *next = nullptr;
};

/// Tasks without a place that use a piece in the same way, in the order of the program.
class DeferredUses {
 public:
  /// Returns the sequence of the first one, UINT64_MAX without any.
  std::uint64_t first() const noexcept { return first_ != nullptr ? first_->sequence : UINT64_MAX; }
  void push(DeferredUse& use) noexcept;
  void remove(DeferredUse& use) noexcept;

 private:
  DeferredUse* first_ = nullptr;
  DeferredUse* last_ = nullptr;
};

/// A region that tasks name.
struct Piece {
  Region region;
  Storage host_storage;                        ///< in host memory
  std::array<Storage*, kMaxMemories> slots{};  ///< by memory
  std::uint64_t valid = 1;                     ///< bit m: memory m has the newest contents
  std::vector<Piece*> peers;                   ///< others with bytes in common
  std::uint64_t last_use = 0;                  ///< sequence of the last task that was bound
  std::uint64_t pin_mark = 0;                  ///< mark of the task that needs it just now
  std::uint64_t search_mark = 0;               ///< of the last search that met it
  std::int64_t ready_ns = 0;                   ///< when it is expected to have its value
  std::uint64_t writer_sequence = 0;           ///< sequence of the bound task that gives it that
  std::uint32_t owner = Use::kNoPlace;         ///< place that last wrote it
  std::array<DeferredUses, 3> deferred;        ///< by UseKind

  bool valid_in(std::uint16_t where) const noexcept { return (valid >> where & 1) != 0; }
  bool valid_on_host() const noexcept { return valid_in(kHostMemory); }
  std::uint64_t bytes() const noexcept { return region.bytes(); }

  DeferredUses& deferred_as(UseKind kind) noexcept {
    return deferred[static_cast<std::size_t>(kind)];
  }
  /// Returns the sequence of the first task without a place that uses it, UINT64_MAX without any.
  std::uint64_t next_use() const noexcept {
    return std::min({deferred[0].first(), deferred[1].first(), deferred[2].first()});
  }
  /// Whether a task has to wait for one before it that has no place.
  bool depends_on_deferred(std::uint64_t sequence, UseKind kind) const noexcept;
};

/// All pieces of a queue. One thread at a time.
class PieceTable {
 public:
  /// Returns the piece of a valid region of a live buffer, made at its first use. Throws
  /// std::bad_alloc.
  Piece& find(weir_buffer& buffer, const Region& region);
  /// Calls visit(piece) for the pieces of a buffer that have a byte in common with a region.
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
  /// Forgets the pieces of a buffer, which have no slots any more.
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
  /// The pieces of one buffer, by region and by the stretch of the buffer they reach into.
  struct RegionIndex {
    std::vector<std::unique_ptr<Piece>> pieces;
    std::unordered_map<Region, Piece*, Hash> by_region;
    std::array<std::vector<Piece*>, kBins> bins;
    std::uint64_t stretch = 1;
    std::vector<Piece*> found;  ///< has room for all

    const std::vector<Piece*>& candidates(const Region& region, std::uint64_t search) noexcept;
  };

  std::unordered_map<std::uint64_t, RegionIndex> buffers_;
  std::uint64_t searches_ = 0;
};

}  // namespace weir::rt
