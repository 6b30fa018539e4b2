// What works on the batches of a stage in place of workers: a device.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "pipeline/reorder.hpp"

namespace weir::rt {

class Flow;
struct Stage;

/// Has slots for batches under way. A worker fills a slot and says carry(); somebody else says
/// landed() when the batch is over; then a worker unloads it, and the slot is free. Slots are used
/// in turn, so that the number of slots is the credit that a stage has.
class Carrier {
 public:
  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  virtual ~Carrier() = default;

  virtual std::size_t slots() const noexcept = 0;
  /// Items that a slot has room for, and whether the program has said how many.
  virtual std::size_t room() const noexcept = 0;
  virtual bool room_is_given() const noexcept = 0;
  virtual unsigned char* items(std::size_t slot) noexcept = 0;
  /// Begins with the first `count` items of a slot; landed() follows once, maybe at once.
  virtual void carry(std::size_t slot, std::size_t count) noexcept = 0;
  /// How a batch ended that has landed.
  virtual const Outcome& outcome(std::size_t slot) const noexcept = 0;
  /// Puts what came of a batch that ended well. Throws Error.
  virtual void unload(std::size_t slot, const Outputs& outputs) = 0;
  /// The stage has seen its last item. Throws Error when something is missing.
  virtual void end() {}

  /// Of the flow, before anything is carried.
  void belong_to(Flow& flow, Stage& stage) noexcept {
    flow_ = &flow;
    stage_ = &stage;
  }

 protected:
  /// The batch of a slot is over. Any thread.
  void landed(std::size_t slot) noexcept;

 private:
  Flow* flow_ = nullptr;
  Stage* stage_ = nullptr;
};

}  // namespace weir::rt
