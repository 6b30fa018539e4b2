// The link between processes of one machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/shm/segment.hpp"

namespace weir::rt {

/// Carries packets through rings in a segment, which also holds the futexes of sleeping threads.
/// Puts and gets copy between processes; atomic operations use the processor's atomics on memory in
/// the segment.
///
/// A stopped or dead process may resume an operation long after it was abandoned. withdraw() waits
/// one second at most. Segment memory that such an operation uses is not reused before it ends; a
/// copy to or from other memory finds empty runs, unless the kernel has started it.
class ShmLink final : public Link {
 public:
  /// Throws Error if another process has this rank already.
  ShmLink(std::unique_ptr<Segment> segment, Rank rank, std::int64_t longest_use_ns = kLongestUse);
  ~ShmLink() override;

  const LinkInfo& info() const noexcept override { return info_; }
  bool send(Rank to, Parts parts) noexcept override;
  bool receive(PacketSink& sink) noexcept override;
  std::string why_lost(Rank rank) noexcept override;
  void cut(Rank rank, bool announced) noexcept override;
  std::optional<Outcome> direct(const OneSided& operation, std::uint64_t& cursor,
                                std::int64_t& old) noexcept override;
  void expose(WindowId window, void* memory, std::size_t bytes) noexcept override;
  bool withdraw(WindowId window) noexcept override;
  void settle(WindowId window) noexcept override;
  void* allocate(std::size_t bytes) noexcept override;
  weir_status commit(void* memory, std::size_t bytes, std::int64_t deadline_ns) noexcept override;
  bool release(void* memory) noexcept override;
  bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                 std::span<const WindowRun> runs) noexcept override;
  std::optional<std::uint64_t> offset_of(const void* memory) const noexcept override;
  const std::byte* memory_of(Rank owner, std::uint64_t offset,
                             std::uint64_t bytes) const noexcept override;

  std::uint32_t bell() const noexcept override;
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override;
  void wake() noexcept override;

 private:
  static constexpr std::int64_t kLongestUse = 1'000'000'000;  ///< maximum wait of settle()

  struct Peer {
    int process = -1;  ///< process descriptor
    std::atomic<bool> cut{false};
  };
  /// An allocation in the heap.
  struct Block {
    std::uint64_t bytes;
    bool released = false;  ///< kept, because an operation may still use it
  };

  bool receive_one(Rank from, PacketSink& sink) noexcept;
  bool anything() const noexcept;
  void ring_bell(Rank rank) noexcept;
  void ring_surely(Rank rank) noexcept;
  void watch(Rank rank) noexcept;
  ShmWindow& window_of(Rank rank, WindowId window) const noexcept;
  bool entered(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  void discard_released() noexcept;
  std::optional<Outcome> in_segment(const OneSided& operation, const ShmWindow& window,
                                    std::uint64_t& cursor, std::int64_t& old) noexcept;
  std::optional<Outcome> across(const OneSided& operation, std::uint64_t& cursor) noexcept;
  ShmCopy* begin_copy(Rank target, WindowId window) noexcept;
  void empty_copies(WindowId window) noexcept;
  std::size_t copy_across(OneSidedKind kind, Rank target, WindowId number,
                          std::span<const WindowRun> runs) noexcept;

  const std::unique_ptr<Segment> segment_;
  const std::int64_t longest_use_ns_;
  LinkInfo info_;
  ShmRank& own_;
  std::vector<Peer> peers_;
  Rank first_ = 0;                           ///< the rank whose ring is read first
  std::atomic<bool> may_copy_across_{true};  ///< the system allows copies between processes
  std::map<std::uint64_t, Block> used_;      ///< allocations in the heap, by offset
};

}  // namespace weir::rt
