// Stencil stages of pipelines, on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weir/pipeline.h>
#include <weir/stream.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "pipeline/offload_executor.hpp"
#include "pipeline/stencil_grid.hpp"
#include "stream/event_group.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

/// Receives complete regions as batches, and copies each into one of two matrices in device memory.
/// It enqueues a tile as soon as all regions that the tile reads are enqueued; the stream resolves
/// the dependences. With several sweeps the number of tiles enqueued at a time is limited.
class StencilStage : public OffloadExecutor {
 public:
  /// Throws Error.
  StencilStage(weir_place& place, const std::string& name, const weir_stencil_options& options);
  /// Waits for the batches in flight.
  ~StencilStage() override;

  const std::string& name() const noexcept { return name_; }
  /// Sets values, and puts the regions that this completes. Throws Error.
  void set(weir_outlet& outlet, const StencilPart& values, const void* from, std::size_t stride);
  void get_info(weir_stencil_info& info) const noexcept;

  std::size_t slots() const noexcept override { return slots_.size(); }
  std::size_t room() const noexcept override { return room_; }
  bool room_is_given() const noexcept override { return room_is_given_; }
  unsigned char* items(std::size_t slot) noexcept override {
    return reinterpret_cast<unsigned char*>(slots_[slot]->items.data());
  }
  void launch(std::size_t slot, std::size_t count) noexcept override;
  const Outcome& outcome(std::size_t slot) const noexcept override {
    return slots_[slot]->outcome();
  }
  void collect(std::size_t slot, const Outputs& outputs) override;
  void end() override;

 protected:
  /// Waits for the batches in flight and frees all memory. Further calls do nothing.
  void close() noexcept;

 private:
  /// A tile whose inputs are enqueued.
  struct Tile {
    std::size_t index, sweep;
  };
  struct Slot final : EventGroup {
    Slot(StencilStage& of, std::size_t number, std::size_t room)
        : EventGroup(of.registry_), stage(of), index(number), items(room) {}
    void on_complete() noexcept override { stage.finish(*this); }

    StencilStage& stage;
    const std::size_t index;
    std::vector<weir_stencil_region> items;
    std::size_t count = 0;
    std::vector<std::size_t> tiles;          ///< tiles of the last sweep
    std::vector<weir_buffer*> used_staging;  ///< staging memory to release at completion
  };

  void check_result(const weir_stencil_options& options) const;
  weir_buffer* make_buffer(std::size_t bytes, const char* what);
  weir_buffer& staging_of(std::size_t region);
  void write(std::size_t region, const StencilPart& values, const StencilPart& all,
             const unsigned char* from, std::size_t stride);
  std::size_t index_of(const weir_stencil_region& item) const;
  void enqueue_region(Slot& slot, std::size_t region);
  void enqueue_tiles(Slot& slot);
  void enqueue_tile(Slot& slot, const Tile& tile);
  void note_ready(std::size_t tile, std::size_t sweep);
  bool next_tile(Tile& tile);
  void finish(Slot& slot) noexcept;
  weir_region in_matrix(const StencilPart& part) const noexcept;

  Registry& registry_;
  weir_domain& domain_;
  const std::string name_;
  const std::size_t value_bytes_;
  StencilGrid grid_;
  const weir_kernel* kernel_ = nullptr;
  std::vector<weir_scalar> scalars_;
  weir_stream* stream_ = nullptr;
  weir_buffer* matrices_[2] = {nullptr, nullptr};  ///< alternate between sweeps
  weir_buffer* result_ = nullptr;
  std::size_t room_;
  const bool room_is_given_;
  std::vector<std::unique_ptr<Slot>> slots_;

  /// Staging memory by region; null: not allocated, or freed.
  std::unique_ptr<sys::Atomic<weir_buffer*>[]> staged_;
  mutable sys::Mutex staging_mutex_;
  std::vector<weir_buffer*> staging_ WEIR_GUARDED_BY(staging_mutex_);
  std::vector<weir_buffer*> free_staging_ WEIR_GUARDED_BY(staging_mutex_);

  sys::Mutex ready_mutex_;
  std::vector<Tile> ready_ WEIR_GUARDED_BY(ready_mutex_);  ///< ready and not enqueued
  bool closing_ WEIR_GUARDED_BY(ready_mutex_) = false;     ///< no more tiles are enqueued
  sys::Atomic<std::uint64_t> regions_copied_{0}, tiles_made_{0};
};

}  // namespace weir::rt

/// The public handle.
struct weir_stencil final : weir::rt::Handle<weir_stencil>, weir::rt::StencilStage {
  static constexpr const char* kNoun = "stencil";
  using StencilStage::StencilStage;
  /// Batches in flight call virtual functions, so the object must be complete.
  ~weir_stencil() override { close(); }
};
