// The private state of one worker of a pipeline.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <weir/pipeline.h>

#include "base/parking.hpp"
#include "base/threads.hpp"
#include "pipeline/tunnel.hpp"
#include "pipeline/worker_buffer.hpp"

namespace weir::rt {

/// Adapts the number of items that a worker takes at once from a stage to about 20 microseconds of
/// work, so that clock reads are cheap and idle workers soon get items.
class BatchSize {
 public:
  explicit BatchSize(std::size_t most) noexcept : most_(most) {}

  std::size_t items() const noexcept { return items_; }
  bool slow() const noexcept { return items_ < most_; }
  /// Whether to time the next call: every call, or every 16th when calls with the largest batch are
  /// brief.
  bool due() noexcept { return ++calls_ >= 16 || !brief_; }
  /// Records the duration of a timed call. Returns an estimate of the time of all calls since the
  /// previous timed call.
  std::int64_t note(std::size_t items, std::int64_t duration_ns) noexcept {
    if (duration_ns > 2 * kWanted) {
      items_ = std::max<std::size_t>(items_ / 2, 1);
    } else if (duration_ns < kWanted / 2 && items >= items_) {
      items_ = std::min(2 * items_, most_);
    }
    brief_ = items_ >= most_ && duration_ns < kWanted;
    return duration_ns * std::exchange(calls_, 0);
  }

 private:
  static constexpr std::int64_t kWanted = 20'000;
  const std::size_t most_;
  std::size_t items_ = 1;
  int calls_ = 0;  ///< since the last timed call
  bool brief_ = false;
};

/// A worker's counters of one tunnel.
struct alignas(64) TunnelCounters {
  Count count;
  sys::Atomic<std::uint64_t> dropped{0}, failed{0}, most_kept{0};

  static void add(sys::Atomic<std::uint64_t>& word, std::uint64_t by) noexcept {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

/// A worker's counters of one stage.
struct StageCounters {
  sys::Atomic<std::uint64_t> put{0}, busy_ns{0};
};

/// Memory for items, aligned for any type.
class ItemBuffer {
 public:
  explicit ItemBuffer(std::size_t bytes)
      : memory_(static_cast<unsigned char*>(::operator new(bytes, kLine))) {}
  ItemBuffer(const ItemBuffer&) = delete;
  ItemBuffer& operator=(const ItemBuffer&) = delete;
  ~ItemBuffer() { ::operator delete(memory_, kLine); }
  unsigned char* data() const noexcept { return memory_; }

 private:
  static constexpr std::align_val_t kLine{64};
  unsigned char* const memory_;
};

/// The call of a stage, with the message of its failure.
struct StageCall : weir_batch {
  StageCall() noexcept : weir_batch{} { message[0] = '\0'; }
  void fail(const char* why) noexcept { std::snprintf(message, sizeof message, "%s", why); }
  char message[512];

  struct Retained {
    std::size_t index;
    std::uint64_t number;  ///< in RetainedItems
  };
  std::vector<Retained> retained;        ///< beyond the call
  std::vector<std::uint64_t> unsettled;  ///< items retained by calls that have not settled
  Flow* flow = nullptr;
  Stage* stage = nullptr;
  ItemTag tag;
};

/// The workers of one place.
struct WorkerGroup {
  Parking parking;
  alignas(64) sys::Atomic<std::uint32_t> idle_workers{0};  ///< workers without work
  std::vector<Stage*> stages;                              ///< downstream first
  std::vector<Stage*> sources;
  std::size_t first_worker = 0, workers = 0;
};

struct alignas(64) FlowWorker {
  FlowWorker(std::size_t number, WorkerGroup& of, std::size_t tunnels, std::size_t stages,
             std::size_t epoch_slots, std::size_t batch_items, std::size_t batch_bytes)
      : index(number),
        group(of),
        tunnel_counters(std::make_unique<TunnelCounters[]>(tunnels)),
        stage_counters(std::make_unique<StageCounters[]>(stages)),
        epochs(std::make_unique<Count[]>(epoch_slots)),
        taken(batch_bytes),
        taken_tags(batch_items) {}

  const std::size_t index;
  WorkerGroup& group;
  std::vector<std::unique_ptr<WorkerBuffer>> buffers;  ///< by tunnel
  std::vector<Outputs> outputs;                        ///< by stage
  std::vector<Stage*> held;     ///< stages whose permit the worker still holds after its call
  std::vector<BatchSize> pace;  ///< by stage
  const std::unique_ptr<TunnelCounters[]> tunnel_counters;  ///< by tunnel
  const std::unique_ptr<StageCounters[]> stage_counters;    ///< by stage
  const std::unique_ptr<Count[]> epochs;                    ///< by slot
  StageCall call;
  ItemBuffer taken;  ///< a batch taken from a ring, or from a worker buffer that grows meanwhile
  std::vector<ItemTag> taken_tags;
  std::int64_t call_began_ns = ItemTag::kNotSampled;  ///< start of a timed call
  std::size_t next_source = 0;
  unsigned passes = 0;

  /// Whether the worker keeps items that a stage has put into an order-preserving output.
  bool keeps_in_order(const Stage& stage) const noexcept {
    return std::any_of(stage.order_preserving.begin(), stage.order_preserving.end(),
                       [&](const Tunnel* tunnel) { return !buffers[tunnel->index]->empty(); });
  }
  /// Whether the worker keeps items that a stage has put for stages of other components.
  bool keeps_for_others(const Stage& stage) const noexcept {
    return std::any_of(stage.outputs.begin(), stage.outputs.end(), [&](const Tunnel* tunnel) {
      return tunnel->stage->component != stage.component && !buffers[tunnel->index]->empty();
    });
  }
  bool keeps_something() const noexcept {
    return std::any_of(buffers.begin(), buffers.end(),
                       [](const auto& each) { return !each->empty(); });
  }
};

}  // namespace weir::rt
