// The interface to a device that runs the batches of a stage in place of workers.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "pipeline/batch_costs.hpp"
#include "pipeline/reorder.hpp"

namespace weir::rt {

class OffloadBatches;

/// Executes batches on a device. A worker fills a slot and calls launch(); the executor calls
/// on_batch_complete(); then a worker collects the results and frees the slot. Slots are used
/// round-robin, so their number bounds the batches in flight.
class OffloadExecutor {
 public:
  OffloadExecutor() = default;
  OffloadExecutor(const OffloadExecutor&) = delete;
  OffloadExecutor& operator=(const OffloadExecutor&) = delete;
  virtual ~OffloadExecutor() = default;

  virtual std::size_t slots() const noexcept = 0;
  /// Most items of a batch, and whether the program has set this number.
  virtual std::size_t room() const noexcept = 0;
  virtual bool room_is_given() const noexcept = 0;
  /// Items of the first batch, from which the size adapts; room(): it does not.
  virtual std::size_t first_batch() const noexcept { return room(); }
  /// What earlier pipelines know of its batches, and what this one leaves to later ones.
  virtual BatchCosts known_costs() const noexcept { return {}; }
  virtual void keep_costs(const BatchCosts&) noexcept {}
  /// Makes room for `count` items in a free slot, before items(slot). Returns the room that there
  /// is: less when memory is short, but at least first_batch(). One thread at a time.
  virtual std::size_t reserve(std::size_t, std::size_t) noexcept { return room(); }
  /// Called when the slot of a batch is free again: other slots may use its memory. One thread at a
  /// time, at the same time as reserve().
  virtual void release(std::size_t) noexcept {}
  virtual unsigned char* items(std::size_t slot) noexcept = 0;
  /// Launches a batch of the first `count` items of a slot; calls on_batch_complete() exactly once,
  /// possibly before it returns.
  virtual void launch(std::size_t slot, std::size_t count) noexcept = 0;
  /// The outcome of a complete batch.
  virtual const Outcome& outcome(std::size_t slot) const noexcept = 0;
  /// Puts the results of a batch that succeeded. Throws Error.
  virtual void collect(std::size_t slot, const Outputs& outputs) = 0;
  /// Called when the stage has completed its last item. Throws Error when expected input is
  /// missing.
  virtual void end() {}

  /// Sets where to report complete batches, before the first launch().
  void attach(OffloadBatches& batches) noexcept { batches_ = &batches; }

 protected:
  /// The executor calls it when the batch of a slot is complete. Any thread.
  void on_batch_complete(std::size_t slot) noexcept;

 private:
  OffloadBatches* batches_ = nullptr;
};

}  // namespace weir::rt
