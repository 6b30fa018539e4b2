// Aggregation of small items for other ranks into large messages: the communication cache of paper
// 003.
//
// A receiver applies the items of one producer in the order in which they were put, whatever their
// kinds and sizes; no other order is guaranteed. A conveyor sends a block when it is full, when it
// reaches its maximum age, and at flush(). The receiver acknowledges applied blocks. The number of
// blocks in flight to a rank is limited, which bounds memory on both sides. The thread that makes
// progress on the receiver applies blocks, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/conveyor.h>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "conveyor/applied_blocks.hpp"
#include "conveyor/conveyor_hub.hpp"
#include "conveyor/item_block.hpp"
#include "fabric/collectives.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Settings of a conveyor on one rank. Zeros have the meaning that weir_conveyor_options defines.
struct ConveyorSetup {
  /// Processes items on the thread that makes progress; finish() reports an outcome that is not OK.
  using Handler = std::function<Outcome(Rank from, const std::byte* items, std::size_t count)>;

  std::string name;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::vector<std::uint32_t> handler_bytes;  ///< item size of each handler
  std::vector<Handler> handlers;
  std::size_t block_bytes = 0;  ///< capacity of a block; 0: the best size for the fabric
  std::size_t block_items = 0;  ///< maximum number of items in a block; 0: as many as fit
  std::uint64_t blocks_in_flight = 8;
  std::int64_t age_ns = 1'000'000;  ///< maximum age of a block; negative: unlimited
  std::int64_t timeout_ns = -1;     ///< of the constructor
};

/// Memory for a block that the target rank reads in place.
struct LentMemory {
  std::byte* bytes = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t block = 0;  ///< last block that was sent from it
  bool open = true;         ///< a producer is filling it
};

/// Memory of a block, if it is not the writer's own: at most one of the two is set.
struct BlockMemory {
  LentMemory* lent = nullptr;
  std::byte* reserved = nullptr;  ///< by Port::reserve()
};

/// Puts items into a conveyor, whose finish() flushes them.
class ItemSource {
 public:
  /// Sends all open blocks; keeps the first failure and continues. Returns false on timeout.
  virtual bool send_all(std::int64_t deadline_ns) = 0;
  /// Waits for all sent blocks in the same way.
  virtual bool wait_all(std::int64_t deadline_ns) = 0;
  /// Returns the failure that it has kept, and forgets it.
  virtual Outcome take_failure() noexcept = 0;

 protected:
  ~ItemSource() = default;
};

/// One rank's part of a conveyor, which all ranks create in the same order. Any thread.
class Conveyor final : private ItemHandler, private GroupHub::Member {
 public:
  /// Collective: waits for the other ranks. The hub must outlive the conveyor. Throws Error.
  Conveyor(ConveyorHub& hub, Collectives& collectives, ConveyorSetup setup);
  Conveyor(const Conveyor&) = delete;
  Conveyor& operator=(const Conveyor&) = delete;
  ~Conveyor();

  const ConveyorSetup& setup() const noexcept { return setup_; }
  std::size_t block_bytes() const noexcept {
    return setup_.block_bytes > 0 ? setup_.block_bytes : kBlockBytes;
  }
  Rank ranks() const noexcept { return static_cast<Rank>(peers_.size()); }

  /// Flushes all producers of this rank, which no thread may use meanwhile, and waits until all
  /// live ranks have done so; then all items are applied on all ranks. All ranks call it, with one
  /// thread each. Throws the first failure: of this call, of a block that this rank sent, or of a
  /// handler on this rank.
  void finish(std::int64_t timeout_ns);

  /// Returns statistics of this rank.
  weir_conveyor_info counts() const noexcept;

  /// Throws Error{busy} on a thread that must not wait: in a handler.
  void check_may_wait() const;

  // Called by producers.
  /// From now on, finish() flushes the source. Throws std::bad_alloc.
  void add(ItemSource& source);
  void remove(ItemSource& source) noexcept;
  /// Throws the failure of a rank, if it has one.
  void check_peer(Rank rank) const;
  std::string why_lost(Rank rank) const { return port_.why_lost(rank); }
  /// Returns the size of a rank's memory.
  std::uint64_t memory_bytes(Rank rank) const noexcept { return peers_[rank].bytes; }
  /// Returns the capacity of a block that is sent without a copy.
  std::size_t packet_bytes() const noexcept { return packet_bytes_; }
  /// Returns memory for a block that does not combine; none if it is not available by the deadline.
  BlockMemory memory_for(Rank to, const BlockWriter& writer, std::int64_t deadline_ns) noexcept;
  /// Takes back memory whose block the producer has not sent.
  void reclaim(Rank to, BlockMemory& memory) noexcept;
  /// Sends the block in `memory` once fewer blocks than the limit are in flight. Returns the
  /// block's number; 0 after a timeout.
  std::uint64_t send_block(Rank to, BlockWriter& writer, BlockMemory& memory, bool ask,
                           std::int64_t deadline_ns);
  /// Requests an ack for that block unless one has been requested already.
  void ask_for(Rank rank, std::uint64_t block);
  /// Waits until the rank has applied that block. Returns false at the deadline; throws the failure
  /// of the rank.
  bool wait_for(Rank rank, std::uint64_t block, std::int64_t deadline_ns);
  /// Makes progress, unless a thread does so: progress here would cost the producer's core.
  void poll() noexcept {
    if (port_.progress_by() != ProgressBy::thread) port_.progress();
  }

