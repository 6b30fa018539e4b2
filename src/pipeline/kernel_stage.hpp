// Pipeline stages that run kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/pipeline.h>
#include <weir/stream.h>

#include "base/threads.hpp"
#include "pipeline/batch_store.hpp"
#include "pipeline/offload_executor.hpp"
#include "stream/event_group.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

/// Runs batches on a place's domain, each in a buffer of its own, as actions of one stream: a copy
/// in, the kernel, a copy out. A buffer has, in this order, the items, the counts of outputs that
/// are counted as a whole, and the items of each output. So the counts travel with the items, in
/// both directions: the copy out has as many items as earlier batches let expect, and another copy
/// fetches the rest if there are more. A domain that shares the memory of the host needs no copies.
///
/// A batch takes the largest free memory, which grows with the batches, up to room(). Memory comes
/// from the store, and returns there for the next pipeline with this kernel.
class KernelStage final : public OffloadExecutor {
 public:
  /// Throws Error. The options of the stage have a kernel and a place.
  KernelStage(BatchStore& store, weir_place& place, const std::string& name,
              const weir_stage_options& options);
  /// Waits for the batches in flight.
  ~KernelStage() override;

  std::size_t slots() const noexcept override { return slots_.size(); }
  std::size_t room() const noexcept override { return room_; }
  bool room_is_given() const noexcept override { return room_is_given_; }
  std::size_t first_batch() const noexcept override;
  BatchCosts known_costs() const noexcept override { return store_.costs(key_); }
  void keep_costs(const BatchCosts& costs) noexcept override { store_.keep_costs(key_, costs); }
  std::size_t reserve(std::size_t slot, std::size_t count) noexcept override;
  void release(std::size_t slot) noexcept override;
  unsigned char* items(std::size_t slot) noexcept override { return slots_[slot]->area->memory; }
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
    /// For PER_TUNNEL: what batches put for each 1024 items, at most of late; UINT64_MAX: unknown.
    std::unique_ptr<sys::Atomic<std::uint64_t>> expected;
  };
  /// Offsets of an output in the buffer of a batch.
  struct Part {
    std::size_t numbers, items, end;
  };
  /// The memory of one batch.
  struct Area {
    weir_buffer* buffer = nullptr;
    weir_buffer* scratch = nullptr;  ///< scratch memory of the kernel
    unsigned char* memory = nullptr;
    std::size_t room = 0;  ///< for items
    bool failed = false;   ///< its last batch failed
  };
  /// The slot of one batch in flight.
  struct Slot final : EventGroup {
    Slot(KernelStage& of, std::size_t number)
        : EventGroup(of.registry_), stage(of), index(number), fetched(of.outputs_.size()) {}
    void on_complete() noexcept override;

    KernelStage& stage;
    const std::size_t index;
    Area* area = nullptr;  ///< from reserve() to release()
    std::size_t count = 0;
    std::vector<std::size_t> fetched;  ///< by output: items that a copy brings back
    bool counted = false;              ///< the counts of whole outputs have arrived
  };

  void check_kernel(const weir_stage_kernel& wanted) const;
  void make_outputs(const weir_stage_options& options, const weir_stage_kernel& wanted);
  void choose_room(const weir_stage_kernel& wanted);
  void load_tables(const weir_stage_kernel& wanted);
  void make_slots(std::size_t count);
  weir_buffer* make_buffer(std::size_t bytes, const char* what);
  void make_room(Area& area, std::size_t count);
  void close() noexcept;
  void give_back(weir_buffer* buffer, bool poisoned) noexcept;
  std::size_t counts_at(std::size_t count) const noexcept { return padded(count * item_bytes_); }
  std::size_t outputs_at(std::size_t count) const noexcept;
  Part part_of(std::size_t output, std::size_t count) const noexcept;
  std::size_t bytes_of(std::size_t count) const noexcept;
  static std::size_t padded(std::size_t bytes) noexcept;
  void enqueue(Slot& slot);
  weir_event enqueue_kernel(const Slot& slot);
  weir_event clear_scratch(const Area& area);
  void clear_poison(const Area& area);
  void fetch(Slot& slot);
  void fetch_rest(Slot& slot);
  void expect(const Slot& slot);
  std::size_t expected(const Output& output, std::size_t count) const noexcept;
  weir_event copy(weir_buffer* buffer, std::size_t offset, std::size_t bytes, bool in);
  std::size_t items_put(const Slot& slot, std::size_t output) const;

  BatchStore& store_;
  Registry& registry_;
  weir_domain& domain_;
  const std::string name_;
  weir_stream* stream_ = nullptr;
  const weir_kernel* kernel_ = nullptr;
  BatchStore::Key key_{};
  std::vector<weir_scalar> scalars_;  ///< of the kernel, from the second on
  std::vector<Output> outputs_;
  std::vector<weir_operand> tables_;
  std::size_t item_bytes_ = 0, room_ = 0, scratch_bytes_ = 0;
  bool room_is_given_ = false;
  const weir_kernel* clear_ = nullptr;  ///< kernel that sets scratch to 0
  bool counts_tunnels_ = false;
  bool copies_ = true;  ///< the domain has memory of its own
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Area>> areas_;  ///< one for each slot
  struct Outgrown {
    weir_buffer* buffer;
    bool failed;  ///< as of the area
  };
  std::vector<Outgrown> outgrown_;  ///< buffers of areas that have larger ones
  sys::Mutex free_mutex_;
  std::vector<Area*> free_ WEIR_GUARDED_BY(free_mutex_);  ///< areas that no slot has
};

}  // namespace weir::rt
