// The memory that ranks of one machine share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/uio.h>

#include "net/transport.hpp"

namespace weir::rt {

/// Bytes from one rank to another, written by one process and read by another one. Packets are in
/// one piece, each behind its size, on 16 bytes.
struct ShmRing {
  static constexpr std::size_t kBytes = 640u << 10;  ///< a conveyor's blocks in flight, and a gap

  alignas(64) std::atomic<std::uint64_t> head;  ///< bytes that have been read
  alignas(64) std::atomic<std::uint64_t> tail;  ///< bytes that have been written
  std::atomic<std::uint32_t> starving;          ///< the writer waits for room
  alignas(64) std::array<std::byte, kBytes> bytes;
};

/// A window as other processes find it.
struct ShmWindow {
  std::atomic<std::uint64_t> id;     ///< one more than its number, 0: none
  std::atomic<std::uint32_t> users;  ///< operations of other processes that are in it
  std::uint64_t address, bytes;      ///< in the owner's process
  std::uint64_t place;               ///< in the segment, 0: not there
};

/// A copy that the system is to make between the memory of two processes: whoever withdraws the
/// window empties the runs.
struct ShmCopy {
  static constexpr std::size_t kRuns = 256;

  std::atomic<std::uint64_t> window;  ///< as id_of() has it, 0: none
  std::array<iovec, kRuns> there;     ///< in the process of its owner

  static std::uint64_t id_of(Rank owner, WindowId window) noexcept {
    return (std::uint64_t{owner} << 32 | window) + 1;
  }
};

/// What a rank shows to all.
struct ShmRank {
  static constexpr std::size_t kWindows = 1024;  ///< that can be reached directly
  static constexpr std::size_t kCopies = 16;     ///< at a time

  alignas(64) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::int32_t> process;  ///< 0: has not come yet
  std::atomic<std::uint32_t> ended;   ///< its process, as its parent knows
  alignas(64) std::array<ShmWindow, kWindows> windows;
  alignas(64) std::array<ShmCopy, kCopies> copies;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

/// A mapping of the segment: ranks, a ring for each ordered pair, and memory for windows. It has no
/// name: processes inherit its descriptor, and it ends with the last of them.
class Segment {
 public:
  static constexpr std::uint64_t kPage = 4096;

  /// Makes one. Throws Error.
  explicit Segment(Rank ranks);
  /// Maps that of a descriptor, which it takes over. Throws Error when it is none.
  static std::unique_ptr<Segment> attach(int descriptor, Rank ranks);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  int descriptor() const noexcept { return descriptor_; }
  Rank ranks() const noexcept { return ranks_; }
  /// The process that made it.
  std::int64_t maker() const noexcept;
  ShmRank& rank(Rank rank) const noexcept;
  ShmRing& ring(Rank from, Rank to) const noexcept;
  std::byte* base() const noexcept { return base_; }

  /// Where a rank's memory for windows is in the segment.
  std::uint64_t heap(Rank rank) const noexcept;
  std::uint64_t heap_bytes() const noexcept;
  /// Makes sure that there is memory behind a part of the heap, piece by piece. OUT_OF_MEMORY:
  /// there is none; TIMEOUT: not behind all of it at the deadline of sys::now_ns(). Some may be
  /// there then.
  /// The first 16 MiB do not look at the deadline.
  weir_status reserve(std::uint64_t place, std::uint64_t bytes, std::int64_t deadline_ns) noexcept;
  /// Gives it back; it is zero when it is reserved again.
  void discard(std::uint64_t place, std::uint64_t bytes) noexcept;

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
