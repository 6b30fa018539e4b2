// Routes messages to the conveyors of a port.
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

/// Header of each message of a conveyor.
struct ConveyorEnvelope {
  enum class Kind : std::uint8_t {
    block,    ///< followed by a block, head first
    packet,   ///< followed by a block, its `value` bytes of data first
    lent,     ///< followed by a LentBlock
    ask,      ///< requests an ack
    ack,      ///< `value` blocks of the receiver are applied
    refusal,  ///< followed by the reason
  };
  std::uint32_t conveyor = 0;
  Kind kind = Kind::block;
  bool ask = false;  ///< with a block: requests an ack
  std::uint16_t unused = 0;
  std::uint64_t value = 0;
};
static_assert(sizeof(ConveyorEnvelope) == 16);

/// Location of a block that the receiver reads in the sender's memory: segment offsets of its two
/// parts. The sender may reuse the memory when the block has been applied.
struct LentBlock {
  std::uint64_t head, head_bytes;
  std::uint64_t data, data_bytes;
};

/// Sends a message with an envelope.
void send(Port& port, Rank to, const ConveyorEnvelope& envelope,
          std::span<const std::byte> body = {});

/// The conveyors of a port, numbered in the order in which they enter, which is the same on all
/// ranks. Any thread.
class ConveyorHub final : private Listener {
 public:
  /// The port must outlive the hub.
  explicit ConveyorHub(Port& port);
  ConveyorHub(const ConveyorHub&) = delete;
  ConveyorHub& operator=(const ConveyorHub&) = delete;
  ~ConveyorHub();

  Port& port() const noexcept { return port_; }

  /// Starts delivering messages to a conveyor. Returns its number.
  std::uint32_t enter(Conveyor& conveyor);
  /// Stops delivering to a conveyor; no delivery is running when it returns. Must not be called
  /// during a delivery.
  void leave(std::uint32_t number) noexcept;
  /// Releases memory of a closed conveyor when a rank has applied `blocks` blocks or has refused
  /// one. Memory that a lost rank had is freed by the port's destructor only: the rank's process
  /// may still run and read it.
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
  std::list<Lent> lent_ WEIR_GUARDED_BY(mutex_);  ///< of conveyors that have left the hub
  std::uint32_t next_ WEIR_GUARDED_BY(mutex_) = 0;
  Conveyor* receiving_ WEIR_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weir::rt
