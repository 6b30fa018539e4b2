// Small items for other ranks, in large messages: the communication cache of paper 003.
//
// Items of one producer for one rank are applied in the order in which they were put, whatever
// their kinds and sizes; there is no other order. A block is sent when it is full, when it is old,
// and at flush(). The receiver says how many blocks it has applied; no more than a fixed number are
// under way to a rank, so that memory is bounded on both sides. Blocks are applied by the thread
// that makes the receiver's progress, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "net/collectives.hpp"
#include "net/conveyor_hub.hpp"
#include "net/item_block.hpp"
#include "net/port.hpp"

namespace weir::rt {

/// What a conveyor is on one rank. Zeros mean what weir_conveyor_options says.
struct ConveyorSetup {
  /// Takes items, on the thread that makes progress; what is not OK ends up in finish().
  using Handler = std::function<Outcome(Rank from, const std::byte* items, std::size_t count)>;

  std::string name;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::vector<std::uint32_t> handler_bytes;  ///< of their items
  std::vector<Handler> handlers;
  std::size_t block_bytes = 0;  ///< of a block; 0: what the fabric takes best
  std::size_t block_items = 0;  ///< at most in a block; 0: what there is room for
  std::uint64_t blocks_in_flight = 8;
  std::int64_t age_ns = 1'000'000;  ///< negative: blocks may be of any age
  std::int64_t timeout_ns = -1;     ///< of the creation
};

/// Counts of one rank.
struct ConveyorCounts {
  std::uint64_t items, item_bytes, combined, joined;  ///< in blocks that were sent
  std::uint64_t blocks, wire_bytes;
  std::uint64_t most_in_flight;  ///< blocks to one rank that were not known to be applied
  std::uint64_t blocks_applied;
};

/// Memory of a block that the rank it is for reads.
struct LentMemory {
  std::byte* bytes = nullptr;
  std::uint64_t place = 0;
  std::uint64_t block = 0;  ///< that was sent in it last
  bool open = true;         ///< a producer has it
};

/// Where a block is made, if not in memory of its writer: one of them, or none.
struct BlockMemory {
  LentMemory* lent = nullptr;
  std::byte* reserved = nullptr;  ///< of the port
};

class Producer;

/// One rank's part of a conveyor, which all ranks create in the same order. Any thread.
class Conveyor final : private ItemHandler {
 public:
  /// Waits for the other ranks. The hub outlives the conveyor. Throws Error.
  Conveyor(ConveyorHub& hub, Collectives& collectives, ConveyorSetup setup);
  Conveyor(const Conveyor&) = delete;
  Conveyor& operator=(const Conveyor&) = delete;
  ~Conveyor();

  const ConveyorSetup& setup() const noexcept { return setup_; }
  std::size_t block_bytes() const noexcept {
    return setup_.block_bytes > 0 ? setup_.block_bytes : kBlockBytes;
  }
  Rank ranks() const noexcept { return static_cast<Rank>(peers_.size()); }

  std::unique_ptr<Producer> open_producer();

  /// Flushes all producers of this rank, which nobody uses meanwhile, and waits until all ranks
  /// that live have done so: then everything is applied everywhere. Every rank, one thread each.
  /// Throws the first failure: of this, of a block that this rank sent, of a handler here.
  void finish(std::int64_t timeout_ns);

  ConveyorCounts counts() const noexcept;

  /// Throws Error{busy} on a thread that must not wait: inside a handler.
  void check_may_wait() const;

 private:
  /// Below 64 KiB with all heads: one frame, which MPI sends at once over TCP.
  static constexpr std::size_t kBlockBytes = 64'512;
  /// Sent from where it was made. Over TCP MPI writes such a message, of more than 192 KiB, to
  /// where it is applied from; larger ones do not stay in a core's cache.
  static constexpr std::size_t kPacketBytes = 8 * kBlockBytes;

  friend ConveyorHub;
  friend Producer;

