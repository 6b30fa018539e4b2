// One thread's way into a conveyor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/combine_policy.hpp"
#include "net/conveyor.hpp"

namespace weir::rt {

/// Has an open block for each rank, so that putting takes no lock. One thread at a time.
class Producer {
 public:
  explicit Producer(Conveyor& conveyor);
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// Sends what is open, as far as the way is free; the rest is dropped.
  ~Producer();

  Conveyor& conveyor() const noexcept { return conveyor_; }

  /// Puts items one after the other; `offsets` are ignored for ItemKind::send. Waits while too many
  /// blocks are under way. Throws Error: before it has taken any for a bad argument, and for a rank
  /// that failed after it has dropped what was open for it.
  void put(const ItemType& type, Rank to, const std::uint64_t* offsets, const std::byte* items,
           std::size_t count);

  /// Waits until all that was put has been applied. Throws Error; after TIMEOUT it can be repeated.
  void flush(std::int64_t timeout_ns);

 private:
  friend Conveyor;

  struct OpenBlock {
    OpenBlock(std::size_t bytes, std::size_t items) : writer(bytes, items) {}
    BlockWriter writer;
    BlockMemory memory;  ///< of the open block
    CombinePolicy policy;
    std::uint64_t last = 0;  ///< block that was sent
    bool dropped = false;    ///< a block that could not be, which nobody has been told
    std::int64_t began_ns = 0;
  };

  void check(const ItemType& type, Rank to, const std::uint64_t* offsets, std::size_t count) const;
  OpenBlock& open_block_for(Rank rank);
  void begin(OpenBlock& open_block) const noexcept;
  void open_again(Rank to, OpenBlock& open_block, std::int64_t deadline_ns) const;
  bool open_elsewhere(Rank to, OpenBlock& open_block, std::int64_t deadline_ns) const;
  bool send(Rank to, OpenBlock& open_block, bool ask, std::int64_t deadline_ns);
  /// Sends all that is open. Keeps the first failure and goes on. False: timeout.
  bool send_all(std::int64_t deadline_ns);
  /// Waits for all that was sent, in the same way.
  bool wait_all(std::int64_t deadline_ns);
  [[noreturn]] void throw_dropped(Rank rank) const;
  Outcome take_failure() noexcept;
  /// Keeps the exception being handled, unless there is one before.
  void note_failure() noexcept;
  /// Sends what is old. Failures are for the next flush: they are not those of the call.
  void send_old(std::int64_t now);
  void poll_and_send_old();

  Conveyor& conveyor_;
  std::vector<std::unique_ptr<OpenBlock>> open_blocks_;
  std::size_t calls_ = 0;
  std::int64_t polled_ns_ = 0;
  Outcome failure_;  ///< that nobody has been told
};

}  // namespace weir::rt
