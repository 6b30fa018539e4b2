// Tunnels and stages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/pipeline.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "pipeline/bell.hpp"
#include "pipeline/item_cells.hpp"
#include "pipeline/latencies.hpp"
#include "pipeline/permit.hpp"
#include "pipeline/reorder.hpp"
#include "pipeline/ring.hpp"

namespace weir::rt {

class Feeds;
class OffloadBatches;
struct Stage;

/// The bounded queue in front of one stage. Items for any worker are in the ring; items that a
/// worker keeps are in its WorkerBuffer.
class Tunnel {
 public:
  Tunnel(Feeds& own, std::size_t number, const weir_tunnel_options& options);

  const std::string& name() const noexcept { return name_; }

  Feeds& feeds;  ///< of its pipeline
  const std::size_t index;
  const std::size_t item_bytes;
  const weir_overflow overflow;
  Ring<ItemCells> ring;
  Bell room;  ///< rung when there may be room
  Stage* stage = nullptr;
  bool written = false;   ///< some stage puts items there
  bool in_order = false;  ///< leads to or from an ordered stage
  bool queued;            ///< all items go through the ring
  bool sized;             ///< the program has set the capacity
  bool fed = false;       ///< a feed was opened: the ring stays as it is
  sys::Atomic<std::uint64_t> open_feeds{0};

 private:
  const std::string name_;
};

/// A stage. Sources have no input. After the start only `permit`, `reorder`, `offload` and the
/// atomics change.
struct Stage {
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  /// Releases the payload.
  ~Stage();

  std::string name;
  std::size_t index = 0;  ///< of all stages
  Tunnel* input = nullptr;
  std::vector<Tunnel*> outputs;
  std::vector<std::size_t> output_numbers;  ///< of these
  weir_stage_function function = nullptr;
  weir_stage_function at_end = nullptr;
  void* payload = nullptr;
  void (*release)(void* payload) = nullptr;
  std::size_t group = 0;
  std::size_t component = 0;
  Permit permit;
  std::unique_ptr<Reorder> reorder;         ///< of an ordered or offloaded stage
  std::unique_ptr<OffloadBatches> offload;  ///< of a stage with an executor
  /// Outputs into which a serial stage puts items in order: a worker leaves the stage only when
  /// they have all items.
  std::vector<Tunnel*> order_preserving;
  /// Fewer workers than its group has, or not left before `order_preserving` has all items.
  bool limited = false;
  bool feeds_itself = false;
  bool newest_first = false;  ///< is in a loop
  bool ordered = false;       ///< set by the program
  double item_ns = 0;         ///< in virtual time: of a host core, for an item
  std::size_t cores = 1;      ///< in virtual time: that share the items

  sys::Atomic<bool> at_its_end{false};
  Latencies latencies;
  /// Of a source, or of the items put at the end of a stage.
  sys::Atomic<std::uint64_t> epochs_used{0};
  sys::Atomic<std::uint64_t> epoch{0};  ///< of the next items of a source
};

}  // namespace weir::rt

/// The public handle.
struct weir_tunnel final : weir::rt::Handle<weir_tunnel>, weir::rt::Tunnel {
  static constexpr const char* kNoun = "tunnel";
  using Tunnel::Tunnel;
};