  /// What this rank knows of another.
  struct Peer {
    sys::Mutex sending;                                ///< held while a block is sent
    sys::Atomic<std::uint64_t> sent{0};                ///< blocks
    sys::Atomic<std::uint64_t> applied{0};             ///< of these
    std::uint64_t asked WEIR_GUARDED_BY(sending) = 0;  ///< `applied` will reach it; under `sending`
    std::list<LentMemory> lent WEIR_GUARDED_BY(sending);  ///< under `sending`
    bool lends WEIR_GUARDED_BY(sending) = true;           ///< as far as is known; under `sending`
    std::uint64_t bytes = 0;                              ///< of its memory
    sys::Atomic<bool> failed{false};                      ///< `failure` is there
    Outcome failure;
    std::uint64_t received = 0;  ///< blocks; on the thread that makes progress
    bool refused = false;        ///< takes no more of its blocks; same thread
    bool reads = true;           ///< it takes this rank's; same thread

    bool is_complete(std::uint64_t block) const noexcept {
      return failed.load(std::memory_order_acquire) ||
             applied.load(std::memory_order_acquire) >= block;
    }
  };

  // On the thread that makes progress, or at the beginning.
  void arrived(Rank from, const ConveyorEnvelope& envelope,
               std::span<const std::byte> body) noexcept;
  void lost(Rank rank, const std::string& why) noexcept;
  void apply(Rank from, const ConveyorEnvelope& envelope, std::span<const std::byte> message);
  std::string apply_to_memory(Rank from, const ConveyorEnvelope& envelope,
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

  void join(Collectives& collectives);
  /// Throws the failure of a rank, if it has one.
  void check_peer(Rank rank) const;
  /// Memory for a block to a rank, where it can read it; else null, also at the deadline.
  LentMemory* lend(Rank to, std::size_t bytes, std::int64_t deadline_ns) noexcept;
  /// New memory for one block, or none at the deadline. out_can: false when there will be none.
  std::list<LentMemory> allocate_lent(std::size_t bytes, std::int64_t deadline_ns,
                                      bool& out_can) noexcept;
  /// Memory for a block to a rank that does not combine, as far as there is some by the deadline.
  BlockMemory memory_for(Rank to, const BlockWriter& writer, std::int64_t deadline_ns) noexcept;
  /// Takes it back from a producer that has not sent it.
  void reclaim(Rank to, BlockMemory& memory) noexcept;
  void release_lent() noexcept;
  /// Sends a block, which is in that memory, when fewer than the limit are under way. Returns its
  /// number; 0: timeout.
  std::uint64_t send_block(Rank to, BlockWriter& writer, BlockMemory& memory, bool ask,
                           std::int64_t deadline_ns);
  void send_message(Rank to, BlockWriter& writer, BlockMemory& memory, bool ask);
  /// Asks for an ack of that block unless somebody has.
  void ask_for(Rank rank, std::uint64_t block);
  bool wait_for(Rank rank, std::uint64_t block, std::int64_t deadline_ns);
  /// Moves the fabric on, unless that is a thread's work: it would take the core of who puts.
  void poll() noexcept {
    if (port_.progress_by() != ProgressBy::thread) port_.progress();
  }
  void count(const BlockCount& block, std::size_t wire_bytes, std::uint64_t in_flight) noexcept;
  void remove(Producer& producer) noexcept;

  ConveyorHub& hub_;
  Port& port_;
  const ConveyorSetup setup_;
  const std::size_t packet_bytes_;  ///< of a block that is sent from where it was made
  std::vector<Peer> peers_;
  std::uint32_t number_ = 0;

  sys::Mutex mutex_;  ///< of what follows
  std::vector<Producer*> producers_ WEIR_GUARDED_BY(mutex_);
  Outcome failure_ WEIR_GUARDED_BY(mutex_);

  Rank from_ = 0;  ///< whose block is being applied
  std::vector<std::byte> scratch_;

  struct Totals {
    sys::Atomic<std::uint64_t> items{0}, item_bytes{0}, combined{0}, joined{0}, blocks{0},
        wire_bytes{0}, most_in_flight{0}, blocks_applied{0};
  };
  Totals totals_;
};

}  // namespace weir::rt
