// Brings the messages of all conveyors of a port to the right one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "net/port.hpp"

namespace weir::rt {

class Conveyor;

/// What every message of a conveyor begins with.
struct ConveyorEnvelope {
  enum class Kind : std::uint8_t {
    block,    ///< then a block, its head first
    packet,   ///< then a block, its `value` bytes of data first
    lent,     ///< then a LentBlock
    ask,      ///< for an ack
    ack,      ///< `value` blocks of yours are applied
    refusal,  ///< then why
  };
  std::uint32_t conveyor = 0;
  Kind kind = Kind::block;
  bool ask = false;  ///< of a block: an ack is wanted
  std::uint16_t unused = 0;
  std::uint64_t value = 0;
};
static_assert(sizeof(ConveyorEnvelope) == 16);

/// Where a block is that its receiver reads in the sender's memory: places of its two parts. The
/// memory is the sender's again when the block has been applied.
struct LentBlock {
  std::uint64_t head, head_bytes;
  std::uint64_t data, data_bytes;
};

/// Sends a message with an envelope.
void send(Port& port, Rank to, const ConveyorEnvelope& envelope,
          std::span<const std::byte> body = {});

/// The conveyors of a port, numbered in the order in which they enter: the same on all ranks. Any
/// thread.
class ConveyorHub final : private Listener {
 public:
  /// The port outlives the hub.
  explicit ConveyorHub(Port& port);
  ConveyorHub(const ConveyorHub&) = delete;
  ConveyorHub& operator=(const ConveyorHub&) = delete;
  ~ConveyorHub();

  Port& port() const noexcept { return port_; }

  /// Delivers to a conveyor from now on. Returns its number.
  std::uint32_t enter(Conveyor& conveyor);
  /// Delivers no more to it when it returns. Not from inside a delivery.
  void leave(std::uint32_t number) noexcept;
  /// Gives memory of a conveyor that has left back to the port, when a rank has applied so many of
  /// its blocks or has refused one. The port's end frees what a rank had that is lost: it may live
  /// on, and read.
  void release_later(std::uint32_t number, Rank rank, std::uint64_t blocks,
                     std::vector<std::byte*> memory) noexcept;

 private:
  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;
  void deliver(Rank from, const ConveyorEnvelope& envelope, std::span<const std::byte> body);

  struct Lent {
    std::uint32_t conveyor;
    Rank to;
    std::uint64_t blocks;
    std::vector<std::byte*> memory;
  };
  template <class IsOver>
  void release(IsOver&& is_over) noexcept;

  Port& port_;
  sys::Mutex mutex_;
  sys::Condition delivered_;
  std::map<std::uint32_t, Conveyor*> conveyors_ WEIR_GUARDED_BY(mutex_);
  std::map<Rank, std::string> lost_ WEIR_GUARDED_BY(mutex_);
  std::list<Lent> lent_ WEIR_GUARDED_BY(mutex_);  ///< by conveyors that have left
  std::uint32_t next_ WEIR_GUARDED_BY(mutex_) = 0;
  Conveyor* receiving_ WEIR_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weir::rt
