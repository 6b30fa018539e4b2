// Pipeline stages that run kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/pipeline.h>
#include <weir/stream.h>

#include "pipeline/offload_executor.hpp"
#include "stream/event_group.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

/// Runs batches on a place's domain, each in its own buffers, as actions of one stream: copy in,
/// kernel, copy out. It first copies out the item counts of the kernel, for a whole tunnel, and
/// then that many items.
class KernelStage final : public OffloadExecutor {
 public:
  /// Throws Error. The options of the stage have a kernel and a place.
  KernelStage(weir_place& place, const std::string& name, const weir_stage_options& options);
  /// Waits for the batches in flight.
  ~KernelStage() override;

  std::size_t slots() const noexcept override { return slots_.size(); }
  std::size_t room() const noexcept override { return room_; }
  bool room_is_given() const noexcept override { return room_is_given_; }
  unsigned char* items(std::size_t slot) noexcept override;
  void launch(std::size_t slot, std::size_t count) noexcept override;
  const Outcome& outcome(std::size_t slot) const noexcept override {
    return slots_[slot]->outcome();
  }
  void collect(std::size_t slot, const Outputs& outputs) override;

 private:
  struct Output {
    std::size_t item_bytes, most;
    weir_stage_counting counting;
    std::string tunnel;
  };
  /// Offsets in the result buffer, for one batch.
  struct Part {
    std::size_t numbers, items, end;
  };
  /// The slot of one batch in flight.
  struct Slot final : EventGroup {
    Slot(KernelStage& of, std::size_t number)
        : EventGroup(of.registry_), stage(of), index(number) {}
    void on_complete() noexcept override;

    KernelStage& stage;
    const std::size_t index;
    weir_buffer* in = nullptr;       ///< numbers for whole tunnels, then items
    weir_buffer* out = nullptr;      ///< for each output the numbers of its items, and its items
    weir_buffer* scratch = nullptr;  ///< scratch memory of the kernel
    unsigned char *in_memory = nullptr, *out_memory = nullptr;
    std::size_t count = 0;
    bool counted = false;  ///< the numbers for whole tunnels have arrived
    bool failed = false;   ///< the last batch of the slot failed
  };

  void make_outputs(const weir_stage_options& options, const weir_stage_kernel& wanted);
  void load_tables(const weir_stage_kernel& wanted);
  void make_slots(std::size_t count, std::size_t in_bytes);
  void close() noexcept;
  Part part_of(std::size_t output, std::size_t count) const noexcept;
  void enqueue(Slot& slot);
  weir_event enqueue_kernel(const Slot& slot);
  weir_event clear_scratch(const Slot& slot);
  void clear_poison(const Slot& slot);
  void fetch_items(Slot& slot);
  weir_event copy(weir_buffer* buffer, std::size_t offset, std::size_t bytes, bool in);
  std::size_t items_put(const Slot& slot, std::size_t output) const;

  Registry& registry_;
  weir_domain& domain_;
  const std::string name_;
  weir_stream* stream_ = nullptr;
  const weir_kernel* kernel_ = nullptr;
  std::vector<weir_scalar> scalars_;  ///< of the kernel, from the second on
  std::vector<Output> outputs_;
  std::vector<weir_operand> tables_;
  std::size_t item_bytes_ = 0, room_ = 0, scratch_bytes_ = 0;
  bool room_is_given_ = false;
  const weir_kernel* clear_ = nullptr;  ///< kernel that sets scratch to 0
  std::size_t header_ = 0;              ///< bytes before the first item
  bool counts_tunnels_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace weir::rt
