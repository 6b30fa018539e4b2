// Routes messages to the conveyors of a port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "fabric/group_hub.hpp"

namespace weir::rt {

/// Location of a block that the receiver reads in the sender's memory: segment offsets of its two
/// parts. The sender may reuse the memory when the block has been applied.
struct LentBlock {
  std::uint64_t head, head_bytes;
  std::uint64_t data, data_bytes;
};

/// The conveyors of a port, and the memory of those that have left which other ranks still read.
/// Any thread.
class ConveyorHub final : public GroupHub {
 public:
  /// The messages of a conveyor; their number is `step`.
  enum MessageKind : Kind {
    block,          ///< followed by a block, head first
    packet,         ///< followed by a block, its `step` bytes of data first
    lent,           ///< followed by a LentBlock
    ask,            ///< requests an ack
    ack,            ///< `step` blocks of the receiver are applied
    refusal,        ///< followed by the reason
    asks = 1 << 8,  ///< with block, packet or lent: requests an ack
  };

  /// The port must outlive the hub.
  explicit ConveyorHub(Port& port)
      : GroupHub(port, Channel::conveyor, Numbering::in_order, Derived()) {
    start_listening();
  }
  ~ConveyorHub() { stop_listening(); }

  /// Releases memory of a closed conveyor when a rank has applied `blocks` blocks or has refused
  /// one. Memory that a lost rank had is freed by the port's destructor only: the rank's process
  /// may still run and read it.
  void release_later(std::uint32_t number, Rank rank, std::uint64_t blocks,
                     std::vector<std::byte*> memory) noexcept;

 private:
  struct Lent {
    std::uint32_t conveyor;
    Rank to;
    std::uint64_t blocks;
    std::vector<std::byte*> memory;
  };

  void on_stray(Rank from, const Head& head, std::span<const std::byte> body) noexcept override;
  /// Releases memory that a rank has read up to a block.
  void release(Rank rank, std::uint32_t number, std::uint64_t blocks) noexcept;

  sys::Mutex lent_mutex_;
  std::list<Lent> lent_ WEIR_GUARDED_BY(lent_mutex_);
};

}  // namespace weir::rt
