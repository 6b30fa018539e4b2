// What the streams of a place use of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "stream/awaited_events.hpp"
#include "stream/context.hpp"
#include "stream/run_queue.hpp"

namespace weir::rt {

/// A stream as an item of the run queue of its place.
class QueuedStream {
 public:
  explicit QueuedStream(std::size_t priority) noexcept : priority_(priority) {}
  std::size_t priority() const noexcept { return priority_; }

  sys::Plain<QueuedStream*> next_in_queue = nullptr;  ///< link of the run queue

 private:
  const std::size_t priority_;
};

/// The base class of a place: its properties, and its run queue of streams with work for a worker.
class PlaceBase {
 public:
  Domain& domain() const noexcept { return domain_; }
  const std::string& name() const noexcept { return name_; }
  std::size_t width() const noexcept { return cores_.size(); }
  std::uint32_t track() const noexcept { return track_; }

  /// Whether the worker that owns a stream may run its actions without releasing the stream: the
  /// place has no other worker, and the stream has no work for other threads.
  bool has_single_worker() const noexcept { return single_worker_; }

  /// Whether the owner keeps a stream while it runs the action, because the action is brief.
  bool keeps_stream_for(const Action& action) const noexcept {
    const Kernel& kernel = *action.code->kernel;
    return kernel.pace().brief() && !kernel.parallel() && !virtual_time_;
  }

  /// Returns the events of submitted jobs. With device ordering only.
  SubmittedEvents& submitted_events() noexcept { return *submitted_events_; }

  /// Whether the run queue has streams. Any thread.
  bool has_streams() const noexcept { return streams_.any(); }
  /// Adds a stream, which the caller owns, to the run queue. Any thread.
  void push(QueuedStream& stream) noexcept {
    streams_.push(stream, [this] { driver_->wake(); });
  }

 protected:
  PlaceBase(Domain& domain, std::string name, std::vector<unsigned> cores)
      : domain_(domain),
        name_(std::move(name)),
        cores_(std::move(cores)),
        single_worker_(cores_.size() == 1 && domain.info().copies_by_worker),
        device_ordered_(domain.info().resolves_dependences),
        virtual_time_(domain.info().virtual_time),
        track_(domain.context().recorder().add_track(
            {.name = name_,
             .domain = domain.name(),
             .kind = trace::Kind::compute,
             .width = static_cast<std::uint32_t>(cores_.size())})),
        submitted_events_(device_ordered_ ? std::make_unique<SubmittedEvents>() : nullptr) {}
  ~PlaceBase() = default;

  Domain& domain_;
  const std::string name_;
  const std::vector<unsigned> cores_;
  const bool single_worker_;
  const bool device_ordered_;
  const bool virtual_time_;
  const std::uint32_t track_;
  const std::unique_ptr<SubmittedEvents> submitted_events_;
  PlaceDriver* driver_ = nullptr;  ///< set before the place has streams
  RunQueue<QueuedStream> streams_;
};

}  // namespace weir::rt