 private:
  /// Below 64 KiB with all headers: one frame, which MPI sends eagerly over TCP.
  static constexpr std::size_t kBlockBytes = 64'512;
  /// For blocks that are sent without a copy. Over TCP, MPI writes a message of more than 192 KiB
  /// directly to the buffer from which it is applied; larger blocks would not stay in a core's
  /// cache.
  static constexpr std::size_t kPacketBytes = 8 * kBlockBytes;

  /// State of one other rank.
  struct Peer {
    sys::Mutex sending;                  ///< held while a block is sent
    sys::Atomic<std::uint64_t> sent{0};  ///< number of sent blocks
    AppliedBlocks applied;               ///< `failure` is valid once it says so
    /// An ack up to this block has been requested.
    std::uint64_t asked WEIR_GUARDED_BY(sending) = 0;
    std::list<LentMemory> lent WEIR_GUARDED_BY(sending);
    /// This rank has been able to allocate lent memory so far.
    bool lends WEIR_GUARDED_BY(sending) = true;
    std::uint64_t bytes = 0;  ///< size of the peer's memory
    Outcome failure;
    std::uint64_t received = 0;  ///< number of received blocks; thread that makes progress
    bool refused = false;        ///< this rank refuses further blocks from the peer; same thread
    bool reads = true;           ///< the peer accepts this rank's blocks; same thread
  };

  // On the thread that makes progress, or in the constructor.
  void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                std::span<const std::byte> body) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;
  void apply(Rank from, GroupHub::Kind kind, std::uint64_t data_bytes,
             std::span<const std::byte> message);
  std::string apply_to_memory(Rank from, GroupHub::Kind kind, std::uint64_t data_bytes,
                              std::span<const std::byte> message);
  std::string apply_lent(Rank from, std::span<const std::byte> message);
  BlockTarget target() noexcept;
  void handle(std::uint16_t handler, const std::byte* items, std::size_t count) override;
  void take_ack(Rank from, std::uint64_t blocks);
  void take_refusal(Rank from, std::string_view why);
  void refuse(Rank from, const std::string& why);
  void send_refusal(Rank to, std::string_view why);
  void fail_peer(Rank rank, weir_status status, const std::string& message) noexcept;
  void note_failure(Outcome outcome) noexcept;

  void note_earlier_losses();
  void join(Collectives& collectives);
  /// Returns memory for a block that the target rank can read in place; null if there is none or at
  /// the deadline.
  LentMemory* lend(Rank to, std::size_t bytes, std::int64_t deadline_ns) noexcept;
  /// Allocates memory for one block; empty at the deadline. out_can: false if no later call can
  /// succeed.
  std::list<LentMemory> allocate_lent(std::size_t bytes, std::int64_t deadline_ns,
                                      bool& out_can) noexcept;
  void release_lent() noexcept;
  void send_message(Rank to, BlockWriter& writer, BlockMemory& memory, bool ask);
  void count(const BlockCount& block, std::size_t wire_bytes, std::uint64_t in_flight) noexcept;

  ConveyorHub& hub_;
  Port& port_;
  const ConveyorSetup setup_;
  const std::size_t packet_bytes_;
  std::vector<Peer> peers_;
  std::uint32_t number_ = 0;

  sys::Mutex mutex_;
  std::vector<ItemSource*> sources_ WEIR_GUARDED_BY(mutex_);
  Outcome failure_ WEIR_GUARDED_BY(mutex_);

  Rank from_ = 0;  ///< source of the block that is being applied
  std::vector<std::byte> scratch_;

  struct Totals {
    sys::Atomic<std::uint64_t> items{0}, item_bytes{0}, combined{0}, joined{0}, blocks{0},
        wire_bytes{0}, most_in_flight{0}, blocks_applied{0};
  };
  Totals totals_;
};

}  // namespace weir::rt
