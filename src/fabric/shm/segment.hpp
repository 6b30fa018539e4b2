// The memory that the ranks of one machine share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/uio.h>

#include "fabric/link.hpp"

namespace weir::rt {

/// A ring of bytes from one rank to another, with one writer process and one reader process. Each
/// packet is contiguous, preceded by its size, and aligned to 16 bytes.
struct ShmRing {
  static constexpr std::size_t kBytes = 640u << 10;  ///< a conveyor's blocks in flight, and a gap

  alignas(64) std::atomic<std::uint64_t> head;  ///< bytes that have been read
  alignas(64) std::atomic<std::uint64_t> tail;  ///< bytes that have been written
  std::atomic<std::uint32_t> starving;          ///< the writer waits for room
  alignas(64) std::array<std::byte, kBytes> bytes;
};

/// A window as other processes see it.
struct ShmWindow {
  std::atomic<std::uint64_t> id;     ///< window number plus one; 0: none
  std::atomic<std::uint32_t> users;  ///< operations of other processes in flight
  std::uint64_t address, bytes;      ///< in the owner's process
  std::uint64_t offset;              ///< offset in the segment; 0: not in it
};

/// A copy between two processes by the system. The rank that withdraws the window sets the lengths
/// of the runs to 0.
struct ShmCopy {
  static constexpr std::size_t kRuns = 256;

  std::atomic<std::uint64_t> window;  ///< id_of() of the window; 0: none
  std::array<iovec, kRuns> there;     ///< in the owner's process

  static std::uint64_t id_of(Rank owner, WindowId window) noexcept {
    return (std::uint64_t{owner} << 32 | window) + 1;
  }
};

/// The part of a rank that all ranks can see.
struct ShmRank {
  static constexpr std::size_t kWindows = 1024;  ///< maximum with direct access
  static constexpr std::size_t kCopies = 16;     ///< maximum in flight

  alignas(64) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::int32_t> process;  ///< 0: has not joined yet
  std::atomic<std::uint32_t> ended;   ///< the parent process has seen it end
  alignas(64) std::array<ShmWindow, kWindows> windows;
  alignas(64) std::array<ShmCopy, kCopies> copies;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

/// A mapping of the segment: ranks, a ring for each ordered pair, and memory for windows. It has no
/// name: processes inherit its descriptor or open it in /proc, and the system frees it when the
/// last one ends.
class Segment {
 public:
  static constexpr std::uint64_t kPage = 4096;

  /// Creates a segment. Throws Error.
  explicit Segment(Rank ranks);
  /// Maps the segment of a descriptor and takes ownership of the descriptor. Throws Error if it is
  /// not a segment.
  static std::unique_ptr<Segment> attach(int descriptor, Rank ranks);
  /// Maps the segment that another process has created, by its descriptor there and the number of
  /// its file. Throws Error if this process may not open it.
  static std::unique_ptr<Segment> open(std::int64_t process, int descriptor, std::uint64_t file,
                                       Rank ranks);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  int descriptor() const noexcept { return descriptor_; }
  /// Returns the number of its file, which no other segment of this system has meanwhile.
  std::uint64_t file() const noexcept;
  Rank ranks() const noexcept { return ranks_; }
  /// Returns the id of the process that created it.
  std::int64_t maker() const noexcept;
  ShmRank& rank(Rank rank) const noexcept;
  ShmRing& ring(Rank from, Rank to) const noexcept;
  std::byte* base() const noexcept { return base_; }

  /// Returns the offset of a rank's memory for windows.
  std::uint64_t heap(Rank rank) const noexcept;
  std::uint64_t heap_bytes() const noexcept;
  /// Allocates memory for a part of the heap, piece by piece. OUT_OF_MEMORY: the system has none;
  /// TIMEOUT: not all of it was allocated by the deadline (sys::now_ns()). In both cases a part may
  /// be allocated. The first 16 MiB ignore the deadline.
  weir_status reserve(std::uint64_t offset, std::uint64_t bytes, std::int64_t deadline_ns) noexcept;
  /// Returns the memory to the system; it is zero when it is reserved again.
  void discard(std::uint64_t offset, std::uint64_t bytes) noexcept;

 private:
  struct Header;
  Segment(int descriptor, Rank ranks, bool fresh);
  void map();

  int descriptor_;
  Rank ranks_;
  std::uint64_t bytes_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace weir::rt
