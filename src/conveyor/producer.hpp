// One thread's access to a conveyor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "conveyor/combine_policy.hpp"
#include "conveyor/conveyor.hpp"

namespace weir::rt {

/// Keeps an open block for each rank, so that put() takes no lock. One thread at a time.
class Producer final : private ItemSource {
 public:
  /// The conveyor must outlive the producer. Throws std::bad_alloc.
  explicit Producer(Conveyor& conveyor);
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// Sends open blocks as far as there is room, and drops the rest.
  ~Producer();

  /// Puts items in order; `offsets` is ignored for ItemKind::send. Blocks while too many blocks are
  /// in flight. Throws Error: for a bad argument before it has taken any item, and for a failed
  /// rank after it has dropped the open block for that rank.
  void put(const ItemType& type, Rank to, const std::uint64_t* offsets, const std::byte* items,
           std::size_t count);

  /// Waits until all earlier items have been applied. Throws Error; after TIMEOUT it can be
  /// repeated.
  void flush(std::int64_t timeout_ns);

 private:
  struct OpenBlock {
    OpenBlock(std::size_t bytes, std::size_t items) : writer(bytes, items) {}
    BlockWriter writer;
    BlockMemory memory;  ///< of the open block
    CombinePolicy policy;
    std::uint64_t last = 0;  ///< last sent block
    bool dropped = false;    ///< a block was dropped, which is not reported yet
    std::int64_t began_ns = 0;
  };

  void check(const ItemType& type, Rank to, const std::uint64_t* offsets, std::size_t count) const;
  OpenBlock& open_block_for(Rank rank);
  void begin(OpenBlock& open_block) const noexcept;
  void open_again(Rank to, OpenBlock& open_block, std::int64_t deadline_ns) const;
  bool open_elsewhere(Rank to, OpenBlock& open_block, std::int64_t deadline_ns) const;
  bool send(Rank to, OpenBlock& open_block, bool ask, std::int64_t deadline_ns);
  bool send_all(std::int64_t deadline_ns) override;
  bool wait_all(std::int64_t deadline_ns) override;
  [[noreturn]] void throw_dropped(Rank rank) const;
  Outcome take_failure() noexcept override;
  /// Keeps the exception being handled, unless an earlier one is kept.
  void note_failure() noexcept;
  /// Sends old blocks. The next flush() reports failures, because they do not belong to the current
  /// call.
  void send_old(std::int64_t now);
  void poll_and_send_old();

  Conveyor& conveyor_;
  std::vector<std::unique_ptr<OpenBlock>> open_blocks_;
  std::size_t calls_ = 0;
  std::int64_t polled_ns_ = 0;
  Outcome failure_;  ///< unreported
};

}  // namespace weir::rt
