// What works on the batches of a stage in place of workers: a device.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "pipeline/reorder.hpp"

namespace weir::rt {

class Flow;
struct Stage;

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
  /// Items that a slot has room for, and whether the program has said how many.
  virtual std::size_t room() const noexcept = 0;
  virtual bool room_is_given() const noexcept = 0;
  virtual unsigned char* items(std::size_t slot) noexcept = 0;
  /// Begins with the first `count` items of a slot; on_batch_complete() follows once, maybe at
  /// once.
  virtual void launch(std::size_t slot, std::size_t count) noexcept = 0;
  /// How a batch ended that has landed.
  virtual const Outcome& outcome(std::size_t slot) const noexcept = 0;
  /// Puts what came of a batch that ended well. Throws Error.
  virtual void collect(std::size_t slot, const Outputs& outputs) = 0;
  /// The stage has seen its last item. Throws Error when something is missing.
  virtual void end() {}

  /// Of the flow, before anything is carried.
  void attach(Flow& flow, Stage& stage) noexcept {
    flow_ = &flow;
    stage_ = &stage;
  }

 protected:
  /// The batch of a slot is over. Any thread.
  void on_batch_complete(std::size_t slot) noexcept;

 private:
  Flow* flow_ = nullptr;
  Stage* stage_ = nullptr;
};

}  // namespace weir::rt
